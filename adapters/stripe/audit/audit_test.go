package audit_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/audit"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
)

func TestListReturnsEveryPageNewestFirst(t *testing.T) {
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
	from, to := start.Add(time.Second), start.Add(251*time.Second)
	for after, want := range map[string][][]string{
		"": {want[:100], want[100:200], want[200:]}, want[99]: {want[100:200], want[200:]}, want[249]: {nil},
	} {
		var pages [][]string
		for page, err := range audit.New(s.Options).List(t.Context(), from, to, order.IntentID(after)) {
			rigtest.Must(t, err)
			var ids []string
			for _, l := range page {
				ids = append(ids, string(l.ID))
			}
			pages = append(pages, ids)
		}
		if diff := cmp.Diff(pages, want); diff != "" {
			t.Errorf("pages after %q (-got +want):\n%s", after, diff)
		}
	}
	if calls := s.Count(stripetest.List); calls != 6 {
		t.Errorf("made %d calls, want 6, one a page", calls)
	}
}

func TestAListedIntentHasWhatItsChargeShows(t *testing.T) {
	p := rigtest.Prepare(t, stripetest.Succeeds)
	_, err := p.Confirm(1)
	rigtest.Must(t, err)
	p.Refund(p.Intent.ID, 7)
	p.Dispute(p.Intent.ID)
	intent, err := p.Read()
	rigtest.Must(t, err)
	want := audit.Listed{Intent: intent, CreatedAt: p.Now().UTC(), Refunded: 7, Disputed: true}
	for page, err := range audit.New(p.Options).List(t.Context(), p.Now(), p.Now().Add(time.Second), "") {
		if diff := cmp.Diff(page, []audit.Listed{want}); diff != "" || err != nil {
			t.Errorf("list: error %v (-got +want):\n%s", err, diff)
		}
	}
	one, err := audit.New(p.Options).Read(t.Context(), p.Intent.ID)
	if diff := cmp.Diff(one, want); diff != "" || err != nil {
		t.Errorf("read: error %v (-got +want):\n%s", err, diff)
	}
	failed := rigtest.IntentWith("requires_payment_method", rigtest.Null, rigtest.ExpandedCharge)
	body := `{"data":[` + failed + `,{"id":"pi_held","status":"requires_capture","metadata":{"orderId":"ORD-1","scope":"test"}}]}`
	for page, err := range audit.New(rigtest.Responding(rigtest.OK(body))).List(t.Context(), p.Now(), p.Now(), "") {
		rigtest.Must(t, err)
		if o, settled := order.OutcomeOf(page[0].Intent); !settled || o.Status != order.ActionRequired {
			t.Errorf("got outcome %+v, want that of the charge", o)
		}
		if held := (order.Intent{ID: "pi_held", OrderID: "ORD-1", Scope: "test"}); page[1].Intent != held {
			t.Errorf("an unknown status: got %+v, want %+v", page[1].Intent, held)
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
		n := 0
		p := audit.New(rigtest.Responding(c.response))
		for page, err := range p.List(t.Context(), time.Unix(0, 0), time.Unix(1, 0), "") {
			if n++; n > 1 || rigtest.KindOf(t, err) != c.want || !strings.Contains(err.Error(), c.text) || page != nil {
				t.Errorf("%s: got %v, %v, want %s with %q, once", name, page, err, c.want, c.text)
			}
		}
	}
	p := audit.New(rigtest.Responding(rigtest.OK(rigtest.Intent("succeeded"))))
	if _, err := p.Read(t.Context(), "pi_other"); err == nil || !strings.Contains(err.Error(), "another PaymentIntent") {
		t.Errorf("got %v, want that it is another intent", err)
	}
	missing := audit.New(rigtest.Responding(rigtest.Failure(404, rigtest.ResourceMissing)))
	if _, err := missing.Read(t.Context(), rigtest.IntentID); rigtest.KindOf(t, err) != order.KindMisconfigured {
		t.Errorf("an intent that Stripe lacks: got %v, want it misconfigured", err)
	}
}
