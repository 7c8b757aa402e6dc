package stripetest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
)

// docs.stripe.com/testing: what each test PaymentMethod does;
// docs.stripe.com/declines/codes: the reasons;
// docs.stripe.com/api/payment_intents/confirm: off_session means that the customer cannot
// authenticate.
func TestConfirmOffSession(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]string{
		"pm_card_visa":                            "200 succeeded",
		"pm_card_mastercard":                      "200 succeeded",
		"pm_1MqLiJLkdIwHu7ixUEgbFdYF":             "200 succeeded",
		"pm_card_chargeDeclined":                  genericDecline,
		"pm_card_visa_chargeDeclined":             genericDecline,
		"pm_card_chargeDeclinedInsufficientFunds": declined + "insufficient_funds requires_payment_method",
		"pm_card_chargeDeclinedLostCard":          declined + "lost_card requires_payment_method",
		"pm_card_chargeDeclinedStolenCard":        declined + "stolen_card requires_payment_method",
		"pm_card_chargeDeclinedExpiredCard":       "402 card_error expired_card expired_card requires_payment_method",
		"pm_card_chargeDeclinedIncorrectCvc":      "402 card_error incorrect_cvc incorrect_cvc requires_payment_method",
		"pm_card_chargeDeclinedProcessingError":   "402 card_error processing_error processing_error requires_payment_method",
		"pm_card_authenticationRequired":          requiresAuthentication,
		"pm_usBankAccount_processing":             "200 processing",

		"pm_card_visa_chargeDeclinedVelocityLimitExceeded":              declined + "card_velocity_exceeded requires_payment_method",
		"pm_card_chargeCustomerFail":                                    declined + "generic_decline requires_payment_method",
		"pm_card_radarBlock":                                            declined + "fraudulent requires_payment_method",
		"pm_card_riskLevelHighest":                                      declined + "fraudulent requires_payment_method",
		"pm_card_riskLevelElevated":                                     "200 succeeded",
		"pm_card_avsFail":                                               "200 succeeded",
		"pm_card_createDispute":                                         "200 succeeded",
		"pm_card_pendingRefund":                                         "200 succeeded",
		"pm_card_threeDSecureOptional":                                  "200 succeeded",
		"pm_card_threeDSecureRequiredProcessingError":                   declined + "generic_decline requires_payment_method",
		"pm_card_authenticationRequiredSetupForOffSession":              "200 succeeded",
		"pm_card_authenticationRequiredChargeDeclinedInsufficientFunds": declined + "insufficient_funds requires_payment_method",
		"pm_card_threeDSecure2Required":                                 requiresAuthentication,
		"pm_card_threeDSecureRequired":                                  requiresAuthentication,
		"pm_card_threeDSecureRequiredChargeDeclined":                    requiresAuthentication,
		"pm_card_authenticationRequiredOnSetup":                         requiresAuthentication,
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Rules{})
			if got := summary(w.confirm(w.create(method), "k")); got != want {
				t.Errorf("confirm: got %q, want %q", got, want)
			}
		})
	}
}

// docs.stripe.com/testing: on session, a card may require authentication that an
// off-session payment does not need.
func TestConfirmOnSession(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]string{
		"pm_card_visa":                                                  "200 succeeded",
		"pm_card_radarBlock":                                            declined + "fraudulent requires_payment_method",
		"pm_card_authenticationRequired":                                "200 requires_action",
		"pm_card_threeDSecure2Required":                                 "200 requires_action",
		"pm_card_authenticationRequiredSetupForOffSession":              "200 requires_action",
		"pm_card_authenticationRequiredChargeDeclinedInsufficientFunds": "200 requires_action",
	} {
		w := newWorld(t, stripetest.Rules{})
		if got := summary(w.post(root+"/"+w.create(method)+"/confirm", "", "")); got != want {
			t.Errorf("%s: got %q, want %q", method, got, want)
		}
	}
}

