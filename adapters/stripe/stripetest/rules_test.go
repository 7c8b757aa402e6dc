package stripetest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v76"

	"orderonce/adapters/stripe/stripetest"
)

// The contracts of payments, disputes and refunds test the double too, behind the
// adapter. The tests of this package cover what they do not.

// docs.stripe.com/testing: what each test PaymentMethod does;
// docs.stripe.com/declines/codes: the reasons.
func TestOutcomesOfTestPaymentMethods(t *testing.T) {
	const coded = "402 card_error "
	for want, methods := range map[string]string{
		succeeded:                                                 "pm_card_visa pm_card_visa_debit pm_card_createDispute pm_1MqLiJLkdIwHu7ix",
		"200 processing":                                          "pm_usBankAccount_processing",
		declined + "generic_decline":                              "pm_card_chargeDeclined pm_card_visa_chargeDeclined",
		declined + "insufficient_funds":                           "pm_card_chargeDeclinedInsufficientFunds",
		declined + "lost_card":                                    "pm_card_chargeDeclinedLostCard",
		declined + "stolen_card":                                  "pm_card_chargeDeclinedStolenCard",
		declined + "card_velocity_exceeded":                       "pm_card_visa_chargeDeclinedVelocityLimitExceeded",
		declined + "fraudulent":                                   "pm_card_radarBlock pm_card_riskLevelHighest",
		coded + "expired_card expired_card":                       "pm_card_chargeDeclinedExpiredCard",
		coded + "incorrect_cvc incorrect_cvc":                     "pm_card_chargeDeclinedIncorrectCvc",
		coded + "processing_error processing_error":               "pm_card_chargeDeclinedProcessingError",
		coded + "authentication_required authentication_required": "pm_card_authenticationRequired pm_card_threeDSecure2Required",
		"no": "pm_card_visaa pm_card_ pm_card_visa_chargeDeclinedFraudulent pm_usBankAccount_success pm_ tok_visa",
	} {
		for method := range strings.FieldsSeq(methods) {
			w := newWorld(t, stripetest.Rules{})
			created := w.post(root, "", creation(method))
			if want == "no" {
				w.want(method, created, resourceMissing)
				continue
			}
			w.want(method, w.confirm(created.Intent.ID, "k"), want+strings.Repeat(needsMethod, strings.Count(want, "402")))
		}
	}
}

// A fault determines the response, and independently whether money moves. A key replays
// its first response, also a 500, once the execution begins
// (docs.stripe.com/api/idempotent_requests: "regardless of whether it succeeds or
// fails"), and stores none from before it ("or the request conflicts with another request
// that's executing concurrently"; docs.stripe.com/error-low-level, 429 and 401).
func TestAKeyReplaysItsFirstResponse(t *testing.T) {
	const generic, replayed = declined + "generic_decline" + needsMethod, " replayed"
	for kind, want := range map[stripetest.FaultKind]struct {
		first   string
		charges int
		again   string // the response to the same key later
	}{
		"":                                 {succeeded, 1, succeeded + replayed},
		stripetest.LoseRequest:             {"0 lost", 0, succeeded},
		stripetest.Unauthorized:            {"401 invalid_request_error", 0, succeeded},
		stripetest.Forbidden:               {"403 invalid_request_error", 0, succeeded},
		stripetest.RateLimited:             {"429 invalid_request_error rate_limit", 0, succeeded},
		stripetest.LockTimeout:             {lockTimeout, 0, succeeded},
		stripetest.KeyInUse:                {keyInUse, 0, succeeded},
		stripetest.Unavailable:             {"503 api_error", 0, succeeded},
		stripetest.ServerErrorBeforeEffect: {"500 api_error", 0, "500 api_error" + replayed},
		stripetest.ServerErrorAfterEffect:  {"500 api_error", 1, "500 api_error" + replayed},
		stripetest.Decline:                 {generic, 0, generic + replayed},
		stripetest.Latency:                 {succeeded, 1, succeeded + replayed},
		stripetest.SlowSuccess:             {succeeded, 1, succeeded + replayed},
		stripetest.LoseResponse:            {succeeded + " lost", 1, succeeded + replayed},
		stripetest.Garbage:                 {succeeded, 1, succeeded + replayed},
	} {
		w := newWorld(t, stripetest.Rules{})
		id := w.create("pm_card_visa")
		if kind != "" {
			w.Fail(stripetest.Fault{Kind: kind, On: stripetest.Confirm, OrderID: "ORD1"})
		}
		first := w.confirm(id, "k")
		w.want(string(kind), first, want.first)
		if got := w.Charges("ORD1"); len(got) != want.charges {
			t.Errorf("%s: got charges %v, want %d", kind, got, want.charges)
		}
		if garbled := !json.Valid(first.Body()); garbled != (first.Garbled || first.Status == 0) {
			t.Errorf("%s: body: %s", kind, first.Body())
		}
		w.now = w.now.Add(24*time.Hour - 1)
		again := w.confirm(id, "k")
		w.want(string(kind)+", the same key later", again, want.again)
		first.Garbled = false
		if again.Replayed() && (string(again.Body()) != string(first.Body()) || again.Original != first.RequestID) {
			t.Errorf("%s: replay of %s, not of %s, or another body: %s", kind, again.Original, first.RequestID, again.Body())
		}
	}
}

