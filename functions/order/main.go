// Command order is the Lambda function of the order queue. It charges each order once.
package main

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"runtime/debug"
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	"orderonce/adapters/lambda"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/jobs"
	"orderonce/adapters/sqs/orders"
	"orderonce/adapters/sqs/refunds"
	"orderonce/adapters/stripe/charge"
	striperefund "orderonce/adapters/stripe/refund"
)

func main() {
	debug.SetGCPercent(200) // 12 to 22 % less CPU per order, for 3 MiB
	ctx := context.Background()
	handler, err := wire(ctx, os.Environ(), os.Stdout)
	if err != nil {
		lambda.Fail(os.Stdout, err)
	}
	lambda.Start(ctx, handler.Handle)
}

func wire(ctx context.Context, environ []string, out io.Writer) (*sqs.Handler, error) {
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
	tasks := jobs.Tasks{
		Decoder: jobs.NewDecoder(),
		Orders:  orders.Tasks{Process: newProcess(c, store, store, charge.New(options)), NoteParked: store.Park},
		Refunds: refunds.Tasks{
			Process: newRefunds(c, dynamodb.NewRefunds(store), striperefund.New(options)).Process,
		},
	}
	return &sqs.Handler{
		Decode: tasks.Task, Policy: c.policy(), Settings: new(sqs.SettingsCheck),
		Queue: sqs.NewQueue(c.AWS.Config(config.SQS, clients.AWS()), string(c.Queue), string(c.DeadLetters)),
		Name:  "order", Log: lambda.NewLogger(out, slog.LevelInfo), Meter: meter, RequestID: lambda.RequestID,
		Now: time.Now, NewOwner: rand.Text, Jitter: mathrand.Float64,
		Parallel: c.Parallel, OrderBudget: c.OrderBudget, AnswerTime: c.AnswerTime,
	}, nil
}
