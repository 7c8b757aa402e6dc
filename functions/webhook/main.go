// Command webhook is the Lambda function of Stripe's webhooks. It settles the order that
// an event is about, or records its dispute, after it has read both at Stripe.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"orderonce/adapters/apigateway"
	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	refundtable "orderonce/adapters/dynamodb/refunds"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/dispute"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/adapters/stripe/webhook"
	"orderonce/domain/refund"
	"orderonce/domain/settle"
	"orderonce/functions/internal/provider"
	"orderonce/functions/internal/setup"
)

// environment is the function's whole environment; docs/reference/configuration.md
// explains each variable.
type environment struct {
	setup.Environment

	Table   string `env:"ORDERS_TABLE,notEmpty" want:"the name of the orders table"`
	Stock   string `env:"STOCK_TABLE"           want:"the name of the stock table, or nothing"`
	Stripe  provider.Stripe
	Secret  provider.ARN  `env:"WEBHOOK_SECRET_ARN" want:"the ARN of a secret"`
	Secrets config.Secret `env:"WEBHOOK_SECRETS"`
}

// Problems returns what is wrong with several variables together.
func (c environment) Problems() []string {
	problems := c.Stripe.Problems()
	if (c.Secret.Reveal() == "") == (c.Secrets.Reveal() == "") {
		problems = append(problems, "WEBHOOK_SECRET_ARN, WEBHOOK_SECRETS: want exactly one of them")
	}
	return problems
}

func main() { setup.Main(wire, apigateway.Handle) }

func wire(ctx context.Context, environ []string, out io.Writer) (http.Handler, error) {
	c, err := config.Read[environment](environ)
	if err != nil {
		return nil, err
	}
	f := c.Function(out, 1, c.Stripe.Address, "")
	options, err := c.Stripe.Options(ctx, f)
	if err != nil {
		return nil, err
	}
	secret, err := provider.Secret(ctx, f, c.Secret, c.Secrets)
	if err != nil {
		return nil, err
	}
	secrets, err := webhook.ParseSecrets(secret)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(c.Secret.Reveal(), "WEBHOOK_SECRETS"), err)
	}
	store := dynamodb.New(f.Config(config.DynamoDB), c.Table).WithStock(c.Stock)
	return &webhook.Endpoint{
		Secrets: secrets, Follow: newFollower(store, options).Follow, Now: time.Now,
		Log: f.Log, Count: func(result string) {
			f.Meter.Count("Webhooks", "Result", result)
			if result == string(settle.HintDisputed) {
				f.Meter.Count("Disputed", "", "")
			}
			f.Meter.Flush() // one request is one invocation
		},
	}, nil
}

// newFollower returns what follows hints of a charge, of its disputes and of its refunds.
func newFollower(store *dynamodb.Store, o stripe.Options) *settle.Follower {
	refunds := refund.Refresher{
		Store: refundtable.New(store), Provider: striperefund.New(o), Scope: o.Scope, Now: time.Now,
	}
	return &settle.Follower{
		Store: store, Payments: charge.New(o), Scope: o.Scope, Now: time.Now,
		Disputes: dispute.New(o), Refunds: refunds.Seq,
	}
}
