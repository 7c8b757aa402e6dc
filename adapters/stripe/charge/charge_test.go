package charge_test

import (
	stdcmp "cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestPayments(t *testing.T) {
	ordertest.TestPayments(t, func(t *testing.T) ordertest.PaymentsUnderTest {
		t.Helper()
		return rigtest.NewStripe(t, stripetest.Rules{}).UnderTest()
	})
}

// After a restore from backup an attempt may be counted twice. Its key then replays the
// response from before the customer paid.
func TestAReplayedDeclineDoesNotHideAPayment(t *testing.T) {
	p := rigtest.Prepare(t, "pm_card_chargeDeclined")
	_, err := p.Confirm(1)
	rigtest.Must(t, err)
	p.Do(func(m *stripetest.Machine, now time.Time) error { return m.CustomerPays(now, string(p.Intent.ID)) })
	if got, err := p.Confirm(1); err != nil || got.State != order.Succeeded || p.Count(stripetest.Read) != 1 {
		t.Errorf("got %v, %v after %d reads, want it paid after 1", got, err, p.Count(stripetest.Read))
	}
}

// The refusal does not show the intent's status. Only Read does.
func TestConfirmIsRefusedIfTheCustomerOrMethodIsGone(t *testing.T) {
	for code, remove := range map[string]func(*stripetest.Machine){
		"resource_missing": func(m *stripetest.Machine) { m.DeleteCustomer("cus_pretend") },
		"none":             func(m *stripetest.Machine) { m.DetachMethod("pm_1") },
	} {
		p := rigtest.Prepare(t, "pm_1")
		p.Machine(remove)
		_, confirm := p.Confirm(1)
		_, prepare := p.Payments.Prepare(t.Context(), p.Order, order.PrepareAgainKey(rigtest.Scope, p.Order.ID(), 1))
		for _, err := range []error{confirm, prepare} {
			if rigtest.KindOf(t, err) != order.KindRefused || order.CodeOf(err, "none") != code {
				t.Errorf("got %v, want %s with code %q", err, order.KindRefused, code)
			}
		}
		if got, err := p.Read(); err != nil || got.State != order.NeedsConfirmation {
			t.Errorf("Read: got %+v, %v, want %s", got, err, order.NeedsConfirmation)
		}
	}
}

// TestTheDomainAndTheStripeDoubleHaveTheSameLimits compares two lists that were each
// written from the documentation, by preparing the largest amount of every currency.
func TestTheDomainAndTheStripeDoubleHaveTheSameLimits(t *testing.T) {
	s := rigtest.NewStripe(t, stripetest.Rules{})
	currencies := 0
	for i := range 26 * 26 * 26 {
		code := string([]byte{'a' + byte(i/676), 'a' + byte(i/26%26), 'a' + byte(i%26)})
		if !order.ValidCurrency(code) {
			continue
		}
		currencies++
		c := order.Currency(code)
		largest := order.Money{Amount: c.Max() / c.Step() * c.Step(), Currency: c}
		o := rigtest.OrderOf(t, "pm_card_visa", largest)
		got, err := s.Payments.Prepare(t.Context(), o, order.PrepareKey(rigtest.Scope, o.ID()))
		if err != nil || got.Total != largest {
			t.Errorf("%s: got %v, %v, want an intent of %v", code, got.Total, err, largest)
		}
		if err := (order.Money{Amount: largest.Amount + c.Step(), Currency: c}).Validate(); err == nil {
			t.Errorf("%s: the domain accepts %d", code, largest.Amount+c.Step())
		}
	}
	if currencies < 135 {
		t.Errorf("got %d currencies, want at least 135", currencies)
	}
}