// docs.stripe.com/api/idempotent_requests: keys can be removed "after they're at least 24
// hours old. We generate a new request if a key is reused after the original is pruned".
func TestKeys(t *testing.T) {
	for name, c := range map[string]struct {
		life, wait time.Duration
		want       int
	}{
		"kept for a day":                    {0, 24*time.Hour - 1, 1},
		"a new request after a day":         {0, 24 * time.Hour, 2},
		"kept for KeyLife":                  {time.Minute, time.Minute - 1, 1},
		"a new request after KeyLife":       {time.Minute, time.Minute, 2},
		"a new request if no key is stored": {-1, 0, 2},
	} {
		w := newWorld(t, stripetest.Rules{KeyLife: c.life})
		w.createUnder("k")
		w.now = w.now.Add(c.wait)
		w.createUnder("k")
		if got := len(w.Intents()); got != c.want {
			t.Errorf("%s: got %d intents, want %d", name, got, c.want)
		}
	}
	w := newWorld(t, stripetest.Rules{})
	w.want("a failed validation", w.post(root, "k", "amount=0&currency=usd"), notAnInteger)
	w.want("is not stored", w.createUnder("k"), confirmable)
	w.want("a long key", w.createUnder(strings.Repeat("k", 256)), invalidRequest)

	// docs.stripe.com/error-low-level: "A request that returns a 400 sends back the same
	// 400".
	slow := w.pay("pm_usBankAccount_processing")
	w.want("a 400 of an execution", w.confirm(slow, "400"), unexpectedState+" processing")
	must(t, w.Settle(w.now, slow, true))
	w.want("is replayed, though its cause is gone", w.confirm(slow, "400"), unexpectedState+" processing replayed")

	w.createUnder("young")
	w.PruneKeys(w.now.Add(24*time.Hour - 1))
	w.want("PruneKeys keeps a young key", w.createUnder("young"), confirmable+" replayed")
	w.Begin(w.now, request("POST", root, "running", creation("pm_card_visa")))
	w.ForgetKeys()
	w.want("ForgetKeys removes it", w.createUnder("young"), confirmable)
	w.want("but not one in use", w.createUnder("running"), keyInUse)
}

