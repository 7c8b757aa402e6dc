package system

import (
	"context"
	"maps"
	"sync"
	"time"

	"orderonce/adapters/apigateway/apigatewaytest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
)

// WebhookSecret signs the local system's webhooks. It is valid nowhere.
const WebhookSecret = "whsec_pretend"

const webhookRoute = "POST /stripe/webhook"

// startWebhook starts the webhook function behind an HTTP API, and Stripe's events to it.
func (s *System) startWebhook(ctx context.Context) error {
	if s.Options.Webhook == "" {
		return nil
	}
	host, err := lambdatest.Start(lambdatest.Options{
		Binary: s.Options.Webhook, Env: s.webhookEnv(), Timeout: s.Options.FunctionTimeout,
		Instances: s.Options.Instances, Output: s.Options.Output,
	})
	if err != nil {
		return err
	}
	s.Webhook = host
	s.closers = append(s.closers, host.Close)
	api, err := apigatewaytest.Serve(&apigatewaytest.API{
		Routes: map[string]func(context.Context, []byte) ([]byte, error){webhookRoute: host.Invoke}, Now: time.Now,
	}, s.Options.Ports.API)
	if err != nil {
		return err
	}
	s.API = api
	s.closers = append(s.closers, api.Close)
	s.Events = &stripetest.Webhooks{
		Server: s.Stripe, Deliveries: s.Options.Deliveries, Now: time.Now,
		Endpoints: []stripetest.WebhookEndpoint{
			{URL: api.URL + "/stripe/webhook", Secrets: []string{WebhookSecret}},
		},
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var run sync.WaitGroup
	run.Go(func() { s.Events.Run(ctx) })
	s.closers = append(s.closers, func() error {
		stop()
		run.Wait()
		return nil
	})
	return nil
}

func (s *System) webhookEnv() map[string]string {
	env := map[string]string{
		"AWS_REGION":                sqstest.Region,
		"AWS_ACCESS_KEY_ID":         "pretend",
		"AWS_SECRET_ACCESS_KEY":     "pretend",
		"AWS_ENDPOINT_URL_DYNAMODB": s.Proxy.URL,
		"ORDERS_TABLE":              s.Options.Table,
		"SCOPE":                     Scope,
		"STRIPE_SECRET_KEY":         PretendKey,
		"STRIPE_API_BASE":           s.Stripe.URL,
		"STRIPE_TIMEOUT":            StripeWaits.String(),
		"WEBHOOK_SECRETS":           WebhookSecret,
	}
	maps.Copy(env, s.Options.Env)
	return env
}

// Heard waits until the webhook function has answered every event that is due.
func (s *System) Heard(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for s.Events != nil && !s.Events.Idle() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