// docs.stripe.com/payments/paymentintents/lifecycle: the states, and what moves an intent
// between them.
func TestLifecycle(t *testing.T) {
	t.Parallel()

	t.Run("an intent requires a payment method, and then confirmation", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		if got, want := summary(w.post(root, "", "amount=50&currency=usd")),
			"200 requires_payment_method"; got != want {
			t.Errorf("without: got %q, want %q", got, want)
		}
		if got, want := summary(w.post(root, "", creation("pm_card_visa"))),
			"200 requires_confirmation"; got != want {
			t.Errorf("with: got %q, want %q", got, want)
		}
		if got := w.Charges("ORD1"); len(got) != 0 {
			t.Errorf("got charges %v, want 0", got)
		}
	})

	t.Run("an intent succeeds at most once, whatever the key and its age", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		id := w.create("pm_card_visa")
		if got, want := summary(w.confirm(id, "k")), "200 succeeded"; got != want {
			t.Errorf("first: got %q, want %q", got, want)
		}
		for _, key := range []string{"", "k2", "k"} {
			w.now = w.now.AddDate(1, 0, 0)
			if got, want := summary(w.confirm(id, key)), unexpectedState+" succeeded"; got != want {
				t.Errorf("again under %s: got %q, want %q", key, got, want)
			}
		}
		other := w.post(root+"/"+id+"/confirm", "", "off_session=true&payment_method=pm_card_amex")
		if got, want := summary(other), unexpectedState+" succeeded"; got != want {
			t.Errorf("with another card: got %q, want %q", got, want)
		}
		if !strings.Contains(other.Error.Message, "already succeeded after being previously confirmed") {
			t.Errorf("message: %q", other.Error.Message)
		}
		if got := w.Charges("ORD1"); len(got) != 1 {
			t.Errorf("got charges %v, want 1", got)
		}
	})

	t.Run("a declined intent needs another payment method", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		id := w.create("pm_card_chargeDeclined")
		w.confirm(id, "")
		if got := w.Intent(id); got.PaymentMethod != "" || got.LastError.DeclineCode != "generic_decline" {
			t.Errorf("after the decline: got method %q and error %+v", got.PaymentMethod, got.LastError)
		}
		if got, want := summary(w.confirm(id, "")), unexpectedState+" requires_payment_method"; got != want {
			t.Errorf("without: got %q, want %q", got, want)
		}
		if got, want := summary(w.post(root+"/"+id+"/confirm", "", "off_session=true&payment_method=pm_card_visa")),
			"200 succeeded"; got != want {
			t.Errorf("with: got %q, want %q", got, want)
		}
		if got := w.Charges("ORD1"); len(got) != 1 {
			t.Errorf("got charges %v, want 1", got)
		}
	})

	t.Run("a card that requires authentication on session makes the intent requires_action", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		id := w.create("pm_card_authenticationRequired")
		if got, want := summary(w.post(root+"/"+id+"/confirm", "", "")), "200 requires_action"; got != want {
			t.Errorf("confirm: got %q, want %q", got, want)
		}
		if err := w.CustomerPays(w.now, id); err != nil {
			t.Fatal(err)
		}
		if got, want := summary(w.get(root+"/"+id)), "200 succeeded"; got != want {
			t.Errorf("read: got %q, want %q", got, want)
		}
		if got := w.Charges("ORD1"); len(got) != 1 {
			t.Errorf("got charges %v, want 1", got)
		}
	})

	t.Run("a canceled or processing intent cannot be confirmed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		canceled, processing := w.create("pm_card_visa"), w.create("pm_usBankAccount_processing")
		if got, want := summary(w.post(root+"/"+canceled+"/cancel", "", "cancellation_reason=abandoned")),
			"200 canceled"; got != want {
			t.Errorf("cancel: got %q, want %q", got, want)
		}
		if got, want := summary(w.confirm(canceled, "")), unexpectedState+" canceled"; got != want {
			t.Errorf("confirm canceled: got %q, want %q", got, want)
		}
		if got, want := summary(w.confirm(processing, "")), "200 processing"; got != want {
			t.Errorf("process: got %q, want %q", got, want)
		}
		if got, want := summary(w.confirm(processing, "")), unexpectedState+" processing"; got != want {
			t.Errorf("confirm processing: got %q, want %q", got, want)
		}
		if got := w.Charges("ORD1"); len(got) != 0 {
			t.Errorf("got charges %v, want 0", got)
		}
	})

	// docs.stripe.com/api/payment_intents/cancel: an intent is canceled "when it's in one
	// of these statuses", and succeeded is not one of them.
	t.Run("a succeeded or canceled intent cannot be canceled", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		id := w.create("pm_card_visa")
		w.confirm(id, "")
		if got, want := summary(w.post(root+"/"+id+"/cancel", "", "")),
			unexpectedState+" succeeded"; got != want {
			t.Errorf("succeeded: got %q, want %q", got, want)
		}
		other := w.create("pm_card_visa")
		w.post(root+"/"+other+"/cancel", "", "")
		if got, want := summary(w.post(root+"/"+other+"/cancel", "", "")),
			unexpectedState+" canceled"; got != want {
			t.Errorf("canceled: got %q, want %q", got, want)
		}
	})

	// docs.stripe.com/api/payment_intents/create: confirm=true "attempts to confirm this
	// PaymentIntent immediately".
	t.Run("a creation can confirm in the same call, and a decline leaves the intent", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		if got, want := summary(w.post(root, "", creation("pm_card_visa")+"&confirm=true&off_session=true")),
			"200 succeeded"; got != want {
			t.Errorf("paid: got %q, want %q", got, want)
		}
		if got, want := summary(w.post(root, "", creation("pm_card_chargeDeclined")+"&confirm=true&off_session=true")),
			genericDecline; got != want {
			t.Errorf("declined: got %q, want %q", got, want)
		}
		if got := len(w.Intents()); got != 2 {
			t.Errorf("intents: got %d, want 2", got)
		}
		if got := w.Charges("ORD1"); len(got) != 1 {
			t.Errorf("got charges %v, want 1", got)
		}
	})

	t.Run("an unknown id is a 404", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		w.create("pm_card_visa")
		for _, id := range []string{"pi_000002", "pi_1", "000001", "pi_", "pi_-00001"} {
			if got, want := summary(w.get(root+"/"+id)),
				"404 invalid_request_error resource_missing"; got != want {
				t.Errorf("%s: got %q, want %q", id, got, want)
			}
		}
	})
}

func TestCardSetsWhatAPaymentMethodDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	w.Card("pm_saved", stripetest.InsufficientFunds)
	w.Card("pm_slow", stripetest.Processing)
	if got, want := summary(w.confirm(w.create("pm_saved"), "")),
		declined+"insufficient_funds requires_payment_method"; got != want {
		t.Errorf("declines: got %q, want %q", got, want)
	}
	if got, want := summary(w.confirm(w.create("pm_slow"), "")), "200 processing"; got != want {
		t.Errorf("processes: got %q, want %q", got, want)
	}
	w.Card("pm_uncoded", stripetest.DeclinesUncoded)
	if got, want := summary(w.confirm(w.create("pm_uncoded"), "")),
		"402 card_error requires_payment_method"; got != want {
		t.Errorf("declines without a code: got %q, want %q", got, want)
	}
}

func TestChangesWithoutARequest(t *testing.T) {
	t.Parallel()

	t.Run("the bank settles a processing intent either way, once", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		paid, refused := w.create("pm_usBankAccount_processing"), w.create("pm_usBankAccount_processing")
		w.confirm(paid, "")
		w.confirm(refused, "")
		if err := errors.Join(w.Settle(w.now, paid, true), w.Settle(w.now, refused, false)); err != nil {
			t.Fatal(err)
		}
		if got, want := summary(w.get(root+"/"+paid)), "200 succeeded"; got != want {
			t.Errorf("paid: got %q, want %q", got, want)
		}
		if got, want := summary(w.get(root+"/"+refused)), "200 requires_payment_method"; got != want {
			t.Errorf("refused: got %q, want %q", got, want)
		}
		var state *stripetest.StateError
		if err := w.Settle(w.now, paid, true); !errors.As(err, &state) ||
			state.Status != stripetest.StatusSucceeded {
			t.Errorf("a second settlement: got %v, want a *StateError", err)
		}
		if got := w.Charges("ORD1"); len(got) != 1 {
			t.Errorf("got charges %v, want 1", got)
		}
	})

	t.Run("a customer can pay a declined intent once, and a canceled one never", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		id := w.create("pm_card_chargeDeclined")
		w.confirm(id, "")
		if err := w.CustomerPays(w.now, id); err != nil {
			t.Fatal(err)
		}
		var state *stripetest.StateError
		if err := w.CustomerPays(w.now, id); !errors.As(err, &state) {
			t.Errorf("a second payment: got %v, want a *StateError", err)
		}
		canceled := w.create("pm_card_visa")
		if err := w.CancelInDashboard(w.now, canceled); err != nil {
			t.Fatal(err)
		}
		if err := w.CustomerPays(w.now, canceled); !errors.As(err, &state) {
			t.Errorf("payment of a canceled intent: got %v, want a *StateError", err)
		}
		if got := w.Charges("ORD1"); len(got) != 1 {
			t.Errorf("got charges %v, want 1", got)
		}
	})

	t.Run("an edit keeps an intent's status and charge and clears its last error", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		id := w.create("pm_card_chargeDeclined")
		w.confirm(id, "")
		before := w.Intent(id)
		if err := w.EditInDashboard(w.now, id); err != nil {
			t.Fatal(err)
		}
		after := w.Intent(id)
		if before.LastError == nil || after.LastError != nil {
			t.Errorf(
				"last error: got %v before and %v after the edit, want one and none", before.LastError, after.LastError,
			)
		}
		if after.LatestCharge == "" || after.LatestCharge != before.LatestCharge {
			t.Errorf("latest charge: got %q, want %q", after.LatestCharge, before.LatestCharge)
		}
		if got, want := summary(w.get(root+"/"+id)), "200 requires_payment_method"; got != want {
			t.Errorf("read: got %q, want %q", got, want)
		}
	})

	t.Run("a missing or locked intent cannot be changed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		id := w.create("pm_card_visa")
		if _, refusal := w.Begin(w.now, request("POST", root+"/"+id+"/confirm", "", "off_session=true")); refusal != nil {
			t.Fatalf("begin: %s", refusal.Body())
		}
		got := []error{
			w.CustomerPays(w.now, id), w.CancelInDashboard(w.now, id), w.EditInDashboard(w.now, id),
			w.Settle(w.now, "pi_9", true), w.EditInDashboard(w.now, "pi_9"),
		}
		want := []error{
			stripetest.ErrLocked, stripetest.ErrLocked, stripetest.ErrLocked,
			stripetest.ErrNoIntent, stripetest.ErrNoIntent,
		}
		for i := range want {
			if !errors.Is(got[i], want[i]) {
				t.Errorf("change %d: got %v, want %v", i, got[i], want[i])
			}
		}
	})
}

