// Command receipt is the Lambda function of the receipt queue. It sends one e-mail for
// each paid order and each refund that succeeded, and follows what SES reports about it.
package main

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	"orderonce/adapters/lambda"
	"orderonce/adapters/ses"
	"orderonce/adapters/sqs"
	"orderonce/adapters/stripe"
	"orderonce/domain/receipt"
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
	dimensions := map[string]string{"Scope": string(c.Scope), "Function": "receipt"} // its messages are not orders
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

func newProcessor(ctx context.Context, c environment, clients config.Clients) (*receipt.Processor, error) {
	key, err := c.Stripe.ReadKey(ctx, c.AWS, clients)
	if err != nil {
		return nil, err
	}
	renderer, err := receipt.NewRenderer()
	if err != nil {
		return nil, err
	}
	callName := func(*http.Request) string { return "SES.SendEmail" }
	client := &http.Client{Timeout: c.SESTimeout, Transport: clients.Transport(c.SESTimeout, callName)}
	return &receipt.Processor{
		Store:  dynamodb.NewReceipts(c.AWS.Config(config.DynamoDB, clients.AWS()), c.Table),
		Payers: stripe.New(c.Stripe.Options(key, c.Scope, clients)),
		Mailer: ses.New(c.AWS.Config(config.SES, client), ses.Options{
			From: c.From, ConfigurationSet: c.ConfigurationSet, Scope: c.Scope.Order(),
		}),
		Render: renderer.Render, Now: time.Now, SendTime: c.sendTime(), AtLeastOnce: c.Promise == atLeastOnce,
	}, nil
}
