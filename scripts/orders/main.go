// Command orders is the operator's tool: it posts orders to the queue, shows what the table and Stripe say of one, and
// settles an order from Stripe's answer. It reads the same environment as the function; for the local system that
// `make up` starts, source build/local/env first.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/alecthomas/kong"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/lambda"
	"orderonce/adapters/stripe"
	"orderonce/domain/order"
)

type commands struct {
	Post    post    `cmd:"" help:"Post message bodies to the order queue, one a line. Needs QUEUE_URL."`
	Show    show    `cmd:"" help:"Show an order's row and history. Needs ORDERS_TABLE."`
	Refresh refresh `cmd:"" help:"Ask Stripe what became of an order and settle its row. Never moves money. Needs ORDERS_TABLE, SCOPE, STRIPE_SECRET_KEY."`
}

func main() {
	var c commands
	k := kong.Parse(&c, kong.Name("orders"), kong.UsageOnError(), kong.Description(
		"Post, look at and refresh orders. Credentials and region come from AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and\n"+
			"AWS_SESSION_TOKEN; with profiles or SSO: eval \"$(aws configure export-credentials --format env)\".\n"+
			"For the system that `make up` runs: . ./build/local/env"))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	k.BindTo(ctx, (*context.Context)(nil))
	err := k.Run()
	stop()
	k.FatalIfErrorf(hint(err))
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
func (s show) Run(ctx context.Context) error {
	c, err := lambda.ReadEnv[tableConfig](os.Environ())
	if err != nil {
		return err
	}
	r, err := c.store().Load(ctx, order.ID(s.ID))
	if err != nil {
		return fmt.Errorf("show order %q: %w", s.ID, err)
	}
	fmt.Print(describe(r))
	return nil
}

type refreshConfig struct {
	Orders  tableConfig
	Scope   string        `env:"SCOPE,notEmpty"             want:"the deployment's scope"`
	Key     lambda.Secret `env:"STRIPE_SECRET_KEY,notEmpty"`
	Address string        `env:"STRIPE_API_BASE"`
}

type refresh struct {
	ID string `arg:"" help:"The orderId."`
}

// Run settles one order from Stripe's answer.
func (r refresh) Run(ctx context.Context) error {
	c, err := lambda.ReadEnv[refreshConfig](os.Environ())
	if err != nil {
		return err
	}
	scope, err := order.NewScope(c.Scope)
	if err != nil {
		return err
	}
	payments := stripe.New(stripe.Options{Key: c.Key.Reveal(), Scope: scope, BaseURL: c.Address, Transport: lambda.Transport(1, awsAnswer)})
	store := c.Orders.store()
	before, err := store.Load(ctx, order.ID(r.ID))
	if err != nil {
		return fmt.Errorf("refresh order %q: %w", r.ID, err)
	}
	after, err := order.Refresh(ctx, store, payments, scope, order.ID(r.ID), time.Now())
	if err != nil {
		return fmt.Errorf("refresh order %q: %w", r.ID, err)
	}
	if before.Status == after.Status {
		fmt.Printf("unchanged: Stripe has nothing newer than %s\n\n", after.Status)
	} else {
		fmt.Printf("settled: %s, it was %s\n\n", after.Status, before.Status)
	}
	fmt.Print(describe(after))
	return nil
}
