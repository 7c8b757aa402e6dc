// Command order is the Lambda function of the order queue. It charges each order once.
package main

import (
	"context"
	"io"
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/orders"
	"orderonce/adapters/stripe/charge"
	"orderonce/domain/order"
	"orderonce/functions/internal/consumer"
	"orderonce/functions/internal/setup"
)

func main() {
	setup.Main(wire, consumer.Serve)
}

func wire(ctx context.Context, environ []string, out io.Writer) (*sqs.Handler, error) {
	c, err := config.Read[environment](environ)
	if err != nil {
		return nil, err
	}
	f := c.Function(out, c.Queue.Parallel, c.Stripe.Address, "")
	options, err := c.Stripe.Options(ctx, f)
	if err != nil {
		return nil, err
	}
	store := dynamodb.New(f.Config(config.DynamoDB), c.Table).WithStock(c.Stock)
	payments := charge.New(options)
	p := newProcessor(c, store, payments)
	tasks := orders.Tasks{
		Decoder: orders.NewDecoder(), Process: p.Process,
		NoteParked: func(ctx context.Context, o order.Order, why order.Reason, at time.Time) error {
			return order.NoteParked(ctx, store, o, why, at)
		},
	}
	if p.TracksStock {
		tasks.Process = freesStock(p, payments)
	}
	return c.Queue.Handler(f, "order", c.Budget, tasks.Task), nil
}