// An intent in a status that this application never causes is found, because money may
// have moved. A page that failed is never an empty result.
func TestFindReturnsEveryIntentOfTheOrderInItsScope(t *testing.T) {
	live := strings.Replace(rigtest.Intent("succeeded"), `"livemode":false`, `"livemode":true`, 1)
	var sent []string
	found, err := charge.New(rigtest.Exchanging(func(r stripe.Request) (stripe.Response, error) {
		sent = append(sent, fmt.Sprint(r.Method, r.Path, r.Params))
		return rigtest.OK(`{"data":[` + live + `,{"id":"pi_held","status":"requires_capture"}]}`), nil
	})).Find(t.Context(), "ORD-1")
	want := []order.Intent{{
		ID: rigtest.IntentID, State: order.Succeeded, Total: order.Money{Amount: 2500, Currency: "eur"},
		OrderID: "ORD-1", Scope: "test", Fingerprint: "v1:0", Mode: order.LiveMode,
	}, {ID: "pi_held", State: "requires_capture", Mode: order.TestMode}}
	if diff := cmp.Diff(found, want); diff != "" || err != nil {
		t.Errorf("error %v (-got +want):\n%s", err, diff)
	}
	search := []string{"GET/v1/payment_intents/searchmap[query:[metadata['orderId']:'ORD-1' AND metadata['scope']:'test']]"}
	if diff := cmp.Diff(sent, search); diff != "" {
		t.Errorf("requests (-got +want):\n%s", diff)
	}
	for name, c := range map[string]struct {
		response stripe.Response
		want     order.ErrorKind
	}{
		"an unreadable body":        {rigtest.OK(`{"data":`), order.KindUnknown},
		"no list":                   {rigtest.OK(`{}`), order.KindUnknown},
		"more behind nothing":       {rigtest.OK(`{"has_more":true,"data":[]}`), order.KindUnknown},
		"an intent without an id":   {rigtest.OK(`{"data":[{"status":"succeeded"}]}`), order.KindUnknown},
		"204":                       {rigtest.Raw(http.StatusNoContent, ""), order.KindUnknown},
		"no search in this country": {rigtest.Failure(400, rigtest.InvalidRequest), order.KindMisconfigured},
		"402 with an intent": {
			rigtest.FailureWith(402, rigtest.CardDeclined, rigtest.DeclinedIntent()), order.KindMisconfigured,
		},
		"a rate limit": {rigtest.Failure(429, rigtest.RateLimit), order.KindUnavailable},
	} {
		found, err := charge.New(rigtest.Responding(c.response)).Find(t.Context(), "ORD-1")
		if got := rigtest.KindOf(t, err); got != c.want || len(found) != 0 || strings.Contains(err.Error(), "nil") {
			t.Errorf("%s: got %v, %s (%v), want %s", name, found, got, err, c.want)
		}
	}
}

// An attempt may crash before it records the failure, and a person may then edit the
// intent, which clears its last error. The next attempt finds the failure. Only an intent
// that has failed and was edited since costs one more call.
func TestTheNextAttemptFindsTheFailure(t *testing.T) {
	for claim, tt := range map[string]struct {
		card    string // "" is an intent that is not confirmed
		edited  bool
		status  order.Status
		failure string
		reads   int
	}{
		"an unconfirmed intent":                   {"", false, "", "", 1},
		"an unconfirmed intent that was edited":   {"", true, "", "", 1},
		"a paid intent that was edited":           {"pm_card_visa", true, order.Paid, "", 1},
		"a processing intent":                     {"pm_usBankAccount_processing", false, order.Pending, "", 1},
		"a decline has its code":                  {"pm_card_chargeDeclinedLostCard", false, order.Declined, "lost_card", 1},
		"a decline without a code has its type":   {"pm_card_chargeDeclinedUncoded", false, order.Declined, "card_error", 1},
		"an edited one may have neither":          {"pm_card_chargeDeclinedUncoded", true, order.Declined, "unexplained", 2},
		"an expired card is declined":             {"pm_card_chargeDeclinedExpiredCard", true, order.Declined, "expired_card", 2},
		"a payment that Radar blocks is declined": {"pm_card_radarBlock", true, order.Declined, "highest_risk_level", 2},
		"a payment that requires authentication is not declined": {
			"pm_card_authenticationRequired", true, order.ActionRequired, "authentication_required", 2,
		},
	} {
		for _, attempt := range []int{0, 1, 2} { // read, confirmed again under the same key, and under another
			p := rigtest.Prepare(t, stdcmp.Or(tt.card, "pm_1"))
			if tt.card != "" {
				_, err := p.Confirm(1)
				rigtest.Must(t, err)
			}
			if tt.edited {
				p.Edit()
			}
			next := p.Read
			if attempt > 0 && tt.failure != "" {
				next = func() (order.Intent, error) { return p.Confirm(attempt) }
			}
			intent, err := next()
			want := order.Outcome{Status: tt.status, Intent: p.Intent.ID, Failure: tt.failure}
			if tt.status == "" {
				want = order.Outcome{}
			}
			if got, _ := order.OutcomeOf(intent); err != nil || got != want {
				t.Errorf("%s, attempt %d: got %+v, %v, want %+v", claim, attempt, got, err, want)
			}
			if got := p.Count(stripetest.Read); attempt == 0 && got != tt.reads {
				t.Errorf("%s: got %d reads, want %d", claim, got, tt.reads)
			}
		}
	}
}

