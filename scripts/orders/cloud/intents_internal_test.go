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

func TestAPaymentHasWhatItsChargeShows(t *testing.T) {
	s := rigtest.Prepare(t, "pm_card_visa")
	_, err := s.Confirm(1)
	rigtest.Must(t, err)
	s.Refund(s.Intent.ID, 7)
	s.Dispute(s.Intent.ID)
	intent, err := s.Read()
	rigtest.Must(t, err)
	want := audit.Payment{Intent: intent, CreatedAt: s.Now().UTC(), Refunded: 7, Disputed: true}
	account := intents{stripe.New(s.Options)}
	page, err := account.page(t.Context(), audit.Window{From: s.Now(), To: s.Now().Add(time.Second)}, "")
	if diff := cmp.Diff(page.Items, []audit.Payment{want}); diff != "" || err != nil {
		t.Errorf("page: error %v (-got +want):\n%s", err, diff)
	}
	one, err := account.read(t.Context(), s.Intent.ID)
	if diff := cmp.Diff(one, want); diff != "" || err != nil {
		t.Errorf("read: error %v (-got +want):\n%s", err, diff)
	}
	failed := rigtest.IntentWith("requires_payment_method", rigtest.Null, rigtest.ExpandedCharge)
	body := `{"data":[` + failed + `,{"id":"pi_held","status":"requires_capture","metadata":{"orderId":"ORD-1","scope":"test"}}]}`
	page, err = intents{stripe.New(rigtest.Responding(rigtest.OK(body)))}.page(t.Context(), audit.Window{}, "")
	rigtest.Must(t, err)
	if o, settled := order.OutcomeOf(page.Items[0].Intent); !settled || o.Status != order.ActionRequired {
		t.Errorf("got outcome %+v, want that of the charge", o)
	}
	held := order.Intent{ID: "pi_held", State: "requires_capture", OrderID: "ORD-1", Scope: "test", Mode: order.TestMode}
	if page.Items[1].Intent != held {
		t.Errorf("an unknown status: got %+v, want %+v", page.Items[1].Intent, held)
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
