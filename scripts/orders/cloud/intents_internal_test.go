package cloud

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
	"orderonce/scripts/orders/audit"
)

func TestAPageListsIntentsNewestFirst(t *testing.T) {
	s := rigtest.NewStripe(t, stripetest.Rules{})
	start := s.Now()
	var want []string
	s.Machine(func(m *stripetest.Machine) {
		for n := range 252 { // one a second; the first and the last are outside of the window
			m.Do(start.Add(time.Duration(n)*time.Second), stripetest.Request{
				Method: "POST", Path: "/v1/payment_intents", APIKey: rigtest.Key,
				Form: url.Values{"amount": {"50"}, "currency": {"usd"}},
			})
			want = append(want, fmt.Sprintf("pi_%06d", n+1))
		}
	})
	slices.Reverse(want)
	want = want[1:251]
	window := audit.Window{From: start.Add(time.Second), To: start.Add(251 * time.Second)}
	for after, want := range map[string][]string{"": want[:100], want[99]: want[100:200], want[199]: want[200:], want[249]: nil} {
		page, err := intents{stripe.New(s.Options)}.page(t.Context(), window, after)
		var got []string
		for _, p := range page.Items {
			got = append(got, string(p.ID))
			if !window.Contains(p.CreatedAt) {
				t.Errorf("%s: created at %s, want a time in the window", p.ID, p.CreatedAt)
			}
		}
		next := ""
		if len(want) == 100 {
			next = want[99]
		}
		if diff := cmp.Diff(got, want); diff != "" || err != nil || page.Next != next {
			t.Errorf("page after %q: next %q, error %v (-got +want):\n%s", after, page.Next, err, diff)
		}
	}
}

func TestAFailedListIsAnErrorAndNoEmptyPage(t *testing.T) {
	notExpanded := rigtest.IntentWith("succeeded", rigtest.Null, rigtest.Charge)
	for name, c := range map[string]struct {
		response stripe.Response
		want     order.ErrorKind
		text     string
	}{
		"an unreadable body":             {rigtest.OK(`{"data":`), order.KindUnknown, "not a list"},
		"an empty page and more":         {rigtest.OK(`{"has_more":true,"data":[]}`), order.KindUnknown, "not a list"},
		"an intent without an id":        {rigtest.OK(`{"data":[{"status":"succeeded"}]}`), order.KindUnknown, "without a PaymentIntent"},
		"a charge that was not expanded": {rigtest.OK(`{"data":[` + notExpanded + `]}`), order.KindUnknown, "not expanded"},
		"a missing permission":           {rigtest.Failure(403, rigtest.InvalidRequest), order.KindMisconfigured, "Charges and Refunds: Read"},
	} {
		page, err := intents{stripe.New(rigtest.Responding(c.response))}.page(t.Context(), audit.Window{}, "")
		if rigtest.KindOf(t, err) != c.want || !strings.Contains(err.Error(), c.text) || page.Items != nil {
			t.Errorf("%s: got %v, %v, want %s with %q", name, page, err, c.want, c.text)
		}
	}
	other := intents{stripe.New(rigtest.Responding(rigtest.OK(rigtest.Intent("succeeded"))))}
	if _, err := other.read(t.Context(), "pi_other"); err == nil || !strings.Contains(err.Error(), "another PaymentIntent") {
		t.Errorf("got %v, want that it is another intent", err)
	}
}

func TestARefundWithoutAnIDIsNotTheEndOfTheList(t *testing.T) {
	account := intents{stripe.New(rigtest.Responding(rigtest.OK(`{"has_more":true,"data":[{"object":"refund"}]}`)))}
	if _, err := account.refunds(t.Context(), audit.Window{}, ""); order.KindOf(err) != order.KindUnknown {
		t.Errorf("got %v, want %s", err, order.KindUnknown)
	}
}
