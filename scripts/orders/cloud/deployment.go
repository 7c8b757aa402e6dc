package cloud

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/caarlos0/env/v11"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	receipttable "orderonce/adapters/dynamodb/receipts"
	refundtable "orderonce/adapters/dynamodb/refunds"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/orders/deadletters"
	"orderonce/scripts/orders/shell"
)

// answerTimeout bounds the wait for one answer of AWS or Stripe. A person waits for it.
const answerTimeout = 15 * time.Second

// HTTPClient returns a client that waits as long as a person does.
func HTTPClient() *http.Client {
	return &http.Client{Transport: config.NewTransport(1, answerTimeout)}
}

// Env is the environment of a deployment. A command needs some of it: see Open.
type Env struct {
	Table         string        `env:"ORDERS_TABLE"                 want:"the name of the orders table"`
	StockTable    string        `env:"STOCK_TABLE"                  want:"the name of the stock table"`
	ReceiptsTable string        `env:"RECEIPTS_TABLE"               want:"the name of the receipts table"`
	Scope         order.Scope   `env:"SCOPE"                        want:"the deployment's scope"`
	Key           config.Secret `env:"STRIPE_SECRET_KEY"            want:"a secret"`
	StripeURL     config.URL    `env:"STRIPE_API_BASE"              want:"a URL, or nothing for Stripe itself"`
	Queue         config.URL    `env:"QUEUE_URL"                    want:"the URL of the order queue"`
	DeadLetters   config.URL    `env:"DEAD_LETTER_QUEUE_URL"        want:"the URL of the dead-letter queue"`
	RefundQueue   config.URL    `env:"REFUND_QUEUE_URL"             want:"the URL of the refund queue"`
	DeadRefunds   config.URL    `env:"REFUND_DEAD_LETTER_QUEUE_URL" want:"the URL of the dead-letter queue of refunds"`
	Bus           string        `env:"EVENT_BUS"                    want:"the name or the ARN of the event bus"`
	Webhook       config.URL    `env:"WEBHOOK_URL"                  want:"the URL of Stripe's webhook endpoint"`
	Intake        config.URL    `env:"INTAKE_URL"                   want:"the URL of orders by HTTP, without an order id"`
	// Retention is set where the queue's differs from what infra/terraform deploys.
	Retention time.Duration `env:"QUEUE_RETENTION" want:"a duration such as 168h"`
}

// Deployment is what a command works on, and the shell that the command was typed in.
type Deployment struct {
	shell.Shell
	Env

	AWS aws.Config
}

// Open reads the environment and finds the AWS account. The error names every variable
// that the command needs and that is not set, or not valid.
func Open(ctx context.Context, sh shell.Shell, needs ...string) (Deployment, error) {
	e, err := config.Read[Env](sh.Environ)
	problems := problemsOf(sh.Environ, needs)
	if invalid, ok := errors.AsType[*config.Error](err); ok {
		problems = append(problems, invalid.Problems...)
	}
	if len(problems) > 0 {
		return Deployment{}, &config.Error{Problems: problems}
	}
	cfg, err := sh.AWS(ctx)
	return Deployment{sh, e, cfg}, err
}

// OpenStripe is Open for a command that compares orders with Stripe.
func OpenStripe(ctx context.Context, sh shell.Shell, needs ...string) (Deployment, error) {
	return Open(ctx, sh, append(needs, "ORDERS_TABLE", "SCOPE", "STRIPE_SECRET_KEY")...)
}

func problemsOf(environ, needs []string) (all []string) {
	variables := env.ToMap(environ)
	for field := range reflect.TypeFor[Env]().Fields() {
		name := field.Tag.Get("env")
		if !slices.Contains(needs, name) {
			continue
		}
		value, set := variables[name]
		var err error
		switch {
		case !set:
			err = fmt.Errorf("want %s, got missing", field.Tag.Get("want"))
		case value == "":
			err = fmt.Errorf("want %s, got empty", field.Tag.Get("want"))
		case name == "SCOPE":
			_, err = order.NewScope(value)
		case name == "STRIPE_SECRET_KEY":
			err = stripe.CheckKey(value, variables["STRIPE_API_BASE"])
		}
		if err != nil {
			all = append(all, name+": "+err.Error())
		}
	}
	return all
}

// Store returns the store of orders.
func (d Deployment) Store() *dynamodb.Store {
	return dynamodb.New(d.AWS, d.Table).WithStock(d.StockTable)
}

// Accounts returns the store of refunds.
func (d Deployment) Accounts() *refundtable.Store { return refundtable.New(d.Store()) }

// Receipts returns the store of receipts.
func (d Deployment) Receipts() *receipttable.Store { return receipttable.New(d.AWS, d.ReceiptsTable) }

// Payments returns the payments at Stripe.
func (d Deployment) Payments() *charge.Payments { return charge.New(d.options()) }

// Refunds returns the refunds at Stripe.
func (d Deployment) Refunds() *striperefund.Refunds { return striperefund.New(d.options()) }

func (d Deployment) options() stripe.Options {
	return stripe.Options{
		Key: d.Key.Reveal(), Scope: d.Scope, BaseURL: string(d.StripeURL), Timeout: answerTimeout,
		Transport: config.NewTransport(1, answerTimeout),
		Dedicated: config.NewTransport(1, answerTimeout), Now: time.Now,
	}
}

// Refresher records what happened to refunds at Stripe.
func (d Deployment) Refresher() *refund.Refresher {
	return &refund.Refresher{Store: d.Accounts(), Provider: d.Refunds(), Scope: d.Scope, Now: d.Now}
}

// Letters returns the dead letters of every queue.
func (d Deployment) Letters() *deadletters.Queue {
	return deadletters.NewQueue(d.AWS, d.Now, d.EmptyWait,
		deadletters.Pair{Live: string(d.Queue), Dead: string(d.DeadLetters)},
		deadletters.Pair{Live: string(d.RefundQueue), Dead: string(d.DeadRefunds)})
}

// Where prints what a change is about to change: table, region, scope and Stripe's mode.
func (d Deployment) Where() {
	fmt.Fprintf(d.People(), "table %s in %s, scope %s, Stripe in %s mode\n\n",
		d.Table, d.AWS.Region, d.Scope, d.Mode())
}

// Mode names the mode of Stripe's key for a person.
func (d Deployment) Mode() string {
	if d.Key.Reveal() == "" {
		return "unknown"
	}
	return ModeOf(stripe.Live(d.Key.Reveal()))
}

// ModeOf names Stripe's mode for a person.
func ModeOf(live bool) string {
	if live {
		return "LIVE"
	}
	return "test"
}

// Rows scans the table at a pace of pages of 1 MB. It yields each order, and of one that
// cannot be decoded the id and the error. An error without an id ends it.
func (d Deployment) Rows(ctx context.Context, pace *Pace) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		read, store := 0, d.Store()
		for after, more := "", true; more; more = after != "" {
			rows, next, err := scan(ctx, store, after)
			for _, r := range rows {
				if !yield(r, r.err) {
					return
				}
			}
			if err == nil {
				read += len(rows)
				d.Progress("%d orders read", read)
				err = pace.Wait(ctx, 1)
			}
			if err != nil {
				yield(Row{}, err)
				return
			}
			after = next
		}
	}
}
