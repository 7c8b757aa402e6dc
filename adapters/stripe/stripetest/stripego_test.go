package stripetest_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/client"

	"orderonce/adapters/stripe/stripetest"
)

// Stripe's own library sends its requests, decodes the responses into its types, and
// retries what the double says it may.
func TestStripeGoUnderstandsTheDouble(t *testing.T) {
	s := serve(t, stripetest.Options{})
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL: new(s.URL), HTTPClient: s.client, MaxNetworkRetries: new(int64(1)),
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull}, EnableTelemetry: new(false),
	})
	api := client.New("sk_test_pretend", &stripe.Backends{API: backend, Connect: backend, Uploads: backend})
	create := func(method string) *stripe.PaymentIntentParams {
		return &stripe.PaymentIntentParams{
			Amount: new(int64(1999)), Currency: new("usd"), Customer: new("cus_1"), PaymentMethod: new(method),
			CaptureMethod: new("automatic"), Metadata: map[string]string{"orderId": "ORD1"},
		}
	}
	confirm := &stripe.PaymentIntentConfirmParams{OffSession: new(true)}
	confirm.SetIdempotencyKey("c")
	created, err := api.PaymentIntents.New(create("pm_card_visa"))
	must(t, err)
	s.Fail(stripetest.Fault{Kind: stripetest.LockTimeout, On: stripetest.Confirm})
	_, err = api.PaymentIntents.Confirm(created.ID, confirm)
	must(t, err)
	replayed, err := api.PaymentIntents.Confirm(created.ID, confirm)
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
		charge.ID, charge.AmountRefunded, len(charge.Refunds.Data), s.Count(stripetest.Confirm),
	}
	want := []any{
		stripe.PaymentIntentStatusRequiresConfirmation, "ORD1", "true", int64(1999),
		stripe.RefundStatusSucceeded, stripe.RefundReasonDuplicate, int64(500), "pm_card_visa", "cus_1",
		"ch_000001", int64(500), 1, 3, // the second confirmation repeats the first
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	intents := api.PaymentIntents.List(&stripe.PaymentIntentListParams{})
	refunds := api.Refunds.List(&stripe.RefundListParams{PaymentIntent: &created.ID})
	if !intents.Next() || intents.Next() || !refunds.Next() || refunds.Refund().ID != refund.ID || refunds.Next() {
		t.Errorf("lists: %v, %v, want one intent and one refund", intents.Err(), refunds.Err())
	}

	created, err = api.PaymentIntents.New(create("pm_card_authenticationRequired"))
	must(t, err)
	for _, code := range []stripe.ErrorCode{stripe.ErrorCodeAuthenticationRequired, stripe.ErrorCodePaymentIntentUnexpectedState} {
		_, err = api.PaymentIntents.Confirm(created.ID, &stripe.PaymentIntentConfirmParams{OffSession: new(true)})
		got, ok := errors.AsType[*stripe.Error](err)
		if !ok || got.Code != code || got.PaymentIntent.Status != stripe.PaymentIntentStatusRequiresPaymentMethod ||
			got.PaymentIntent.LastPaymentError.PaymentMethod.ID != "pm_card_authenticationRequired" {
			t.Errorf("got %v, want %s with the declined intent", err, code)
		}
	}
}
