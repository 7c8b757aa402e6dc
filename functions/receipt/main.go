// Command receipt is the Lambda function of the receipt queue. It sends one e-mail for
// each paid order and each refund that succeeded, and follows what SES reports about it.
package main

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/lambda"
	"orderonce/adapters/sqs"
)

func main() {
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
	// Its messages are not orders: no alarm of those may count them.
	dimensions := map[string]string{"Scope": string(c.Scope), "Function": "receipt"}
	meter := lambda.NewMeter(out, "orderonce", dimensions, time.Now)
	clients := config.Clients{MaxCalls: c.Parallel, Observe: meter.Observe, Now: time.Now}
	processor, err := newProcessor(ctx, c, clients)
	if err != nil {
		return nil, err
	}
	return &sqs.Handler{
		Decode: tasks{processor, c.Scope.Order()}.task, Policy: c.policy(), Settings: new(sqs.SettingsCheck),
		Queue: sqs.NewQueue(c.AWS.Config(config.SQS, clients.AWS()), string(c.Queue), string(c.DeadLetters)),
		Name:  "receipt", Log: lambda.NewLogger(out, slog.LevelInfo), Meter: meter, RequestID: lambda.RequestID,
		Now: time.Now, NewOwner: rand.Text, Jitter: mathrand.Float64,
		Parallel: c.Parallel, OrderBudget: c.OrderBudget, AnswerTime: c.AnswerTime,
	}, nil
}
