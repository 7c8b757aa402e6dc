// Command baseline is a Lambda function that runs one baseline of package baselines, with
// what a careful user would add: records in parallel, partial batch responses, and a
// timeout for Stripe below the function's own.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"orderonce/adapters/config"
	"orderonce/adapters/lambda"
	"orderonce/scripts/lab/baselines"
	"orderonce/scripts/lab/bench/batch"
)

type environment struct {
	AWS      config.AWS
	Baseline string `env:"BASELINE,notEmpty"`
	Table    string `env:"ORDERS_TABLE,notEmpty"`

	StripeKey     config.Secret `env:"STRIPE_SECRET_KEY,notEmpty"`
	StripeBase    string        `env:"STRIPE_API_BASE,notEmpty"`
	StripeTimeout time.Duration `env:"STRIPE_TIMEOUT,notEmpty"`
	Timeout       time.Duration `env:"FUNCTION_TIMEOUT,notEmpty"`
}

func main() {
	f, err := newFunction(os.Environ())
	if err != nil {
		lambda.Fail(os.Stdout, err)
	}
	lambda.Start(context.Background(), f.handle)
}

type function struct {
	baseline baselines.Baseline
	table    baselines.Table
	stripe   *baselines.Stripe
	timeout  time.Duration
}

func newFunction(environ []string) (*function, error) {
	c, err := config.Read[environment](environ)
	if err != nil {
		return nil, err
	}
	all := baselines.All()
	at := slices.IndexFunc(all, func(b baselines.Baseline) bool { return b.Name == c.Baseline })
	if at < 0 {
		return nil, fmt.Errorf("BASELINE: unknown baseline %q", c.Baseline)
	}
	transport := config.NewTransport(batchSize, c.StripeTimeout)
	cfg := c.AWS.Config(config.DynamoDB, &http.Client{Transport: config.NewTransport(batchSize, c.Timeout)})
	return &function{
		baseline: all[at], table: baselines.NewDynamoDB(cfg, c.Table), timeout: c.Timeout,
		stripe: baselines.NewStripe(baselines.StripeOptions{
			Key: c.StripeKey.Reveal(), BaseURL: c.StripeBase, Timeout: c.StripeTimeout, Transport: transport,
		}),
	}, nil
}

// batchSize is the largest batch of the event source mapping, and all its records run in
// parallel.
const batchSize = 10

// handle calls the baseline for each record. A panic fails its record alone.
func (f *function) handle(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	env := f.env(ctx)
	return batch.Handle(ctx, e, func(ctx context.Context, m events.SQSMessage) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		return f.baseline.Handle(ctx, env, baselines.Message{ID: m.MessageId, Body: m.Body})
	}), nil
}

// env uses the storm's clock: the deadline of the invocation less the timeout is its
// start.
func (f *function) env(ctx context.Context) baselines.Env {
	deadline, _ := ctx.Deadline()
	ahead := time.Until(deadline) - f.timeout
	return baselines.Env{
		Table: f.table, Stripe: f.stripe, Deadline: deadline,
		Now: func() time.Time { return time.Now().Add(ahead) },
	}
}