func TestFaultsMatch(t *testing.T) {
	w := newWorld(t, stripetest.Rules{})
	id := w.create("pm_card_visa")
	read := func() stripetest.Response { return w.get(root+"/"+id, "") }
	w.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Read, OrderID: "ORD2", Times: -1})
	w.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Read, OrderID: "ORD1", Times: 2})
	w.want("another endpoint", w.createUnder("k"), confirmable)
	w.want("once", read(), "503 api_error")
	w.want("twice", read(), "503 api_error")
	w.want("three times", read(), confirmable)
	w.Heal()

	w.Fail(stripetest.Fault{Kind: stripetest.ServerErrorBeforeEffect})
	w.Fail(stripetest.Fault{Kind: stripetest.LoseResponse})
	w.want("a replayed response can be lost", w.createUnder("k"), confirmable+" replayed lost")
	w.want("a fault of the execution waits for one", read(), "500 api_error")

	// The second call is replayed and has no execution. The next one must not have its
	// fault instead.
	w.Fail(stripetest.Fault{Number: 2, Kind: stripetest.ServerErrorBeforeEffect, Times: -1})
	for _, c := range []struct{ key, want string }{{"k", confirmable + " replayed"}, {"other", confirmable}} {
		r := request("POST", root, c.key, creation("pm_card_visa"))
		r.Number = 2
		w.want("a fault of one call is removed with it", w.Do(w.now, r), c.want)
	}
}

// docs.stripe.com/keys: secret and restricted keys, test and live; error-low-level: 401
// for an invalid key.
func TestAPIKeys(t *testing.T) {
	for _, c := range []struct {
		only, key string
		want      int
	}{
		{"", "sk_test_a", 200},
		{"", "rk_test_a", 200},
		{"", "", 401},
		{"", "pk_test_a", 401},
		{"", "sk_live_a", 401},
		{"", "rk_live_a", 401},
		{"sk_test_a", "sk_test_a", 200},
		{"sk_test_a", "sk_test_b", 401},
		{"sk_live_a", "sk_live_a", 401},
	} {
		r := request("GET", root, "", "")
		r.APIKey = c.key
		w := newWorld(t, stripetest.Rules{Key: c.only})
		res := w.Do(w.now, r)
		body, live := string(res.Body()), strings.Contains(c.key, "live")
		if res.Status != c.want || strings.Contains(body, "LIVE KEY REFUSED") != live {
			t.Errorf("%+v: got %d, %s", c, res.Status, body)
		}
		if c.key != "" && c.want == 401 && strings.Contains(body, c.key) {
			t.Errorf("%+v: got %s, want no key in it", c, body)
		}
	}
}

// docs.stripe.com/error-codes: parameter_unknown, parameter_missing,
// parameter_invalid_integer, amount_too_large, resource_missing;
// docs.stripe.com/currencies: special cases, minimum and maximum amounts.
func TestCreateValidation(t *testing.T) {
	const ok, tooLarge, tooSmall = "200 ", "400 amount_too_large amount", "400 amount_too_small amount"
	const badCurrency, badAmount = "400  currency", "400 parameter_invalid_integer amount"
	const enabled = "automatic_payment_methods[enabled]"
	tests := map[string]string{
		"currency=usd":                      "400 parameter_missing amount",
		"amount=1":                          "400 parameter_missing currency",
		"amount=1&amount=2&currency=usd":    "400 parameter_invalid amount",
		"amount=50&currency=usd eur":        badCurrency,
		"amount=50&currency=usd&metadata=x": "400 parameter_unknown metadata",
	}
	for rest, want := range map[string]string{
		"amonut=2": "400 parameter_unknown amonut", "expand[]=x": "400 parameter_unknown expand[]",
		"customer=bob": "400 resource_missing customer", "payment_method=card": "400 resource_missing payment_method",
		"confirm=true": "400 payment_intent_unexpected_state payment_method", "confirm=maybe": "400  confirm",
		"off_session=no": "400  off_session", "payment_method=pm_1&confirm=true": "400  off_session",
		"payment_method=pm_1&confirm=true&off_session=true": ok, "capture_method=manual": "400  capture_method",
		"metadata[k]=" + strings.Repeat("v", 501): "400  metadata", enabled + "=false": "400  " + enabled,
		"automatic_payment_methods[allow_redirects]=never": "400 parameter_missing " + enabled,
	} {
		tests["amount=50&currency=usd&"+rest] = want
	}
	for amount, want := range map[string]string{
		"50 usd": ok, "50 USD": ok, "0 usd": badAmount, "-5 usd": badAmount, "19.99 usd": badAmount,
		"1 zzz": badCurrency, "1 us": badCurrency, "100 bgn": badCurrency, "100 xcg": ok,
		"100 isk": ok, "150 ugx": "400  amount", "1230 kwd": ok, "1234 kwd": "400  amount",
		"99999999 usd": ok, "100000000 usd": tooLarge, "999999999999 idr": ok, "1000000000000 idr": tooLarge,
		"49 usd": tooSmall, "30 gbp": ok, "29 gbp": tooSmall, "17500 huf": ok, "17499 huf": tooSmall, "1 kes": ok,
	} {
		number, currency, _ := strings.Cut(amount, " ")
		tests["amount="+number+"&currency="+currency] = want
	}
	for form, want := range tests {
		w := newWorld(t, stripetest.Rules{})
		res := w.post(root, "", form)
		got := strconv.Itoa(res.Status) + " "
		if res.Error != nil {
			got += res.Error.Code + " " + res.Error.Param
		}
		if got != want || res.Status == 400 && len(w.Intents()) != 0 {
			t.Errorf("%s: got %q and %d intents, want %q", form, got, len(w.Intents()), want)
		}
	}
}

