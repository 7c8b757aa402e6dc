package stripetest_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		CaptureMethod: new("automatic"), Metadata: map[string]string{"orderId": "ORD1"},
	}
	params.SetIdempotencyKey(key)
	return params
}

func confirmParams(key string) *stripe.PaymentIntentConfirmParams {
	params := &stripe.PaymentIntentConfirmParams{OffSession: new(true)}
	params.SetIdempotencyKey(key)
	return params
}

// Stripe's own library sends its requests, and decodes the responses into its types.
func TestStripeGoUnderstandsTheDouble(t *testing.T) {
	t.Parallel()
	api := stripeClient(serve(t, stripetest.Options{}), 0)
	created, err := api.PaymentIntents.New(createParams("pm_card_visa", "p"))
	must(t, err)
	_, err = api.PaymentIntents.Confirm(created.ID, confirmParams("c"))
	must(t, err)
	replayed, err := api.PaymentIntents.Confirm(created.ID, confirmParams("c"))
	must(t, err)
	made, err := api.Refunds.New(&stripe.RefundParams{
		PaymentIntent: &created.ID, Amount: new(int64(500)), Reason: new("duplicate"),
	})
	must(t, err)
	refund, err := api.Refunds.Get(made.ID, nil)
	must(t, err)
	expand := &stripe.PaymentIntentParams{}
	expand.AddExpand("latest_charge.refunds")
	read, err := api.PaymentIntents.Get(created.ID, expand)
	must(t, err)
	charge := read.LatestCharge
	got := []any{
		created.Status, created.Metadata["orderId"], replayed.LastResponse.Header.Get("Idempotent-Replayed"), replayed.AmountReceived,
		refund.Status, refund.Reason, refund.Amount, read.PaymentMethod.ID, read.Customer.ID,
		charge.ID, charge.AmountRefunded, len(charge.Refunds.Data),
	}
	want := []any{
		stripe.PaymentIntentStatusRequiresConfirmation, "ORD1", "true", int64(1999),
		stripe.RefundStatusSucceeded, stripe.RefundReasonDuplicate, int64(500), "pm_card_visa", "cus_1",
		"ch_000001", int64(500), 1,
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	intents := api.PaymentIntents.List(&stripe.PaymentIntentListParams{Customer: new("cus_1")})
	refunds := api.Refunds.List(&stripe.RefundListParams{PaymentIntent: &created.ID})
	if !intents.Next() || intents.Next() || !refunds.Next() || refunds.Refund().ID != refund.ID || refunds.Next() {
		t.Errorf("lists: %v, %v, want one intent and one refund", intents.Err(), refunds.Err())
	}
	disputed := api.Disputes.List(&stripe.DisputeListParams{PaymentIntent: &created.ID})
	if disputed.Next() || disputed.Err() != nil {
		t.Errorf("list disputes: %v, want none", disputed.Err())
	}
}

func TestStripeGoFindsTheIntentInsideAnError(t *testing.T) {
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
}

func TestStripeGoRetriesWhatTheDoubleSaysItMay(t *testing.T) {
	t.Parallel()
	s := serve(t, stripetest.Options{})
	api := stripeClient(s, 1)
	s.Fail(stripetest.Fault{Kind: stripetest.ServerErrorAfterEffect, On: stripetest.Create})
	_, err := api.PaymentIntents.New(createParams("pm_card_visa", "p"))
	if got := stripeError(t, err); got.HTTPStatusCode != 500 || s.Count(stripetest.Create) != 1 {
		t.Errorf("500: %+v after %d calls", got, s.Count(stripetest.Create))
	}
	s.Fail(stripetest.Fault{Kind: stripetest.LockTimeout, On: stripetest.Confirm})
	if _, err := api.PaymentIntents.Confirm("pi_000001", confirmParams("c")); err != nil || s.Count(stripetest.Confirm) != 2 {
		t.Errorf("lock timeout: %v after %d calls", err, s.Count(stripetest.Confirm))
	}
}

func stripeError(t *testing.T, err error) *stripe.Error {
	t.Helper()
	got, ok := errors.AsType[*stripe.Error](err)
	if !ok {
		t.Fatalf("got %v, want a *stripe.Error", err)
	}
	return got
}
