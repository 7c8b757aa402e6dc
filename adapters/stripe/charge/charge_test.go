package charge_test

import (
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
	}, {ID: "pi_held", State: "requires_capture"}}
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