func TestOtherValidation(t *testing.T) {
	w := newWorld(t, stripetest.Rules{})
	intent := root + "/" + w.create("pm_card_visa")
	for _, c := range []struct{ method, path, form, want string }{
		{"POST", intent + "/confirm", "", invalidRequest},
		{"POST", intent + "/confirm", "amount=1", parameterUnknown},
		{"POST", intent + "/confirm", "off_session=true&expand[]=latest_charge", parameterUnknown},
		{"POST", intent + "/confirm", "off_session=true&payment_method=card", resourceMissing},
		{"POST", intent + "/cancel", "cancellation_reason=abandoned", parameterUnknown},
		{"POST", intent + "/capture", "", notFound},
		{"DELETE", intent, "", notFound},
		{"GET", intent, "expand[0]=latest_charge&expand[1]=payment_method", invalidRequest},
		{"GET", root + "/pi_1", "", notFound + " resource_missing"},
		{"GET", root, "expand[]=latest_charge", invalidRequest},
		{"GET", root, "limit=0", notAnInteger},
		{"GET", root, "limit=101", notAnInteger},
		{"GET", root, "created[gte]=x", notAnInteger},
		{"GET", root, "created[gt]=1", parameterUnknown},
		{"GET", root, "starting_after=pi_9", resourceMissing},
		{"GET", disputes, "payment_intent=pi_000009", resourceMissing},
		{"GET", refunds + "/re_nope", "", notFound + " resource_missing"},
		{"GET", "/v1/charges", "", notFound},
		{"GET", root + "/search", "query=status:'succeeded'", invalidRequest},
		{"GET", root + "/search", "", invalidRequest + " parameter_missing"},
		{"POST", refunds, "", invalidRequest + " parameter_missing"},
		{"POST", refunds, "payment_intent=pi_nope&amount=1", resourceMissing},
		{"POST", refunds, "payment_intent=pi_000001&amount=1.5", notAnInteger},
		{"POST", refunds, "payment_intent=pi_000001&reason=why", invalidRequest},
	} {
		w.want(c.method+" "+c.path+" "+c.form, w.Do(w.now, request(c.method, c.path, "", c.form)), c.want)
	}
	w.want("the intent afterwards", w.get(intent, ""), confirmable)
}

