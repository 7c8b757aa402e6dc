package stripetest_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
)

// shownCharge is what the tests read of an expanded charge.
type shownCharge struct {
	ID             string
	Object         string
	Amount         int64
	Created        int64
	Currency       string
	FailureCode    string `json:"failure_code"`
	FailureMessage string `json:"failure_message"`
	Livemode       bool
	Outcome        struct {
		NetworkStatus string `json:"network_status"`
		Reason        string
		Type          string
	}
	Paid          bool
	PaymentIntent string `json:"payment_intent"`
	Status        string
}

// docs.stripe.com/api/charges/object: failure_code, outcome.reason, outcome.type,
// outcome.network_status. A charge that was declined for want of authentication has
// authentication_required in both, as in recorded charges of test mode.
func TestAnExpandedChargeTellsWhyItFailed(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]struct{ code, message, network, kind, reason string }{
		"pm_card_chargeDeclined": {
			"card_declined", "Your card was declined.", "declined_by_network", "issuer_declined", "generic_decline",
		},
		"pm_card_chargeDeclinedInsufficientFunds": {
			"card_declined", "Your card has insufficient funds.", "declined_by_network", "issuer_declined", "insufficient_funds",
		},
		"pm_card_chargeDeclinedExpiredCard": {
			"expired_card", "Your card has expired.", "declined_by_network", "issuer_declined", "expired_card",
		},
		"pm_card_authenticationRequired": {
			"authentication_required", "Your card was declined. This transaction requires authentication.",
			"declined_by_network", "issuer_declined", "authentication_required",
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
			var intent struct {
				LatestCharge shownCharge `json:"latest_charge"`
			}
			res := w.Do(w.now, request("GET", root+"/"+id, "", "expand[]=latest_charge"))
			if err := json.Unmarshal(res.Body(), &intent); err != nil {
				t.Fatalf("%v: %s", err, res.Body())
			}
			paid := want.code == ""
			expected := shownCharge{
				ID: "ch_000001", Object: "charge", Amount: 1999, Created: w.now.Unix(), Currency: "usd",
				FailureCode: want.code, FailureMessage: want.message, Paid: paid, PaymentIntent: id, Status: "failed",
			}
			if paid {
				expected.Status = "succeeded"
			}
			expected.Outcome.NetworkStatus, expected.Outcome.Reason, expected.Outcome.Type = want.network, want.reason, want.kind
			if diff := cmp.Diff(intent.LatestCharge, expected); diff != "" {
				t.Errorf("charge (-got +want):\n%s", diff)
			}
		})
	}
}

