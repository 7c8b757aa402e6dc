// Command webhook is the Lambda function of Stripe's webhooks. It settles the order that
// an event is about, or records its dispute, after it has read both at Stripe.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"orderonce/adapters/apigateway"
	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	"orderonce/adapters/lambda"
	"orderonce/adapters/stripe/webhook"
	"orderonce/domain/order"
	"orderonce/functions/internal/setup"
)

func main() {
	ctx := context.Background()
	handler, err := wire(ctx, os.Environ(), os.Stdout)
	if err != nil {
		lambda.Fail(os.Stdout, err)
	}
	lambda.Start(ctx, apigateway.Handle(handler))
}

func wire(ctx context.Context, environ []string, out io.Writer) (http.Handler, error) {
	c, err := config.Read[environment](environ)
	if err != nil {
		return nil, err
	}
	config.LoadCertificates(c.Stripe.Address)
	meter := lambda.NewMeter(out, "orderonce", map[string]string{"Scope": string(c.Scope)}, time.Now)
	clients := config.Clients{MaxCalls: 1, Observe: meter.Observe, Now: time.Now}
	key, err := c.Stripe.ReadKey(ctx, c.AWS, clients)
	if err != nil {
		return nil, err
	}
	secrets, err := setup.Secret(ctx, c.AWS, clients, c.Secret, c.Secrets)
	if err != nil {
		return nil, err
	}
	if err := webhook.CheckSecrets(strings.Fields(secrets)); err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(c.Secret.Reveal(), "WEBHOOK_SECRETS"), err)
	}
	store := dynamodb.New(c.AWS.Config(config.DynamoDB, clients.AWS()), c.Table).WithStock(c.Stock)
	follower := newFollower(c.Scope.Order(), store, c.Stripe.Options(key, c.Scope, clients))
	return &webhook.Endpoint{
		Secrets: strings.Fields(secrets), Follow: follower.Follow, Now: time.Now,
		Log: lambda.NewLogger(out, slog.LevelInfo), Count: func(result string) {
			meter.Count("Webhooks", "Result", result)
			if result == string(order.HintDisputed) {
				meter.Count("Disputed", "", "")
			}
			meter.Flush() // one request is one invocation
		},
	}, nil
}
