package stripetest_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
)

// docs.stripe.com/testing: what each test PaymentMethod does;
// docs.stripe.com/declines/codes: the reasons;
// docs.stripe.com/api/payment_intents/confirm: off_session means that the customer cannot
// authenticate. On session, a card may require authentication that an off-session payment
// does not need.
func TestOutcomesOfTestPaymentMethods(t *testing.T) {
	t.Parallel()
	for session, methods := range map[string]map[string]string{
		"off_session=true": {
			"200 succeeded": `pm_card_visa pm_card_mastercard pm_1MqLiJLkdIwHu7ixUEgbFdYF pm_card_riskLevelElevated
				pm_card_avsFail pm_card_createDispute pm_card_pendingRefund pm_card_threeDSecureOptional
				pm_card_authenticationRequiredSetupForOffSession`,
			"200 processing": "pm_usBankAccount_processing",
			genericDecline: `pm_card_chargeDeclined pm_card_visa_chargeDeclined pm_card_chargeCustomerFail
				pm_card_threeDSecureRequiredProcessingError`,
			declined + "insufficient_funds" + needsMethod: `pm_card_chargeDeclinedInsufficientFunds
				pm_card_authenticationRequiredChargeDeclinedInsufficientFunds`,
			declined + "lost_card" + needsMethod:              "pm_card_chargeDeclinedLostCard",
			declined + "stolen_card" + needsMethod:            "pm_card_chargeDeclinedStolenCard",
			declined + "card_velocity_exceeded" + needsMethod: "pm_card_visa_chargeDeclinedVelocityLimitExceeded",
			declined + "fraudulent" + needsMethod:             "pm_card_radarBlock pm_card_riskLevelHighest",

			"402 card_error expired_card expired_card" + needsMethod:         "pm_card_chargeDeclinedExpiredCard",
			"402 card_error incorrect_cvc incorrect_cvc" + needsMethod:       "pm_card_chargeDeclinedIncorrectCvc",
			"402 card_error processing_error processing_error" + needsMethod: "pm_card_chargeDeclinedProcessingError",
			"402 card_error authentication_required authentication_required" + needsMethod: `
				pm_card_authenticationRequired pm_card_threeDSecure2Required pm_card_threeDSecureRequired
				pm_card_threeDSecureRequiredChargeDeclined pm_card_authenticationRequiredOnSetup`,
		},
		"": {
			"200 succeeded":                       "pm_card_visa",
			declined + "fraudulent" + needsMethod: "pm_card_radarBlock",
			"200 requires_action": `pm_card_authenticationRequired pm_card_threeDSecure2Required
				pm_card_authenticationRequiredSetupForOffSession
				pm_card_authenticationRequiredChargeDeclinedInsufficientFunds`,
		},
	} {
		for want, list := range methods {
			for method := range strings.FieldsSeq(list) {
				w := newWorld(t, stripetest.Rules{})
				if got := summary(w.post(root+"/"+w.create(method)+"/confirm", "k", session)); got != want {
					t.Errorf("%s, %q: got %q, want %q", method, session, got, want)
				}
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
			exchanges := []exchange{{w.confirm(id, "k"), "200 succeeded"}}
			for _, key := range []string{"", "k2", "k"} {
				w.now = w.now.AddDate(1, 0, 0)
				exchanges = append(exchanges, exchange{w.confirm(id, key), unexpectedState + " succeeded"})
			}
			other := w.confirm(id, "", "payment_method=pm_card_amex")
			const want = "already succeeded after being previously confirmed"
			if got := other.Error.Message; !strings.Contains(got, want) {
				w.t.Errorf("got message %q, want it to contain %q", got, want)
			}
			return append(exchanges, exchange{other, unexpectedState + " succeeded"})
		}},
		"a declined intent needs another payment method": {charges: 1, exchanges: func(w *world) []exchange {
			id := w.create("pm_card_chargeDeclined")
			first := w.confirm(id, "")
			if got := w.Intent(id); got.PaymentMethod != "" || got.LastError.DeclineCode != "generic_decline" {
				w.t.Errorf("got method %q and error %+v, want none and a decline", got.PaymentMethod, got.LastError)
			}
			return []exchange{
				{first, genericDecline},
				{w.confirm(id, ""), unexpectedState + needsMethod},
				{w.confirm(id, "", "payment_method=pm_card_visa"), "200 succeeded"},
			}
		}},
		"a payment on session may wait for the customer": {charges: 1, exchanges: func(w *world) []exchange {
			id := w.create("pm_card_authenticationRequired")
			first := w.post(root+"/"+id+"/confirm", "", "")
			must(w.t, w.CustomerPays(w.now, id))
			return []exchange{{first, "200 requires_action"}, {w.read(id), "200 succeeded"}}
		}},
		"a canceled or processing intent cannot be confirmed": {exchanges: func(w *world) []exchange {
			canceled, processing := w.create("pm_card_visa"), w.create("pm_usBankAccount_processing")
			return []exchange{
				{w.post(root+"/"+canceled+"/cancel", "", "cancellation_reason=abandoned"), "200 canceled"},
				{w.confirm(canceled, ""), unexpectedState + " canceled"},
				{w.confirm(processing, ""), "200 processing"},
				{w.confirm(processing, ""), unexpectedState + " processing"},
			}
		}},
		// docs.stripe.com/api/payment_intents/cancel: an intent is canceled "when it's in
		// one of these statuses", and succeeded is not one of them.
		"a succeeded or canceled intent cannot be canceled": {charges: 1, exchanges: func(w *world) []exchange {
			paid, canceled := w.create("pm_card_visa"), w.create("pm_card_visa")
			return []exchange{
				{w.confirm(paid, ""), "200 succeeded"},
				{w.post(root+"/"+paid+"/cancel", "", ""), unexpectedState + " succeeded"},
				{w.post(root+"/"+canceled+"/cancel", "", ""), "200 canceled"},
				{w.post(root+"/"+canceled+"/cancel", "", ""), unexpectedState + " canceled"},
			}
		}},
		// docs.stripe.com/api/payment_intents/create: confirm=true "attempts to confirm
		// this PaymentIntent immediately".
		"a creation can confirm, and a decline leaves the intent": {charges: 1, exchanges: func(w *world) []exchange {
			const confirm = "&confirm=true&off_session=true"
			exchanges := []exchange{
				{w.post(root, "", creation("pm_card_visa")+confirm), "200 succeeded"},
				{w.post(root, "", creation("pm_card_chargeDeclined")+confirm), genericDecline},
			}
			if got := len(w.Intents()); got != 2 {
				w.t.Errorf("got %d intents, want 2", got)
			}
			return exchanges
		}},
		"an unknown id is a 404": {exchanges: func(w *world) (exchanges []exchange) {
			w.create("pm_card_visa")
			for _, id := range []string{"pi_000002", "pi_1", "000001", "pi_", "pi_-00001"} {
				exchanges = append(exchanges, exchange{w.read(id), "404 invalid_request_error resource_missing"})
			}
			return exchanges
		}},
		"a test sets what a payment method does": {exchanges: func(w *world) []exchange {
			w.Card("pm_saved", stripetest.InsufficientFunds)
			w.Card("pm_slow", stripetest.Processing)
			w.Card("pm_uncoded", stripetest.DeclinesUncoded)
			return []exchange{
				{w.confirm(w.create("pm_saved"), ""), declined + "insufficient_funds" + needsMethod},
				{w.confirm(w.create("pm_slow"), ""), "200 processing"},
				{w.confirm(w.create("pm_uncoded"), ""), "402 card_error" + needsMethod},
			}
		}},
	})
}

