package cloud

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
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

// QueueEnv is the environment of `orders post`.
type QueueEnv struct {
	Queue   config.URL `env:"QUEUE_URL,notEmpty" want:"the URL of the order queue"`
	Refunds config.URL `env:"REFUND_QUEUE_URL"   want:"the URL of the refund queue, or nothing"`
}

// RefundQueues are the two queues of refunds; "" in a deployment without refunds.
type RefundQueues struct {
	Queue       config.URL `env:"REFUND_QUEUE_URL"             want:"the URL of the refund queue, or nothing"`
	DeadLetters config.URL `env:"REFUND_DEAD_LETTER_QUEUE_URL" want:"the URL of its dead-letter queue, or nothing"`
}

// TableEnv is the environment of `orders list`. Commands that settle orders need Stock
// if the functions have it.
type TableEnv struct {
	Table string `env:"ORDERS_TABLE,notEmpty" want:"the name of the orders table"`
	Stock string `env:"STOCK_TABLE"           want:"the name of the stock table, or nothing"`
}

// Store returns the store of orders.
func (c TableEnv) Store(cfg aws.Config) *dynamodb.Store {
	return dynamodb.New(cfg, c.Table).WithStock(c.Stock)
}

// ShowEnv is the environment of `orders show`.
type ShowEnv struct {
	Orders   TableEnv
	Receipts string `env:"RECEIPTS_TABLE" want:"the name of the receipts table, or nothing"`
}

// StockEnv is the environment of `orders stock`.
type StockEnv struct {
	Table  string `env:"STOCK_TABLE,notEmpty" want:"the name of the stock table"`
	Orders string `env:"ORDERS_TABLE"         want:"the name of the orders table"` // to count what orders hold
}

// Refunds returns the store of refunds.
func (c TableEnv) Refunds(cfg aws.Config) *refundtable.Store {
	return refundtable.New(c.Store(cfg))
}

// StripeEnv is the environment of the commands that read PaymentIntents.
type StripeEnv struct {
	Orders  TableEnv
	Scope   string        `env:"SCOPE,notEmpty"             want:"the deployment's scope"`
	Key     config.Secret `env:"STRIPE_SECRET_KEY,notEmpty"`
	Address config.URL    `env:"STRIPE_API_BASE"            want:"a URL, or nothing for Stripe itself"`
}

// Problems returns what one variable alone cannot show.
func (c StripeEnv) Problems() (all []string) {
	if _, err := order.NewScope(c.Scope); err != nil {
		all = append(all, "SCOPE: "+err.Error())
	}
	if err := stripe.CheckKey(c.Key.Reveal(), string(c.Address)); err != nil {
		all = append(all, "STRIPE_SECRET_KEY: "+err.Error())
	}
	return all
}

// Payments returns the payments at Stripe.
func (c StripeEnv) Payments() *charge.Payments { return charge.New(c.options()) }

// Refunds returns the refunds at Stripe.
func (c StripeEnv) Refunds() *striperefund.Refunds { return striperefund.New(c.options()) }

func (c StripeEnv) options() stripe.Options {
	return stripe.Options{
		Key: c.Key.Reveal(), Scope: order.Scope(c.Scope), BaseURL: string(c.Address), Timeout: answerTimeout,
		Transport: config.NewTransport(1, answerTimeout),
		Dedicated: config.NewTransport(1, answerTimeout), Now: time.Now,
	}
}

// DeadLettersEnv is the environment of `orders dead-letters`.
type DeadLettersEnv struct {
	Stripe      StripeEnv
	Queue       config.URL `env:"QUEUE_URL,notEmpty"             want:"the URL of the order queue"`
	DeadLetters config.URL `env:"DEAD_LETTER_QUEUE_URL,notEmpty" want:"the URL of the dead-letter queue"`
	Refunds     RefundQueues
}

// Letters returns the dead letters of orders and of refunds.
func (c DeadLettersEnv) Letters(cfg aws.Config, now func() time.Time, wait time.Duration) *deadletters.Queue {
	return letters(cfg, c.Queue, c.DeadLetters, c.Refunds, now, wait)
}

func letters(
	cfg aws.Config, live, dead config.URL, r RefundQueues, now func() time.Time, wait time.Duration,
) *deadletters.Queue {
	return deadletters.NewQueue(cfg, now, wait,
		deadletters.Pair{Live: string(live), Dead: string(dead)},
		deadletters.Pair{Live: string(r.Queue), Dead: string(r.DeadLetters)})
}