func TestA403NamesTheMissingPermission(t *testing.T) {
	forbidden := rigtest.Failure(403, rigtest.InvalidRequest)
	edited := rigtest.OK(rigtest.IntentWith("requires_payment_method", rigtest.Null, rigtest.Charge))
	for _, tt := range []struct {
		call, permission string
		responses        []stripe.Response
	}{
		{"prepare order ORD-1", "PaymentIntents: Write", []stripe.Response{forbidden}},
		{"confirm intent pi_3Pretend", "PaymentIntents: Write", []stripe.Response{forbidden}},
		{"read intent pi_3Pretend", "PaymentIntents: Read", []stripe.Response{forbidden}},
		{"read intent pi_3Pretend with its latest charge", "Charges and Refunds: Read", []stripe.Response{edited, forbidden}},
	} {
		method, _, _ := strings.Cut(tt.call, " ")
		_, err := rigtest.Methods(t, rigtest.Responding(tt.responses...))[method](t.Context())
		want := fmt.Sprintf("misconfigured: %s: stripe: 403 invalid_request_error (a restricted key needs the permission %q) "+
			"(request req_pretend)", tt.call, tt.permission)
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// The intent that is returned is the second read's, because the customer may have paid
// since the first one.
func TestTheSecondReadDecides(t *testing.T) {
	needsMethod := func(lastError, charge string) stripe.Response {
		return rigtest.OK(rigtest.IntentWith("requires_payment_method", lastError, charge))
	}
	edited := needsMethod(rigtest.Null, rigtest.Charge)
	for claim, tt := range map[string]struct {
		second  stripe.Response
		state   order.IntentState
		failure string
		kind    order.ErrorKind
	}{
		"the customer has paid since the first read": {
			second: rigtest.OK(rigtest.IntentWith("succeeded", rigtest.Null, rigtest.Charge)), state: order.Succeeded,
		},
		"another card has failed since the first read": {
			second: needsMethod(rigtest.DeclinedError, rigtest.ExpandedCharge), state: order.NeedsMethod, failure: "card_declined",
		},
		"the charge is not expanded":      {second: edited, kind: order.KindMisconfigured},
		"the property cannot be expanded": {second: rigtest.Failure(400, rigtest.InvalidRequest), kind: order.KindMisconfigured},
		"a rate limit":                    {second: rigtest.Failure(429, rigtest.InvalidRequest), kind: order.KindUnavailable},
		"a server error":                  {second: rigtest.Failure(500, rigtest.APIError), kind: order.KindUnknown},
		"a charge that is not an object":  {second: needsMethod(rigtest.Null, "5"), kind: order.KindUnknown},
		"a failure code that is a number": {second: needsMethod(rigtest.Null, `{"failure_code":5}`), kind: order.KindUnknown},
		"another intent":                  {second: rigtest.OK(`{"id":"pi_4","status":"succeeded"}`), kind: order.KindUnknown},
	} {
		for first, request := range map[string]string{
			"read": "GET /v1/payment_intents/pi_3Pretend ", "confirm": "POST /v1/payment_intents/pi_3Pretend/confirm off_session=true",
		} {
			var sent []string
			p := rigtest.Exchanging(func(r stripe.Request) (stripe.Response, error) {
				sent = append(sent, r.Method+" "+r.Path+" "+r.Params.Encode())
				switch {
				case len(sent) > 1:
					return tt.second, nil
				case r.Key != "":
					return rigtest.FailureWith(400, rigtest.UnexpectedState, string(edited.Body)), nil
				}
				return edited, nil
			})
			got, err := rigtest.Methods(t, p)[first](t.Context())
			if kind := rigtest.KindOf(t, err); kind != tt.kind || got.State != tt.state || got.Failure.Code != tt.failure {
				t.Errorf("%s, %s: got %+v, %v, want %q, %q, %q", claim, first, got, err, tt.state, tt.failure, tt.kind)
			}
			want := []string{request, "GET /v1/payment_intents/pi_3Pretend expand%5B0%5D=latest_charge"}
			if diff := cmp.Diff(sent, want); diff != "" {
				t.Errorf("%s, %s: requests (-got +want):\n%s", claim, first, diff)
			}
		}
	}
}
