// Command reconcile is the Lambda function of a schedule. It looks at the orders that
// wait and settles those that Stripe has settled. It never moves money. With a stock
// table it also cancels orders whose customers let their goods wait for too long.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	"orderonce/adapters/lambda"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/domain/order"
)

func main() {
	ctx := context.Background()
	run, err := wire(ctx, os.Environ(), os.Stdout)
	if err != nil {
		lambda.Fail(os.Stdout, err)
	}
	lambda.Start(ctx, run.handle)
}

func wire(ctx context.Context, environ []string, out io.Writer) (*run, error) {
	c, err := config.Read[environment](environ)
	if err != nil {
		return nil, err
	}
	config.LoadCertificates(c.Stripe.Address)
	meter := lambda.NewMeter(out, "orderonce", map[string]string{"Scope": string(c.Scope)}, time.Now)
	clients := config.Clients{MaxCalls: c.Parallel, Observe: meter.Observe, Now: time.Now}
	key, err := c.Stripe.ReadKey(ctx, c.AWS, clients)
	if err != nil {
		return nil, err
	}
	store := dynamodb.New(c.AWS.Config(config.DynamoDB, clients.AWS()), c.Table).WithStock(c.Stock)
	options := c.Stripe.Options(key, c.Scope, clients)
	client, allow := charge.New(options), perSecond(c.Rate)
	payments := order.Paced{Payments: client, Canceler: client, Allow: allow}
	log := lambda.NewLogger(out, slog.LevelInfo)
	return &run{
		reconciler: order.Reconciler{
			Follower: order.Follower{
				Records: store, Payments: payments, Scope: c.Scope.Order(), Mode: stripe.ModeOf(key), Now: time.Now,
			},
			Waiting: store, Parallel: c.parallel(),
			Refunds:   refunds{newRefunds(c.Scope.Order(), store, options), allow, log, meter}.look,
			FreeGoods: newFreeGoods(c, store, payments, time.Now),
		},
		margin: c.margin(), log: log, meter: meter, now: time.Now,
	}, nil
}
