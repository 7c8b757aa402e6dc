package audit_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/audit"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
)

// listed collects the pages of a list.
func listed(t *testing.T, p *audit.Account, from, to time.Time, after order.IntentID) (pages [][]string) {
	t.Helper()
	for page, err := range p.List(t.Context(), from, to, after) {
		rigtest.Must(t, err)
		var ids []string
		for _, l := range page {
			ids = append(ids, string(l.ID))
		}
		pages = append(pages, ids)
	}
	return pages
}

func TestListReturnsEveryPageNewestFirst(t *testing.T) {
	t.Parallel()
	s := rigtest.NewStripe(t)
	p := audit.New(rigtest.Options(t, s.URL, nil))
	start := s.Now()
	var want []string
	s.Machine(func(m *stripetest.Machine) {
		for n := range 252 { // one a second; the first and the last are outside of the window
			m.Do(start.Add(time.Duration(n)*time.Second), stripetest.Request{
				Method: "POST", Path: "/v1/payment_intents", APIKey: rigtest.Key,
				Form: url.Values{"amount": {"50"}, "currency": {"usd"}},
			})
			want = append([]string{fmt.Sprintf("pi_%06d", n+1)}, want...)
		}
	})
	want = want[1:251]
	from, to := start.Add(time.Second), start.Add(251*time.Second)
	if diff := cmp.Diff([][]string{want[:100], want[100:200], want[200:]}, listed(t, p, from, to, "")); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if calls := s.Count(stripetest.List); calls != 3 {
		t.Errorf("made %d calls, want 3", calls)
	}
	continued := listed(t, p, from, to, order.IntentID(want[99]))
	if diff := cmp.Diff([][]string{want[100:200], want[200:]}, continued); diff != "" {
		t.Errorf("pages after the first (-want +got):\n%s", diff)
	}
	if empty := listed(t, p, to.Add(time.Hour), to.Add(2*time.Hour), ""); len(empty) != 1 || empty[0] != nil {
		t.Errorf("got %v of an hour without intents, want one empty page", empty)
	}
}

func TestAListedIntentHasWhatItsChargeShows(t *testing.T) {
	t.Parallel()
	p := rigtest.Prepare(t, stripetest.Succeeds)
	if _, err := p.Confirm(1); err != nil {
		t.Fatal(err)
	}
	p.Machine(func(m *stripetest.Machine) {
		_, err := m.RefundInDashboard(p.Now(), string(p.Intent.ID), 7)
		rigtest.Must(t, err)
		_, err = m.OpenDispute(p.Now(), string(p.Intent.ID))
		rigtest.Must(t, err)
	})
	intent, err := p.Read()
	rigtest.Must(t, err)
	want := audit.Listed{Intent: intent, CreatedAt: p.Now().UTC(), Refunded: 7, Disputed: true}
	for page, err := range audit.New(p.Options).List(t.Context(), p.Now(), p.Now().Add(time.Second), "") {
		if diff := cmp.Diff([]audit.Listed{want}, page); diff != "" || err != nil {
			t.Errorf("list: error %v (-want +got):\n%s", err, diff)
		}
	}
	one, err := audit.New(p.Options).Read(t.Context(), p.Intent.ID)
	if diff := cmp.Diff(want, one); diff != "" || err != nil {
		t.Errorf("read: error %v (-want +got):\n%s", err, diff)
	}
}

// An intent in an unknown status is listed with its order.
func TestAListedIntentHasItsOutcome(t *testing.T) {
	t.Parallel()
	failed := rigtest.IntentWithCharge("requires_payment_method", rigtest.Null, rigtest.ExpandedCharge)
	body := `{"data":[` + failed + `,{"id":"pi_held","status":"requires_capture","metadata":{"orderId":"ORD-1","scope":"test"}}]}`
	p := audit.New(rigtest.Responding(t, rigtest.OK(body)))
	for page, err := range p.List(t.Context(), time.Unix(0, 0), time.Unix(1, 0), "") {
		rigtest.Must(t, err)
		if o, settled := order.OutcomeOf(page[0].Intent); !settled || o.Status != order.ActionRequired {
			t.Errorf("got outcome %+v, want that of the charge", o)
		}
		if want := (order.Intent{ID: "pi_held", OrderID: "ORD-1", Scope: "test"}); page[1].Intent != want {
			t.Errorf("got %+v, want %+v", page[1].Intent, want)
		}
	}
}

func TestAFailedListIsAnErrorAndNoEmptyPage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		response rigtest.Response
		want     order.ErrorKind
		text     string
	}{
		"an unreadable body":      {rigtest.OK(`{"data":`), order.KindUnknown, "not a list"},
		"no list":                 {rigtest.OK(`{"object":"list"}`), order.KindUnknown, "not a list"},
		"an empty page and more":  {rigtest.OK(`{"has_more":true,"data":[]}`), order.KindUnknown, "not a list"},
		"an intent without an id": {rigtest.OK(`{"data":[{"status":"succeeded"}]}`), order.KindUnknown, "without a PaymentIntent"},
		"a charge that was not expanded": {
			rigtest.OK(`{"data":[` + rigtest.IntentWithCharge("succeeded", rigtest.Null, rigtest.Charge) + `]}`), order.KindUnknown, "not expanded",
		},
		"a missing permission": {
			rigtest.Failure(403, rigtest.InvalidRequest, ""), order.KindMisconfigured, "Charges and Refunds: Read",
		},
		"a rate limit": {rigtest.Failure(429, `"code":"rate_limit"`, ""), order.KindUnavailable, "429"},
	} {
		n := 0
		p := audit.New(rigtest.Responding(t, c.response))
		for page, err := range p.List(t.Context(), time.Unix(0, 0), time.Unix(1, 0), "") {
			if n++; n > 1 || rigtest.KindOf(t, err) != c.want || !strings.Contains(err.Error(), c.text) || page != nil {
				t.Errorf("%s: got %v, %v, want %s with %q, once", name, page, err, c.want, c.text)
			}
		}
	}
}

func TestReadListedRefusesAnotherIntent(t *testing.T) {
	t.Parallel()
	p := audit.New(rigtest.Responding(t, rigtest.OK(rigtest.Intent("succeeded", rigtest.Null))))
	if _, err := p.Read(t.Context(), "pi_other"); err == nil || !strings.Contains(err.Error(), "another PaymentIntent") {
		t.Errorf("got %v, want that it is another intent", err)
	}
	missing := audit.New(rigtest.Responding(t, rigtest.Failure(404, rigtest.ResourceMissing, "")))
	_, err := missing.Read(t.Context(), rigtest.IntentID)
	if rigtest.KindOf(t, err) != order.KindMisconfigured {
		t.Errorf("an intent that Stripe lacks: got %v, want Misconfigured", err)
	}
}