// docs.stripe.com/api/payment_intents/list: newest first, "limit can range between 1 and
// 100"; docs.stripe.com/api/pagination: starting_after is an object id.
func TestLists(t *testing.T) {
	w := newWorld(t, stripetest.Rules{RefundLag: time.Minute})
	first, second := w.pay("pm_card_visa"), w.pay("pm_card_amex")
	w.post(root, "", "amount=50&currency=usd&customer=cus_b")
	for range 12 {
		w.refund(first, "1", "")
	}
	w.refund(second, "1", "")
	for _, intent := range []string{first, second, first, first} {
		_, err := w.OpenDispute(w.now, intent)
		must(t, err)
	}
	const found, charge = "query=metadata['orderId']:'ORD1' AND metadata['scope']:'test'", "expand[]=latest_charge.refunds"
	if got := ids(t, w.get(refunds, "")); got != "" {
		t.Errorf("within the lag: got refunds %v, want none", got)
	}
	w.now = w.now.Add(time.Minute)
	since := fmt.Sprint(w.now.Add(-time.Minute).Unix())
	for _, c := range []struct{ path, form, want string }{
		{root, "", "3 2 1"},
		{root, "limit=1", "3 +"},
		{root, "starting_after=pi_000002", "1"},
		{root, "created[gte]=" + since, "3 2 1"},
		{root, "created[lt]=" + since, ""},
		{root + "/search", found, "2 1"},
		{disputes, "payment_intent=" + first, "4 3 1"},
		{disputes, "starting_after=du_000003&limit=1", "2 +"},
		{refunds, "", "13 12 11 10 9 8 7 6 5 4 +"},
		{refunds, "limit=100&payment_intent=" + first, "12 11 10 9 8 7 6 5 4 3 2 1"},
		{refunds, "starting_after=re_000003", "2 1"},
	} {
		if got := ids(t, w.get(c.path, c.form)); got != c.want {
			t.Errorf("%s?%s: got %v, want %v", c.path, c.form, got, c.want)
		}
	}
	for path, want := range map[string]string{
		root + "?expand[]=data.latest_charge":           `"amount_refunded":12`,
		root + "/" + first + "?" + charge:               `"has_more":true,"object":"list","url":"/v1/charges/ch_000001/refunds"`,
		root + "/pi_000003?" + charge:                   `"latest_charge":null`,
		root + "/" + first + "?expand[]=customer":       `"email":"1@customers.invalid"`,
		root + "/" + second + "?expand[]=latest_charge": `"disputed":true`,
	} {
		before, form, _ := strings.Cut(path, "?")
		if got := w.get(before, form).Body(); !strings.Contains(string(got), want) {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// docs.stripe.com/refunds: a refund that fails, even after it has succeeded, gives the
// amount back; docs.stripe.com/testing: pm_card_pendingRefund.
func TestARefundMayFailLater(t *testing.T) {
	const visa, slow = "pm_card_visa", "pm_card_pendingRefund"
	for _, tt := range []struct {
		card, steps string
		ok          bool
		left        int64
	}{
		{visa, "failed", true, 1999},
		{visa, "pending", false, 999},
		{visa, "failed succeeded", false, 1999},
		{slow, "succeeded failed", true, 1999},
		{slow, "failed", true, 1999},
	} {
		w := newWorld(t, stripetest.Rules{})
		id := w.pay(tt.card)
		made := w.refund(id, "1000", "a").Refund
		var err error
		for s := range strings.FieldsSeq(tt.steps) {
			err = errors.Join(err, w.ChangeRefund(made.ID, stripetest.RefundStatus(s)))
		}
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, stripetest.ErrNotAllowed) {
			t.Errorf("%s %v: got error %v, want one: %t", tt.card, tt.steps, err, !tt.ok)
		}
		var body struct {
			Charge stripe.Charge `json:"latest_charge"`
		}
		must(t, json.Unmarshal(w.get(root+"/"+id, "expand[]=latest_charge").Body(), &body))
		if got := body.Charge.AmountRefunded; got != 1999-tt.left {
			t.Errorf("%s %v: got %d refunded, want %d left", tt.card, tt.steps, got, tt.left)
		}
		now := w.get(refunds+"/"+made.ID, "").Refund
		if (now.Failure != "") != (now.Status == stripetest.RefundFailed) {
			t.Errorf("%s %v: got %s with failure reason %q", tt.card, tt.steps, now.Status, now.Failure)
		}
	}
	// support.stripe.com/questions/deprecation-of-fractional-isk-charges-and-refunds.
	w := newWorld(t, stripetest.Rules{})
	id := w.post(root, "", "amount=200000&currency=isk&payment_method=pm_card_visa&confirm=true&off_session=true").Intent.ID
	w.want("a fraction", w.refund(id, "150", ""), invalidRequest+" invalid_charge_amount_no_decimal_compatible")
	w.want("what is left", w.post(refunds, "", "payment_intent="+id), succeeded)
}

// docs.stripe.com/error-low-level: a 500 may be rolled forward; and a request may be
// executed long after its client gave up.
func TestAFailedRefundMayBeExecutedLater(t *testing.T) {
	for fault, again := range map[stripetest.FaultKind]string{
		stripetest.ServerErrorBeforeEffect: "500 api_error replayed",
		stripetest.ServerErrorAfterEffect:  "500 api_error replayed",
		stripetest.LoseRequest:             succeeded,
		stripetest.LoseResponse:            succeeded + " replayed",
		stripetest.Unavailable:             succeeded,
	} {
		w := newWorld(t, stripetest.Rules{})
		id := w.pay("pm_card_visa")
		w.Fail(stripetest.Fault{Kind: fault, On: stripetest.CreateRefund, OrderID: "ORD1"})
		w.refund(id, "1000", "a")
		alone := w.clone()
		alone.RollForward(w.now)
		if executed := fault != stripetest.Unavailable; executed != (len(alone.Refunds()) == 1) {
			t.Errorf("%s: got %d refunds later, want one: %t", fault, len(alone.Refunds()), executed)
		}
		w.want(string(fault), w.refund(id, "1000", "a"), again)
		for range 2 {
			w.RollForward(w.now)
		}
		if got := len(w.Refunds()); got != 1 {
			t.Errorf("%s: got %d refunds, want 1", fault, got)
		}
	}
}

// docs.stripe.com/api/events/types. The object of an event is as it was then. What a
// person or the bank may not do has no event.
func TestEvents(t *testing.T) {
	w := newWorld(t, stripetest.Rules{})
	paid, bounced := w.pay("pm_card_visa"), w.pay("pm_usBankAccount_processing")
	must(t, w.Settle(w.now, bounced, false))
	must(t, w.EditInDashboard(w.now, bounced))
	must(t, w.CancelInDashboard(w.now, bounced))
	must(t, w.ChangeRefund(w.refund(paid, "1000", "a").Refund.ID, stripetest.RefundFailed))
	d, err := w.OpenDispute(w.now, paid)
	must(t, err)
	must(t, w.CloseDispute(d.ID, false))
	_, unpaid := w.OpenDispute(w.now, bounced)
	for i, err := range []error{
		w.Settle(w.now, bounced, true), w.Settle(w.now, "pi_9", true), w.CustomerPays(w.now, bounced), w.CloseDispute(d.ID, true), unpaid,
	} {
		if !errors.Is(err, stripetest.ErrNotAllowed) {
			t.Errorf("change %d: got %v, want %v", i, err, stripetest.ErrNotAllowed)
		}
	}
	type event struct{ Type, ID, Status, Intent string }
	var got []event
	for _, e := range w.Events() {
		var body stripe.Event
		must(t, json.Unmarshal(e.Body(w.now), &body))
		o := body.Data.Object
		intent, _ := o["payment_intent"].(string)
		got = append(got, event{string(body.Type), o["id"].(string), o["status"].(string), intent})
	}
	want := []event{
		{"payment_intent.succeeded", paid, "succeeded", ""},
		{"payment_intent.processing", bounced, "processing", ""},
		{"payment_intent.payment_failed", bounced, "requires_payment_method", ""},
		{"payment_intent.canceled", bounced, "canceled", ""},
		{"refund.created", "re_000001", "succeeded", paid},
		{"charge.refunded", "ch_000001", "succeeded", paid},
		{"refund.updated", "re_000001", "failed", paid},
		{"refund.failed", "re_000001", "failed", paid},
		{"charge.dispute.created", "du_000001", "needs_response", paid},
		{"charge.dispute.closed", "du_000001", "lost", paid},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}
