// Command orders is the operator's tool: it posts orders to the queue, shows what the table and Stripe say of one, and
// settles an order from Stripe's answer. It reads the same environment as the function; for the local system that
// `make up` starts, source build/local/env first.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/alecthomas/kong"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/lambda"
	"orderonce/domain/order"
)

type commands struct {
	Post    post    `cmd:"" help:"Post message bodies to the order queue, one a line. Needs QUEUE_URL."`
	Show    show    `cmd:"" help:"Show an order's row and history. Needs ORDERS_TABLE."`
	Restore restore `cmd:"" help:"Write an order's lost row from its PaymentIntent; never moves money. Needs what refresh needs."`
	Refresh refresh `cmd:"" help:"Settle an order's row by Stripe's answer; never moves money. Needs ORDERS_TABLE, SCOPE, STRIPE_SECRET_KEY."`
}

func main() {
	var c commands
	k := kong.Parse(&c, kong.Name("orders"), kong.UsageOnError(), kong.Description(
		"Post, look at and refresh orders. Credentials and region come from AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and\n"+
			"AWS_SESSION_TOKEN; with profiles or SSO: eval \"$(aws configure export-credentials --format env)\".\n"+
			"For the system that `make up` runs: . ./build/local/env"))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	k.BindTo(ctx, (*context.Context)(nil))
	k.Bind(shell{environ: os.Environ(), in: os.Stdin, out: os.Stdout, warnings: os.Stderr, now: time.Now})
	err := k.Run()
	stop()
	k.FatalIfErrorf(hint(err))
}

// shell is what a command finds around it.
type shell struct {
	environ       []string
	in            io.Reader
	out, warnings io.Writer
	now           func() time.Time
}

// hint says where an environment comes from.
func hint(err error) error {
	if _, ok := errors.AsType[*lambda.EnvError](err); ok {
		return fmt.Errorf("%w\nfor the system that `make up` runs: . ./build/local/env", err)
	}
	return err
}

// awsAnswer bounds the wait for one answer, in seconds that a person waits as well.
const awsAnswer = 10 * time.Second

func awsClient() *http.Client { return &http.Client{Transport: lambda.Transport(1, awsAnswer)} }

type tableConfig struct {
	AWS   lambda.AWS
	Table string `env:"ORDERS_TABLE,notEmpty" want:"the name of the orders table"`
}

func (c tableConfig) store() *dynamodb.Store {
	return dynamodb.New(c.AWS.Config(lambda.DynamoDB, awsClient()), c.Table)
}

type show struct {
	ID string `arg:"" help:"The orderId."`
}

// Run prints one order.
func (s show) Run(ctx context.Context, sh shell) error {
	c, err := lambda.ReadEnv[tableConfig](sh.environ)
	if err != nil {
		return err
	}
	r, err := c.store().Load(ctx, order.ID(s.ID))
	if err != nil {
		return fmt.Errorf("show order %q: %w", s.ID, err)
	}
	fmt.Fprint(sh.out, describe(r))
	return nil
}