func TestLedger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	id := w.create("pm_card_chargeDeclined")
	w.confirm(id, "k1")
	w.post(root+"/"+id+"/confirm", "k2", "off_session=true&payment_method=pm_card_visa")
	line := stripetest.Charge{
		At: w.now, Intent: id, OrderID: "ORD1", Scope: "test", Amount: 1999, Currency: "usd",
		Outcome: stripetest.Declined, Key: "k1", Request: 2,
		Failure: stripetest.ChargeFailure{
			Code: "card_declined", Message: "Your card was declined.", Type: "issuer_declined", Reason: "generic_decline",
		},
	}
	paid := line
	paid.Outcome, paid.Failure, paid.Key, paid.Request = stripetest.Charged, stripetest.ChargeFailure{}, "k2", 3
	if diff := cmp.Diff(w.Ledger(), []stripetest.Charge{line, paid}); diff != "" {
		t.Errorf("ledger (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(w.Charges("ORD1"), []stripetest.Charge{paid}); diff != "" {
		t.Errorf("charges (-got +want):\n%s", diff)
	}
}

// docs.stripe.com/api/payment_intents/list: newest first, by customer, "limit can range
// between 1 and 100"; docs.stripe.com/api/pagination: starting_after is an object id.
func TestList(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{ListLag: time.Minute})
	for _, customer := range []string{"cus_a", "cus_b", "cus_a", "cus_a"} {
		w.post(root, "", "amount=50&currency=usd&customer="+customer)
	}
	ids := func(form string) (ids []string) {
		for _, intent := range w.Do(w.now, request("GET", root, "", form)).List.Intents {
			ids = append(ids, intent.ID)
		}
		return ids
	}
	if got := ids(""); got != nil {
		t.Errorf("list within the lag: got %v, want none", got)
	}
	w.now = w.now.Add(time.Minute)
	for form, want := range map[string][]string{
		"":                       {"pi_000004", "pi_000003", "pi_000002", "pi_000001"},
		"customer=cus_a&limit=2": {"pi_000004", "pi_000003"},
		"customer=cus_a&starting_after=pi_000003":    {"pi_000001"},
		"customer=cus_none&starting_after=pi_000003": nil,
	} {
		if diff := cmp.Diff(ids(form), want); diff != "" {
			t.Errorf("list %q (-got +want):\n%s", form, diff)
		}
	}
	three := w.Do(w.now, request("GET", root, "", "limit=3")).List.More
	four := w.Do(w.now, request("GET", root, "", "limit=4")).List.More
	if !three || four {
		t.Errorf("has_more with limits 3 and 4: got %t and %t, want true and false", three, four)
	}
}
