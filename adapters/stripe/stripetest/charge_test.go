package stripetest_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
)

// docs.stripe.com/api/charges/object: failure_code, outcome.reason, outcome.type,
// outcome.network_status. A charge that was declined for want of authentication has
// authentication_required in both, as in recorded charges of test mode.
func TestAnExpandedChargeShowsWhyItFailed(t *testing.T) {
	t.Parallel()
	const declined, byIssuer = "declined_by_network", "issuer_declined"
	for method, want := range map[string]struct{ code, message, network, kind, reason any }{
		"pm_card_chargeDeclined": {"card_declined", "Your card was declined.", declined, byIssuer, "generic_decline"},
		"pm_card_chargeDeclinedInsufficientFunds": {
			"card_declined", "Your card has insufficient funds.", declined, byIssuer, "insufficient_funds",
		},
		"pm_card_chargeDeclinedExpiredCard": {"expired_card", "Your card has expired.", declined, byIssuer, "expired_card"},
		"pm_card_authenticationRequired": {
			"authentication_required", "Your card was declined. This transaction requires authentication.",
			declined, byIssuer, "authentication_required",
		},
		"pm_card_radarBlock": {
			"card_declined", "Your card was declined.", "not_sent_to_network", "blocked", "highest_risk_level",
		},
		"pm_card_visa": {network: "approved_by_network", kind: "authorized"},
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Rules{})
			w.create("pm_card_chargeDeclined") // so that numbers of intents and charges differ
			id := w.create(method)
			w.confirm(id, "")
			expected := map[string]any{
				"id": "ch_000001", "object": "charge", "amount": 1999.0, "created": float64(w.now.Unix()), "currency": "usd",
				"disputed": false, "failure_code": want.code, "failure_message": want.message, "livemode": false,
				"outcome": map[string]any{"network_status": want.network, "reason": want.reason, "type": want.kind},
				"paid":    want.code == nil, "payment_intent": id, "status": "failed",
				"amount_captured": 0.0, "amount_refunded": 0.0, "refunded": false,
			}
			if want.code == nil {
				expected["status"], expected["amount_captured"] = "succeeded", 1999.0
			}
			if diff := cmp.Diff(latestCharge(w, id, "expand[]=latest_charge"), any(expected)); diff != "" {
				t.Errorf("charge (-got +want):\n%s", diff)
			}
		})
	}
}

// latestCharge reads an intent and returns its latest charge.
func latestCharge(w *world, id, form string) any {
	w.t.Helper()
	var intent map[string]any
	must(w.t, json.Unmarshal(w.Do(w.now, request("GET", root+"/"+id, "", form)).Body(), &intent))
	return intent["latest_charge"]
}

func TestTheLatestChargeIsAnIDUnlessItIsExpanded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	id := w.create("pm_card_visa")
	for _, form := range []string{"", "expand[]=latest_charge"} {
		if got := latestCharge(w, id, form); got != nil {
			t.Errorf("%q before a confirmation: got %v, want none", form, got)
		}
	}
	w.confirm(id, "")
	if got := latestCharge(w, id, ""); got != "ch_000001" {
		t.Errorf("got %v, want the id ch_000001", got)
	}
	if _, expanded := latestCharge(w, id, "expand[0]=latest_charge").(map[string]any); !expanded {
		t.Error("the charge is not expanded")
	}
	must(w.t, w.EditInDashboard(w.now, id))
	if got := latestCharge(w, id, ""); got != "ch_000001" {
		t.Errorf("after an edit: got %v, want the id ch_000001", got)
	}
}

// docs.stripe.com/expand and docs.stripe.com/stripe-apps/reference/permissions; the texts
// are those that users report: github.com/gitpod-io/gitpod/issues/13035 and
// github.com/tylerjrichards/st-paywall/issues/36.
func TestAnExpansionIsRefusedAsStripeRefusesIt(t *testing.T) {
	t.Parallel()
	const forbidden = "The provided key 'rk_test_*****' does not have the required permissions for this endpoint on account " +
		"'acct_pretend'. Having the 'rak_charge_read' permission would allow this request to continue."
	const secret, restricted, charge = "sk_test_a", "rk_test_a", "expand[]=latest_charge"
	for claim, tt := range map[string]struct {
		noCharges     bool
		key, form     string
		want, message string
	}{
		"an unknown property": {
			key: secret, form: "expand[]=charges",
			want: "400 invalid_request_error", message: "This property cannot be expanded (charges).",
		},
		"one of several is unknown": {
			key: secret, form: "expand[0]=latest_charge&expand[1]=payment_method",
			want: "400 invalid_request_error", message: "This property cannot be expanded (payment_method).",
		},
		"a restricted key may read charges": {key: restricted, form: charge, want: "200 succeeded"},
		"a restricted key may not read charges": {
			noCharges: true, key: restricted, form: charge, want: "403 invalid_request_error", message: forbidden,
		},
		"without the charge it may read the intent": {noCharges: true, key: restricted, want: "200 succeeded"},
		"a secret key may read everything":          {noCharges: true, key: secret, form: charge, want: "200 succeeded"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Rules{NoCharges: tt.noCharges})
			send := func(method, path, form string) stripetest.Response {
				r := request(method, path, "", form)
				r.APIKey = tt.key
				return w.Do(w.now, r)
			}
			id := send("POST", root, creation("pm_card_visa")).Intent.ID
			send("POST", root+"/"+id+"/confirm", "off_session=true")
			got := send("GET", root+"/"+id, tt.form)
			if got := summary(got); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if got.Error != nil && got.Error.Message != tt.message {
				t.Errorf("got %q, want %q", got.Error.Message, tt.message)
			}
		})
	}
}

// docs.stripe.com/api/payment_methods/detach and docs.stripe.com/error-codes,
// resource_missing. The text and the missing code for a detached method are as recorded:
// github.com/liberapay/liberapay.com/issues/2686.
func TestADeletedCustomerOrDetachedMethodCannotPay(t *testing.T) {
	t.Parallel()
	removed := func(remove func(*world), want, param string) scenario {
		return scenario{charges: 1, exchanges: func(w *world) []exchange {
			waiting, paid := w.create("pm_card_visa"), w.create("pm_card_visa")
			first := w.confirm(paid, "")
			remove(w)
			refused := []stripetest.Response{w.confirm(waiting, "k"), w.confirm(paid, "l"), w.confirm(waiting, "k")}
			exchanges := []exchange{{first, "200 succeeded"}}
			for _, got := range refused {
				exchanges = append(exchanges, exchange{got, want})
				if got.Error.Param != param || got.Error.Intent != nil {
					w.t.Errorf("got param %q and intent %v, want %q and none", got.Error.Param, got.Error.Intent, param)
				}
			}
			const others = "amount=50&currency=usd&customer=cus_2&payment_method=pm_card_mastercard"
			return append(exchanges,
				exchange{w.createUnder(""), want},
				exchange{w.read(waiting), confirmable},
				exchange{w.read(paid), "200 succeeded"},
				exchange{w.post(root, "", others), confirmable},
			)
		}}
	}
	testScenarios(t, map[string]scenario{
		"a deleted customer": removed(func(w *world) { w.DeleteCustomer("cus_1") }, resourceMissing, "customer"),
		"a detached payment method": removed(
			func(w *world) { w.DetachMethod("pm_card_visa") }, "400 invalid_request_error", "",
		),
	})
}
