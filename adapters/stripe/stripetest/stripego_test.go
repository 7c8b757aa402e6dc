package stripetest_test

import (
	"errors"
	"testing"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/client"

	"orderonce/adapters/stripe/stripetest"
)

// stripeClient is stripe-go as a client of the Stripe double, with a number of retries.
func stripeClient(s *site, retries int64) *client.API {
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL:               new(s.URL),
		HTTPClient:        s.client,
		MaxNetworkRetries: new(retries),
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull},
		EnableTelemetry:   new(false),
	})
	return client.New("sk_test_pretend", &stripe.Backends{API: backend, Connect: backend, Uploads: backend})
}

func createParams(method, key string) *stripe.PaymentIntentParams {
	params := &stripe.PaymentIntentParams{
		Amount: new(int64(1999)), Currency: new("usd"), Customer: new("cus_1"), PaymentMethod: new(method),
		AutomaticPaymentMethods: &stripe.PaymentIntentAutomaticPaymentMethodsParams{
			Enabled: new(true), AllowRedirects: new("never"),
		},
		CaptureMethod: new("automatic"),
	}
	params.AddMetadata("orderId", "ORD1")
	params.SetIdempotencyKey(key)
	return params
}

func confirmParams(key string) *stripe.PaymentIntentConfirmParams {
	params := &stripe.PaymentIntentConfirmParams{OffSession: new(true)}
	params.SetIdempotencyKey(key)
	return params
}

func TestStripeGoUnderstandsTheDouble(t *testing.T) {
	t.Parallel()

	t.Run("stripe-go creates, confirms, reads and lists an intent, and sees a replay", func(t *testing.T) {
		t.Parallel()
		api := stripeClient(serve(t, stripetest.Options{}), 0)
		created, err := api.PaymentIntents.New(createParams("pm_card_visa", "p"))
		if err != nil || created.Status != stripe.PaymentIntentStatusRequiresConfirmation ||
			created.Metadata["orderId"] != "ORD1" {
			t.Fatalf("new: %+v, %v", created, err)
		}
		paid, err := api.PaymentIntents.Confirm(created.ID, confirmParams("c"))
		if err != nil || paid.Status != stripe.PaymentIntentStatusSucceeded || paid.AmountReceived != 1999 ||
			paid.LatestCharge.ID != "ch_000001" {
			t.Fatalf("confirm: %+v, %v", paid, err)
		}
		replayed, err := api.PaymentIntents.Confirm(created.ID, confirmParams("c"))
		if err != nil || replayed.LastResponse.Header.Get("Idempotent-Replayed") != "true" {
			t.Fatalf("confirm again: %+v, %v", replayed, err)
		}
		read, err := api.PaymentIntents.Get(created.ID, nil)
		if err != nil || read.Status != stripe.PaymentIntentStatusSucceeded ||
			read.PaymentMethod.ID != "pm_card_visa" || read.Customer.ID != "cus_1" {
			t.Fatalf("get: %+v, %v", read, err)
		}
		list := api.PaymentIntents.List(&stripe.PaymentIntentListParams{Customer: new("cus_1")})
		if !list.Next() || list.PaymentIntent().ID != created.ID || list.Next() || list.Err() != nil {
			t.Fatalf("list: %v", list.Err())
		}
		disputed := api.Disputes.List(&stripe.DisputeListParams{PaymentIntent: &created.ID})
		if disputed.Next() || disputed.Err() != nil {
			t.Fatalf("list disputes: %v", disputed.Err())
		}
	})

	t.Run("stripe-go finds the intent inside a decline and inside an unexpected state", func(t *testing.T) {
		t.Parallel()
		api := stripeClient(serve(t, stripetest.Options{}), 0)
		created, err := api.PaymentIntents.New(createParams("pm_card_authenticationRequired", "p"))
		must(t, err)
		_, err = api.PaymentIntents.Confirm(created.ID, confirmParams("c"))
		if got := stripeError(t, err); got.Code != stripe.ErrorCodeAuthenticationRequired || got.HTTPStatusCode != 402 ||
			got.Type != stripe.ErrorTypeCard ||
			got.PaymentIntent.Status != stripe.PaymentIntentStatusRequiresPaymentMethod ||
			got.PaymentIntent.LastPaymentError.PaymentMethod.ID != "pm_card_authenticationRequired" {
			t.Errorf("decline: %+v", got)
		}
		_, err = api.PaymentIntents.Confirm(created.ID, confirmParams("c2"))
		if got := stripeError(t, err); got.Code != stripe.ErrorCodePaymentIntentUnexpectedState ||
			got.PaymentIntent.ID != created.ID {
			t.Errorf("unexpected state: %+v", got)
		}
		if canceled, err := api.PaymentIntents.Cancel(created.ID, nil); err != nil ||
			canceled.Status != stripe.PaymentIntentStatusCanceled {
			t.Errorf("cancel: %+v, %v", canceled, err)
		}
	})

	t.Run("stripe-go does not retry a POST that got a 500, and retries a lock timeout", func(t *testing.T) {
		t.Parallel()
		s := serve(t, stripetest.Options{})
		api := stripeClient(s, 1)
		s.Fail(stripetest.Fault{Kind: stripetest.ServerErrorAfterEffect, On: stripetest.Create})
		_, err := api.PaymentIntents.New(createParams("pm_card_visa", "p"))
		if got := stripeError(t, err); got.HTTPStatusCode != 500 || s.Count(stripetest.Create) != 1 {
			t.Errorf("500: %+v after %d calls", got, s.Count(stripetest.Create))
		}
		s.Fail(stripetest.Fault{Kind: stripetest.LockTimeout, On: stripetest.Confirm})
		if _, err := api.PaymentIntents.Confirm("pi_000001", confirmParams("c")); err != nil ||
			s.Count(stripetest.Confirm) != 2 {
			t.Errorf("lock timeout: %v after %d calls", err, s.Count(stripetest.Confirm))
		}
		if got := s.charges(); len(got) != 1 {
			t.Errorf("got charges %v, want 1", got)
		}
	})
}

func stripeError(t *testing.T, err error) *stripe.Error {
	t.Helper()
	var got *stripe.Error
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want a *stripe.Error", err)
	}
	return got
}