// Problems returns what one variable alone cannot show.
func (c DeadLettersEnv) Problems() []string { return c.Stripe.Problems() }

// SmokeEnv is the environment of `orders smoke`. DeadLetters and Retention are set
// where the function's differ from what infra/terraform deploys.
type SmokeEnv struct {
	Stripe      StripeEnv
	Queue       config.URL    `env:"QUEUE_URL,notEmpty"    want:"the URL of the order queue"`
	DeadLetters config.URL    `env:"DEAD_LETTER_QUEUE_URL" want:"the URL of the dead-letter queue"`
	Retention   time.Duration `env:"QUEUE_RETENTION"       want:"a duration such as 168h"`
	Refunds     RefundQueues
}

// Problems refuses every key but a test key, whatever the address.
func (c SmokeEnv) Problems() []string {
	const name, rule = "STRIPE_SECRET_KEY: ", "want a test key, which starts with sk_test_ or rk_test_"
	key := c.Stripe.Key.Reveal()
	if !stripe.Live(key) && stripe.CheckKey(key, "") == nil {
		return c.Stripe.Problems()
	}
	all := slices.DeleteFunc(c.Stripe.Problems(), func(p string) bool { return strings.HasPrefix(p, name) })
	if stripe.CheckKey(key, "") != nil {
		return append(all, name+rule)
	}
	return append(all, name+rule+"; got a live one, which refuses the smoke test's card")
}

// Where prints what a change is about to change: table, region, scope and Stripe's mode.
func (c StripeEnv) Where(sh shell.Shell, cfg aws.Config) {
	fmt.Fprintf(sh.People(), "table %s in %s, scope %s, Stripe in %s mode\n\n",
		c.Orders.Table, cfg.Region, c.Scope, ModeOf(stripe.Live(c.Key.Reveal())))
}

// ModeOf names Stripe's mode for a person.
func ModeOf(live bool) string {
	if live {
		return "LIVE"
	}
	return "test"
}

// Explain adds to order.ErrNotFound where else the order may be.
func (c TableEnv) Explain(cfg aws.Config, err error) error {
	if !errors.Is(err, order.ErrNotFound) {
		return err
	}
	return fmt.Errorf(`%w in table %q at %s
It may be:
  not delivered yet: ask again in a few seconds, or count the messages that wait:
    aws sqs get-queue-attributes --attribute-names All --queue-url "$QUEUE_URL"
  put by HTTP and not sent, so that its client must put it again:
    orders list --status not_sent
  parked in the dead-letter queue, with a reason:
    orders dead-letters list
  in another table: ORDERS_TABLE, --region and --profile must be those of its deployment`,
		err, c.Table, cmp.Or(aws.ToString(cfg.BaseEndpoint), cfg.Region))
}

// Refresher records what happened to refunds at Stripe.
func (c StripeEnv) Refresher(cfg aws.Config, now func() time.Time) *refund.Refresher {
	return &refund.Refresher{
		Store: c.Orders.Refunds(cfg), Provider: c.Refunds(), Scope: order.Scope(c.Scope), Now: now,
	}
}

// Under returns the environment with another scope, unless that is "".
func (c StripeEnv) Under(scope string) (StripeEnv, error) {
	if scope == "" {
		return c, nil
	}
	_, err := order.NewScope(scope)
	c.Scope = scope
	return c, err
}

// ReceiptsEnv is the environment of `orders receipts`.
type ReceiptsEnv struct {
	Table string `env:"RECEIPTS_TABLE,notEmpty" want:"the name of the receipts table"`
}

// RefundEnv is the environment of `orders refund`.
type RefundEnv struct {
	Orders TableEnv
	Queue  config.URL `env:"REFUND_QUEUE_URL,notEmpty" want:"the URL of the refund queue"`
	Scope  string     `env:"SCOPE,notEmpty"            want:"the deployment's scope"`
}

// BusEnv is the environment of `orders republish`.
type BusEnv struct {
	Orders TableEnv
	Bus    string `env:"EVENT_BUS,notEmpty" want:"the name or the ARN of the event bus"`
	Scope  string `env:"SCOPE,notEmpty"     want:"the deployment's scope"`
}
