package stripetest_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
)

// docs.stripe.com/testing: what each test PaymentMethod does;
// docs.stripe.com/declines/codes: the reasons.
func TestOutcomesOfTestPaymentMethods(t *testing.T) {
	t.Parallel()
	for want, methods := range map[string]string{
		succeeded:        "pm_card_visa pm_card_visa_debit pm_card_mastercard pm_card_createDispute pm_1MqLiJLkdIwHu7ixUEgbFdYF",
		"200 processing": "pm_usBankAccount_processing",
		genericDecline:   "pm_card_chargeDeclined pm_card_visa_chargeDeclined pm_card_chargeCustomerFail",
		declined + "insufficient_funds" + needsMethod:                    "pm_card_chargeDeclinedInsufficientFunds",
		declined + "lost_card" + needsMethod:                             "pm_card_chargeDeclinedLostCard",
		declined + "stolen_card" + needsMethod:                           "pm_card_chargeDeclinedStolenCard",
		declined + "card_velocity_exceeded" + needsMethod:                "pm_card_visa_chargeDeclinedVelocityLimitExceeded",
		declined + "fraudulent" + needsMethod:                            "pm_card_radarBlock pm_card_riskLevelHighest",
		"402 card_error expired_card expired_card" + needsMethod:         "pm_card_chargeDeclinedExpiredCard",
		"402 card_error incorrect_cvc incorrect_cvc" + needsMethod:       "pm_card_chargeDeclinedIncorrectCvc",
		"402 card_error processing_error processing_error" + needsMethod: "pm_card_chargeDeclinedProcessingError",
		"402 card_error authentication_required authentication_required" + needsMethod: "pm_card_authenticationRequired " +
			"pm_card_threeDSecure2Required",
		"402 card_error" + needsMethod: "pm_uncoded",
		"no": "pm_card_visaa pm_card_ pm_card_visa_chargeDeclinedFraudulent pm_card_chargeDeclinedTypo " +
			"pm_usBankAccount_success pm_ tok_visa",
	} {
		for method := range strings.FieldsSeq(methods) {
			w := newWorld(t, stripetest.Rules{})
			w.Card("pm_uncoded", stripetest.DeclinesUncoded)
			created := w.post(root, "", creation(method))
			if want == "no" {
				if summary(created) != resourceMissing || created.Error.Message != "No such PaymentMethod: '"+method+"'" {
					t.Errorf("%s: got %s, want it unknown", method, created.Body())
				}
				continue
			}
			if got := summary(w.confirm(created.Intent.ID, "k")); got != want {
				t.Errorf("%s: got %q, want %q", method, got, want)
			}
		}
	}
}

