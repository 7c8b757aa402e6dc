// Command refund is the Lambda function of the refund queue. It makes each refund of an
// order once. It charges nothing.
package main

import (
	"context"
	"io"
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	refundtable "orderonce/adapters/dynamodb/refunds"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/refunds"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/domain/refund"
	"orderonce/functions/internal/consumer"
	"orderonce/functions/internal/provider"
	"orderonce/functions/internal/setup"
)

// environment is the function's whole environment; docs/reference/configuration.md
// explains each variable.
type environment struct {
	setup.Environment

	Table  string `env:"ORDERS_TABLE,notEmpty" want:"the name of the orders table"`
	Queue  consumer.Queue
	Stripe provider.Stripe
	Budget time.Duration `env:"ORDER_BUDGET" envDefault:"10s"`
}

// Problems returns what is wrong with several variables together.
func (c environment) Problems() []string {
	return append(c.Stripe.Problems(), c.Queue.Problems(c.Budget, c.Stripe.Timeout)...)
}

func main() { setup.Main(wire, consumer.Serve) }

func wire(ctx context.Context, environ []string, out io.Writer) (*sqs.Handler, error) {
	c, err := config.Read[environment](environ)
	if err != nil {
		return nil, err
	}
	f := c.Function(out, c.Queue.Parallel, c.Stripe.Address, "refund")
	options, err := c.Stripe.Options(ctx, f)
	if err != nil {
		return nil, err
	}
	store := refundtable.New(dynamodb.New(f.Config(config.DynamoDB), c.Table))
	tasks := refunds.Tasks{
		Decoder: refunds.NewDecoder(), Process: newProcessor(c, store, striperefund.New(options)).Process,
	}
	return c.Queue.Handler(f, "refund", c.Budget, tasks.Task), nil
}

// newProcessor returns the processor of refunds. Create and what follows it need the time
// of one call.
func newProcessor(c environment, store refund.Store, provider refund.Provider) *refund.Processor {
	return &refund.Processor{
		Store: store, Provider: provider, Scope: c.Scope.Order(), Now: time.Now,
		CreateTime: c.Queue.Budget(c.Budget, c.Stripe.Timeout).ConfirmTime(),
	}
}
