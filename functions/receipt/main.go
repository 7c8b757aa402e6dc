// Command receipt is the Lambda function of the receipt queue. It sends one e-mail for
// each paid order and each refund that succeeded, and follows what SES reports about it.
package main

import (
	"context"
	"io"
	"net/http"
	"time"

	"orderonce/adapters/config"
	receipttable "orderonce/adapters/dynamodb/receipts"
	"orderonce/adapters/ses"
	"orderonce/adapters/sqs"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/payer"
	"orderonce/domain/receipt"
	"orderonce/functions/internal/consumer"
	"orderonce/functions/internal/setup"
)

func main() { setup.Main(wire, consumer.Serve) }

func wire(ctx context.Context, environ []string, out io.Writer) (*sqs.Handler, error) {
	c, err := config.Read[environment](environ)
	if err != nil {
		return nil, err
	}
	f := c.Function(out, c.Queue.Parallel, c.Stripe.Address, "receipt")
	options, err := c.Stripe.Options(ctx, f)
	if err != nil {
		return nil, err
	}
	processor, err := newProcessor(c, f, options)
	if err != nil {
		return nil, err
	}
	return c.Queue.Handler(f, "receipt", c.Budget, tasks{processor, c.Scope.Order()}.task), nil
}

func newProcessor(c environment, f setup.Function, options stripe.Options) (*receipt.Processor, error) {
	renderer, err := receipt.NewRenderer()
	if err != nil {
		return nil, err
	}
	callName := func(*http.Request) string { return "SES.SendEmail" }
	client := &http.Client{Timeout: c.SESTimeout, Transport: f.Clients.Transport(c.SESTimeout, callName)}
	return &receipt.Processor{
		Store:  receipttable.New(f.Config(config.DynamoDB), c.Table),
		Payers: payer.New(options),
		Mailer: ses.New(c.AWS.Config(config.SES, client), ses.Options{
			From: c.From, ConfigurationSet: c.ConfigurationSet, Scope: c.Scope.Order(),
		}),
		Render: renderer.Render, Now: time.Now, SendTime: c.sendTime(), AtLeastOnce: c.Promise == atLeastOnce,
	}, nil
}