// docs.stripe.com/payments/paymentintents/lifecycle: the states, and what moves an intent
// between them.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	testScenarios(t, map[string]scenario{
		"an intent requires a payment method, and then confirmation": {exchanges: func(w *world) []exchange {
			return []exchange{
				{w.post(root, "", "amount=50&currency=usd"), "200 requires_payment_method"},
				{w.createUnder(""), confirmable},
			}
		}},
		"an intent succeeds at most once, whatever the key and its age": {charges: 1, exchanges: func(w *world) []exchange {
			id := w.create("pm_card_visa")
			exchanges := []exchange{{w.confirm(id, "k"), succeeded}}
			for _, key := range []string{"", "k2", "k"} {
				w.now = w.now.AddDate(1, 0, 0)
				exchanges = append(exchanges, exchange{w.confirm(id, key), unexpectedState + " succeeded"})
			}
			return append(exchanges, exchange{w.confirm(id, "", "payment_method=pm_card_amex"), unexpectedState + " succeeded"})
		}},
		"a declined intent needs another payment method": {charges: 1, exchanges: func(w *world) []exchange {
			id := w.create("pm_card_chargeDeclined")
			return []exchange{
				{w.confirm(id, ""), genericDecline},
				{w.confirm(id, ""), unexpectedState + needsMethod},
				{w.confirm(id, "", "payment_method=pm_card_visa"), succeeded},
			}
		}},
		"a processing intent cannot be confirmed": {exchanges: func(w *world) []exchange {
			id := w.create("pm_usBankAccount_processing")
			return []exchange{{w.confirm(id, ""), "200 processing"}, {w.confirm(id, ""), unexpectedState + " processing"}}
		}},
		// docs.stripe.com/api/payment_intents/cancel: an intent is canceled "when it's in
		// one of these statuses", and succeeded is not one of them.
		"an intent is canceled or succeeds, never both": {charges: 1, exchanges: func(w *world) []exchange {
			paid, canceled := w.pay("pm_card_visa"), w.create("pm_card_visa")
			return []exchange{
				{w.post(root+"/"+paid+"/cancel", "", ""), unexpectedState + " succeeded"},
				{w.post(root+"/"+canceled+"/cancel", "", "cancellation_reason=abandoned"), "200 canceled"},
				{w.post(root+"/"+canceled+"/cancel", "", ""), unexpectedState + " canceled"},
				{w.confirm(canceled, ""), unexpectedState + " canceled"},
			}
		}},
		// docs.stripe.com/api/payment_intents/create: confirm=true "attempts to confirm
		// this PaymentIntent immediately".
		"a creation can confirm, and a decline leaves the intent": {charges: 1, exchanges: func(w *world) []exchange {
			const confirm = "&confirm=true&off_session=true"
			return []exchange{
				{w.post(root, "", creation("pm_card_visa")+confirm), succeeded},
				{w.post(root, "", creation("pm_card_chargeDeclined")+confirm), genericDecline},
				{w.read("pi_000002"), "200" + needsMethod},
			}
		}},
		"an unknown id is a 404": {exchanges: func(w *world) (exchanges []exchange) {
			w.create("pm_card_visa")
			for _, id := range []string{"pi_000002", "pi_1", "000001", "pi_", "pi_-00001"} {
				exchanges = append(exchanges, exchange{w.read(id), notFound + " resource_missing"})
			}
			return append(exchanges, exchange{w.confirm("", ""), notFound})
		}},
	})
}

func TestChangesWithoutARequest(t *testing.T) {
	t.Parallel()
	refused := func(w *world, errs ...error) {
		for i, err := range errs {
			if !errors.Is(err, stripetest.ErrNotAllowed) {
				w.t.Errorf("change %d: got %v, want %v", i, err, stripetest.ErrNotAllowed)
			}
		}
	}
	testScenarios(t, map[string]scenario{
		"the bank settles a processing intent either way, once": {charges: 1, exchanges: func(w *world) []exchange {
			paid, bounced := w.pay("pm_usBankAccount_processing"), w.pay("pm_usBankAccount_processing")
			must(w.t, errors.Join(w.Settle(w.now, paid, true), w.Settle(w.now, bounced, false)))
			refused(w, w.Settle(w.now, paid, true), w.Settle(w.now, "pi_9", true))
			return []exchange{{w.read(paid), succeeded}, {w.read(bounced), "200" + needsMethod}}
		}},
		"a customer can pay a declined intent once, and a canceled one never": {
			charges: 1, exchanges: func(w *world) []exchange {
				declined, canceled := w.pay("pm_card_chargeDeclined"), w.create("pm_card_visa")
				must(w.t, errors.Join(w.CustomerPays(w.now, declined), w.CancelInDashboard(w.now, canceled)))
				refused(w, w.CustomerPays(w.now, declined), w.CustomerPays(w.now, canceled))
				return []exchange{{w.read(declined), succeeded}, {w.read(canceled), "200 canceled"}}
			},
		},
		"an edit keeps an intent's status and charge and clears its last error": {exchanges: func(w *world) []exchange {
			id := w.pay("pm_card_chargeDeclined")
			want := *w.Intent(id)
			if want.LastError == nil || want.LatestCharge == "" {
				w.t.Errorf("got %+v before the edit, want an error and a charge", want)
			}
			want.LastError, want.Description = nil, "edited"
			must(w.t, w.EditInDashboard(w.now, id))
			if diff := cmp.Diff(*w.Intent(id), want); diff != "" {
				w.t.Errorf("intent after the edit (-got +want):\n%s", diff)
			}
			return nil
		}},
		"a locked intent cannot be changed": {exchanges: func(w *world) []exchange {
			id := w.create("pm_card_visa")
			w.Begin(w.now, request("POST", root+"/"+id+"/confirm", "", "off_session=true"))
			for i, err := range []error{
				w.CustomerPays(w.now, id), w.CancelInDashboard(w.now, id), w.EditInDashboard(w.now, id),
			} {
				if !errors.Is(err, stripetest.ErrLocked) {
					w.t.Errorf("change %d of a locked intent: got %v, want ErrLocked", i, err)
				}
			}
			return nil
		}},
		// docs.stripe.com/api/payment_methods/detach. The text and the missing code for a
		// detached method are as recorded: github.com/liberapay/liberapay.com/issues/2686.
		"a deleted customer or detached method cannot pay, and the error shows no intent": {exchanges: func(w *world) []exchange {
			first, second := w.create("pm_card_visa"), w.create("pm_card_amex")
			w.DetachMethod("pm_card_visa")
			detached := exchange{w.confirm(first, "k"), invalidRequest}
			w.DeleteCustomer("cus_1")
			return []exchange{
				detached,
				{w.confirm(second, "k"), resourceMissing},
				{w.createUnder(""), resourceMissing},
				{w.read(first), confirmable},
				{w.post(root, "", "amount=50&currency=usd&customer=cus_2"), "200" + needsMethod},
			}
		}},
	})
}

