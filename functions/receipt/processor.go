package main

import (
	"context"
	"net/http"
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	"orderonce/adapters/ses"
	"orderonce/adapters/stripe/payer"
	"orderonce/domain/receipt"
)

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
		Payers: payer.New(c.Stripe.Options(key, c.Scope, clients)),
		Mailer: ses.New(c.AWS.Config(config.SES, client), ses.Options{
			From: c.From, ConfigurationSet: c.ConfigurationSet, Scope: c.Scope.Order(),
		}),
		Render: renderer.Render, Now: time.Now, SendTime: c.sendTime(), AtLeastOnce: c.Promise == atLeastOnce,
	}, nil
}
