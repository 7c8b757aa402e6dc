// Command reconcile is the Lambda function of a schedule. It rechecks the orders that
// wait and settles those that Stripe has settled. It never moves money. With a stock
// table it also cancels orders whose customers let their stock wait for too long.
package main

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	refundtable "orderonce/adapters/dynamodb/refunds"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/domain/settle"
	"orderonce/functions/internal/setup"
)

func main() { setup.Main(wire, serve) }

func serve(r *run) func(context.Context, json.RawMessage) (struct{}, error) { return r.handle }

func wire(ctx context.Context, environ []string, out io.Writer) (*run, error) {
	c, err := config.Read[environment](environ)
	if err != nil {
		return nil, err
	}
	f := c.Function(out, c.Parallel, c.Stripe.Address, "")
	options, err := c.Stripe.Options(ctx, f)
	if err != nil {
		return nil, err
	}
	store := dynamodb.New(f.Config(config.DynamoDB), c.Table).WithStock(c.Stock)
	client, allow := charge.New(options), perSecond(c.Rate)
	payments := settle.Paced{Payments: client, Canceler: client, Allow: allow}
	refresher := refund.Refresher{
		Store: refundtable.New(store), Provider: striperefund.New(options), Scope: c.Scope.Order(), Now: time.Now,
	}
	reconciler := settle.Reconciler{
		Follower: settle.Follower{
			Store: store, Payments: payments, Scope: c.Scope.Order(), Mode: stripe.ModeOf(options.Key), Now: time.Now,
			Refunds: refunds{refresher.Refresh, time.Now, allow, f.Log, f.Meter}.recheck,
		},
		Waiting: store, Parallel: c.parallel(),
		CancelDeclined: newCancelDeclined(c, order.Cancellation{
			Store: store, Payments: payments, Canceler: payments, Scope: c.Scope.Order(),
		}, time.Now),
	}
	return &run{
		reconcile: reconciler.Run, margin: c.margin(), log: f.Log, meter: f.Meter, now: time.Now,
	}, nil
}