func TestChangesWithoutARequest(t *testing.T) {
	t.Parallel()
	testScenarios(t, map[string]scenario{
		"the bank settles a processing intent either way, once": {charges: 1, exchanges: func(w *world) []exchange {
			paid, refused := w.create("pm_usBankAccount_processing"), w.create("pm_usBankAccount_processing")
			w.confirm(paid, "")
			w.confirm(refused, "")
			must(w.t, errors.Join(w.Settle(w.now, paid, true), w.Settle(w.now, refused, false)))
			err := w.Settle(w.now, paid, true)
			if got, ok := errors.AsType[*stripetest.StateError](err); !ok || got.Status != stripetest.StatusSucceeded {
				w.t.Errorf("a second settlement: got %v, want a *StateError", err)
			}
			return []exchange{{w.read(paid), "200 succeeded"}, {w.read(refused), "200" + needsMethod}}
		}},
		"a customer can pay a declined intent once, and a canceled one never": {
			charges: 1, exchanges: func(w *world) []exchange {
				declined, canceled := w.create("pm_card_chargeDeclined"), w.create("pm_card_visa")
				w.confirm(declined, "")
				must(w.t, errors.Join(w.CustomerPays(w.now, declined), w.CancelInDashboard(w.now, canceled)))
				for _, id := range []string{declined, canceled} {
					err := w.CustomerPays(w.now, id)
					if _, ok := errors.AsType[*stripetest.StateError](err); !ok {
						w.t.Errorf("a payment of %s: got %v, want a *StateError", id, err)
					}
				}
				return []exchange{{w.read(declined), "200 succeeded"}, {w.read(canceled), "200 canceled"}}
			},
		},
		"an edit keeps an intent's status and charge and clears its last error": {exchanges: func(w *world) []exchange {
			id := w.create("pm_card_chargeDeclined")
			w.confirm(id, "")
			want := *w.Intent(id)
			if want.LastError == nil || want.LatestCharge == "" {
				w.t.Errorf("got %+v before the edit, want an error and a charge", want)
			}
			want.LastError, want.Description = nil, "edited"
			must(w.t, w.EditInDashboard(w.now, id))
			if diff := cmp.Diff(*w.Intent(id), want); diff != "" {
				w.t.Errorf("intent after the edit (-got +want):\n%s", diff)
			}
			return []exchange{{w.read(id), "200" + needsMethod}}
		}},
		"a missing or locked intent cannot be changed": {exchanges: func(w *world) []exchange {
			id := w.create("pm_card_visa")
			w.Begin(w.now, request("POST", root+"/"+id+"/confirm", "", "off_session=true"))
			for i, err := range []error{
				w.CustomerPays(w.now, id), w.CancelInDashboard(w.now, id), w.EditInDashboard(w.now, id),
			} {
				if !errors.Is(err, stripetest.ErrLocked) {
					w.t.Errorf("change %d of a locked intent: got %v, want ErrLocked", i, err)
				}
			}
			for i, err := range []error{w.Settle(w.now, "pi_9", true), w.EditInDashboard(w.now, "pi_9")} {
				if !errors.Is(err, stripetest.ErrNoIntent) {
					w.t.Errorf("change %d of a missing intent: got %v, want ErrNoIntent", i, err)
				}
			}
			return nil
		}},
	})
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
	since := strconv.FormatInt(w.now.Add(-time.Minute).Unix(), 10)
	if got := ids("created[gte]=" + since + "&limit=1"); len(got) != 1 {
		t.Errorf("created at the first second of the interval: got %v, want one", got)
	}
	if got := ids("created[lt]=" + since); got != nil {
		t.Errorf("created at the end of the interval: got %v, want none", got)
	}
	three := w.Do(w.now, request("GET", root, "", "limit=3")).List.More
	four := w.Do(w.now, request("GET", root, "", "limit=4")).List.More
	if !three || four {
		t.Errorf("has_more with limits 3 and 4: got %t and %t, want true and false", three, four)
	}
}

// docs.stripe.com/expand: expansions of a list start with data, and are permitted like
// those of one object.
func TestAListExpandsTheLatestCharges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{NoCharges: true})
	w.create("pm_card_visa")
	w.confirm(w.create("pm_card_visa"), "")
	page := w.Do(w.now, request("GET", root, "", "expand[]=data.latest_charge"))
	body := string(page.Body())
	if !strings.Contains(body, `"amount_refunded":0`) || !strings.Contains(body, `"latest_charge":null`) {
		t.Errorf("got %s, want one charge and one null", body)
	}
	for form, want := range map[string]string{
		"expand[]=latest_charge": "400 invalid_request_error", "created[gte]=x": "400 invalid_request_error parameter_invalid_integer",
		"created[gt]=1": parameterUnknown,
	} {
		if got := summary(w.Do(w.now, request("GET", root, "", form))); got != want {
			t.Errorf("%s: got %q, want %q", form, got, want)
		}
	}
	restricted := request("GET", root, "", "expand[]=data.latest_charge")
	restricted.APIKey = "rk_test_pretend"
	if got := w.Do(w.now, restricted); got.Status != 403 {
		t.Errorf("a key without the permission: got %d, want 403", got.Status)
	}
}