// docs.stripe.com/api/charges/object: failure_code, outcome.reason, outcome.type,
// outcome.network_status. A charge that was declined for want of authentication has
// authentication_required in both, as in recorded charges of test mode.
func TestAChargeShowsWhyItFailed(t *testing.T) {
	t.Parallel()
	const byNetwork, byIssuer = "declined_by_network", "issuer_declined"
	for method, want := range map[string]struct{ code, network, kind, reason any }{
		"pm_card_chargeDeclined":                  {"card_declined", byNetwork, byIssuer, "generic_decline"},
		"pm_card_chargeDeclinedInsufficientFunds": {"card_declined", byNetwork, byIssuer, "insufficient_funds"},
		"pm_card_chargeDeclinedExpiredCard":       {"expired_card", byNetwork, byIssuer, "expired_card"},
		"pm_card_authenticationRequired": {
			"authentication_required", byNetwork, byIssuer, "authentication_required",
		},
		"pm_card_radarBlock": {"card_declined", "not_sent_to_network", "blocked", "highest_risk_level"},
		"pm_card_visa":       {network: "approved_by_network", kind: "authorized"},
	} {
		w := newWorld(t, stripetest.Rules{})
		w.create("pm_card_chargeDeclined") // so that numbers of intents and charges differ
		id := w.pay(method)
		expected := map[string]any{
			"id": "ch_000001", "object": "charge", "amount": 1999.0, "created": float64(w.now.Unix()), "currency": "usd",
			"disputed": false, "failure_code": want.code, "failure_message": "Your card was declined.", "livemode": false,
			"outcome": map[string]any{"network_status": want.network, "reason": want.reason, "type": want.kind},
			"paid":    false, "payment_intent": id, "status": "failed",
			"amount_captured": 0.0, "amount_refunded": 0.0, "refunded": false,
		}
		if want.code == nil {
			expected["status"], expected["amount_captured"], expected["paid"] = "succeeded", 1999.0, true
			expected["failure_message"] = nil
		}
		var full, plain map[string]any
		must(t, json.Unmarshal(w.get(root+"/"+id, "expand[]=latest_charge").Body(), &full))
		must(t, json.Unmarshal(w.read(id).Body(), &plain))
		if diff := cmp.Diff(full["latest_charge"], any(expected)); diff != "" || plain["latest_charge"] != "ch_000001" {
			t.Errorf("%s: charge %v (-got +want):\n%s", method, plain["latest_charge"], diff)
		}
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	id := w.create("pm_card_chargeDeclined")
	w.confirm(id, "k1")
	w.confirm(id, "k2", "payment_method=pm_card_visa")
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
	if diff := cmp.Diff(w.LedgerAfter(1), w.Charges("ORD1")); diff != "" || w.Attempts() != 2 {
		t.Errorf("the second of %d charges is not the one that succeeded:\n%s", w.Attempts(), diff)
	}
}