func TestTheLatestChargeIsAnIDUnlessItIsExpanded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	id := w.create("pm_card_visa")
	latest := func(form string) (charge any) {
		var intent map[string]any
		if err := json.Unmarshal(w.Do(w.now, request("GET", root+"/"+id, "", form)).Body(), &intent); err != nil {
			t.Fatal(err)
		}
		return intent["latest_charge"]
	}
	if plain, expanded := latest(""), latest("expand[]=latest_charge"); plain != nil || expanded != nil {
		t.Errorf("before a confirmation: got %v, expanded %v, want neither", plain, expanded)
	}
	w.confirm(id, "")
	if got := latest(""); got != "ch_000001" {
		t.Errorf("got %v, want the id ch_000001", got)
	}
	if _, expanded := latest("expand[0]=latest_charge").(map[string]any); !expanded {
		t.Error("the charge is not expanded")
	}
	if err := w.EditInDashboard(w.now, id); err != nil {
		t.Fatal(err)
	}
	if got := latest(""); got != "ch_000001" {
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
	for claim, tt := range map[string]struct {
		rules   stripetest.Rules
		key     string
		form    string
		want    string
		message string
	}{
		"an unknown property": {
			key: "sk_test_a", form: "expand[]=charges", want: "400 invalid_request_error",
			message: "This property cannot be expanded (charges).",
		},
		"one of several is unknown": {
			key: "sk_test_a", form: "expand[0]=latest_charge&expand[1]=customer", want: "400 invalid_request_error",
			message: "This property cannot be expanded (customer).",
		},
		"a restricted key may read charges": {
			key: "rk_test_a", form: "expand[]=latest_charge", want: "200 succeeded",
		},
		"a restricted key may not read charges": {
			rules: stripetest.Rules{NoCharges: true}, key: "rk_test_a", form: "expand[]=latest_charge",
			want: "403 invalid_request_error", message: forbidden,
		},
		"without the charge it may read the intent": {
			rules: stripetest.Rules{NoCharges: true}, key: "rk_test_a", want: "200 succeeded",
		},
		"a secret key may read everything": {
			rules: stripetest.Rules{NoCharges: true}, key: "sk_test_a", form: "expand[]=latest_charge", want: "200 succeeded",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.rules)
			send := func(method, path, form string) stripetest.Response {
				r := request(method, path, "", form)
				r.APIKey = tt.key
				return w.Do(w.now, r)
			}
			id := send("POST", root, creation("pm_card_visa")).Intent.ID
			send("POST", root+"/"+id+"/confirm", "off_session=true")
			got := send("GET", root+"/"+id, tt.form)
			if got := summary(got); got != tt.want {
				t.Errorf("%s: got %q, want %q", claim, got, tt.want)
			}
			if got.Error != nil && got.Error.Message != tt.message {
				t.Errorf("got %q, want %q", got.Error.Message, tt.message)
			}
		})
	}
	w := newWorld(t, stripetest.Rules{})
	id := w.create("pm_card_visa")
	if got, want := summary(w.post(root+"/"+id+"/confirm", "", "off_session=true&expand[]=latest_charge")),
		"400 invalid_request_error parameter_unknown"; got != want {
		t.Errorf("a confirmation expands nothing here: got %q, want %q", got, want)
	}
}

// docs.stripe.com/api/payment_methods/detach and docs.stripe.com/error-codes,
// resource_missing. The text and the missing code for a detached method are as recorded:
// github.com/liberapay/liberapay.com/issues/2686.
func TestADeletedCustomerOrDetachedMethodCannotPay(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		remove func(*world)
		want   string
		param  string
	}{
		"a deleted customer": {
			remove: func(w *world) { w.DeleteCustomer("cus_1") },
			want:   "400 invalid_request_error resource_missing", param: "customer",
		},
		"a detached payment method": {
			remove: func(w *world) { w.DetachMethod("pm_card_visa") },
			want:   "400 invalid_request_error",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Rules{})
			waiting, paid := w.create("pm_card_visa"), w.create("pm_card_visa")
			w.confirm(paid, "")
			tt.remove(w)
			for _, id := range []string{waiting, paid} {
				got := w.confirm(id, "k"+id)
				if got := summary(got); got != tt.want {
					t.Errorf("confirm %s: got %q, want %q", id, got, tt.want)
				}
				if got.Error.Param != tt.param || got.Error.Intent != nil {
					t.Errorf("confirm %s: got param %q and intent %v, want %q and none",
						id, got.Error.Param, got.Error.Intent, tt.param)
				}
			}
			if got := summary(w.post(root, "", creation("pm_card_visa"))); got != tt.want {
				t.Errorf("another creation: got %q, want %q", got, tt.want)
			}
			if got, want := summary(w.get(root+"/"+waiting)), "200 requires_confirmation"; got != want {
				t.Errorf("the unconfirmed intent: got %q, want %q", got, want)
			}
			if got, want := summary(w.get(root+"/"+paid)), "200 succeeded"; got != want {
				t.Errorf("the paid intent: got %q, want %q", got, want)
			}
			if got := w.Charges("ORD1"); len(got) != 1 {
				t.Errorf("got charges %v, want 1", got)
			}
			other := "amount=50&currency=usd&customer=cus_2&payment_method=pm_card_mastercard"
			if got, want := summary(w.post(root, "", other)), "200 requires_confirmation"; got != want {
				t.Errorf("another customer and method: got %q, want %q", got, want)
			}
			if got := summary(w.post(root+"/"+waiting+"/confirm", "k"+waiting, "off_session=true")); got != tt.want {
				t.Errorf("the same key again: got %q, want %q", got, tt.want)
			}
		})
	}
}
