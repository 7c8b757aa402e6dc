package stripe_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestDisputes(t *testing.T) {
	t.Parallel()
	ordertest.TestDisputes(t, func(t *testing.T) ordertest.DisputesUnderTest {
		t.Helper()
		s := newStripe(t)
		payments := newPayments(t, s.URL, nil)
		return ordertest.DisputesUnderTest{
			PaymentsUnderTest: paymentsUnderTest(t, s, payments), Disputes: payments,
			Dispute: func(id order.IntentID) (dispute order.DisputeID) {
				s.Advance(time.Hour) // Stripe's times are in seconds
				s.Machine(func(m *stripetest.Machine) {
					d, err := m.OpenDispute(s.Now(), string(id))
					must(t, err)
					dispute = order.DisputeID(d.ID)
				})
				return dispute
			},
			Close: func(id order.DisputeID, status order.DisputeStatus) {
				s.Machine(func(m *stripetest.Machine) { must(t, m.CloseDispute(string(id), status == order.DisputeWon)) })
			},
		}
	})
}

// disputeJSON is a dispute as Stripe sends it, with more fields than the adapter reads.
func disputeJSON(id, status string) string {
	return fmt.Sprintf(`{"id":%q,"object":"dispute","amount":2500,"balance_transactions":[],"charge":"ch_3Pretend",`+
		`"created":1790000000,"currency":"eur","evidence":{"customer_email_address":"canary@example.com"},"livemode":false,`+
		`"metadata":{},"payment_intent":"pi_3Pretend","reason":"fraudulent","status":%q}`, id, status)
}

// disputes serves a list of disputes.
func disputes(t *testing.T, all ...string) *stripe.Payments {
	t.Helper()
	return serving(t, response{200, false, `{"object":"list","data":[` + strings.Join(all, ",") + `]}`}.ServeHTTP)
}

// docs.stripe.com/api/disputes/object, status. The last two are newer than the API
// version that is requested, and unknown.
func TestWhatCameOfADispute(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]order.DisputeStatus{
		"warning_needs_response": order.DisputeOpen, "warning_under_review": order.DisputeOpen,
		"needs_response": order.DisputeOpen, "under_review": order.DisputeOpen,
		"warning_closed": order.DisputeWon, "won": order.DisputeWon, "lost": order.DisputeLost,
		"prevented": order.DisputeWon, "escalated": order.DisputeOpen,
	} {
		got, err := disputes(t, disputeJSON("du_1", status)).Disputes(t.Context(), intentID)
		expected := []order.Dispute{{ID: "du_1", Status: want, CreatedAt: time.Unix(1_790_000_000, 0)}}
		if diff := cmp.Diff(got, expected); err != nil || diff != "" {
			t.Errorf("%s: error %v (-got +want):\n%s", status, err, diff)
		}
	}
}

func TestDisputesAreListedByTheirIntent(t *testing.T) {
	t.Parallel()
	var got *http.Request
	p := serving(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		response{200, false, `{"object":"list","data":[]}`}.ServeHTTP(w, r)
	})
	if all, err := p.Disputes(t.Context(), intentID); err != nil || len(all) != 0 {
		t.Fatalf("got %v, %v, want none", all, err)
	}
	want := url.Values{"payment_intent": {string(intentID)}, "limit": {"100"}}
	if diff := cmp.Diff(got.URL.Query(), want); diff != "" {
		t.Errorf("query (-got +want):\n%s", diff)
	}
	if name := got.Method + " " + got.URL.Path; name != "GET /v1/disputes" || stripe.CallName(got) != name {
		t.Errorf("got %s, called %s, want GET /v1/disputes", name, stripe.CallName(got))
	}
}

func TestAFailedListOfDisputesIsNeverAnEmptyOne(t *testing.T) {
	t.Parallel()
	list := func(body string) response { return response{200, false, body} }
	for claim, tt := range map[string]struct {
		response response
		want     order.ErrorKind
	}{
		"an unreadable body":        {list(`{"data":`), order.KindUnknown},
		"no list":                   {list(`{"object":"dispute"}`), order.KindUnknown},
		"a dispute of another type": {list(`{"data":[{"id":5}]}`), order.KindUnknown},
		"a dispute without an id":   {list(`{"data":[` + disputeJSON("", "lost") + `]}`), order.KindUnknown},
		"a dispute of another intent": {
			list(strings.Replace(`{"data":[`+disputeJSON("du_1", "lost")+`]}`, "pi_3", "pi_4", 1)), order.KindUnknown,
		},
		"402 with an intent": {failure(402, cardDeclined, declinedIntent()), order.KindMisconfigured},
		"an unknown intent":  {failure(400, resourceMissing, ""), order.KindMisconfigured},
		"a rate limit":       {failure(429, `"code":"rate_limit"`, ""), order.KindUnavailable},
		"a server error":     {failure(500, apiError, ""), order.KindUnknown},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			all, err := serving(t, tt.response.ServeHTTP).Disputes(t.Context(), intentID)
			if got := kindOf(t, err); got != tt.want || len(all) != 0 {
				t.Errorf("got %v, %s (%v), want %s", all, got, err, tt.want)
			}
		})
	}
}

func TestAMissingPermissionToReadDisputesIsNamed(t *testing.T) {
	t.Parallel()
	p := prepareWith(t, "rk_test_pretend4242", stripetest.Rules{NoDisputes: true}, stripetest.Succeeds)
	_, err := p.payments.Disputes(t.Context(), p.intent.ID)
	const want = `(a restricted key needs the permission "Disputes: Read")`
	if kindOf(t, err) != order.KindMisconfigured || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want it misconfigured and %s", err, want)
	}
}

func TestAnEventOfADisputeIsAHint(t *testing.T) {
	t.Parallel()
	disputed := order.Hint{Intent: intentID, Status: order.Paid, Disputed: true}
	for claim, tt := range map[string]struct {
		kind, object string
		want         order.Hint
	}{
		"opened":                  {"charge.dispute.created", disputeJSON("du_1", "needs_response"), disputed},
		"changed":                 {"charge.dispute.updated", disputeJSON("du_1", "under_review"), disputed},
		"closed":                  {"charge.dispute.closed", disputeJSON("du_1", "lost"), disputed},
		"another API version":     {"charge.dispute.closed", `{"id":5,"payment_intent":"pi_3Pretend","status":{}}`, disputed},
		"funds were withdrawn":    {"charge.dispute.funds_withdrawn", disputeJSON("du_1", "lost"), order.Hint{}},
		"a charge without intent": {"charge.dispute.created", `{"id":"du_1","payment_intent":null}`, order.Hint{}},
		"not a dispute":           {"charge.dispute.created", `{"payment_intent":5}`, order.Hint{}},
	} {
		e, err := stripe.ParseEvent(snapshot(tt.kind, tt.object))
		if err != nil || e.Hint != tt.want {
			t.Errorf("%s: got %+v, %v, want %+v", claim, e.Hint, err, tt.want)
		}
	}
	thin := []byte(`{"id":"evt_1","object":"v2.core.event","type":"charge.dispute.created","created":"2026-09-21T13:33:20Z",` +
		`"related_object":{"id":"du_1","type":"dispute","url":"/v1/disputes/du_1"}}`)
	if e, err := stripe.ParseEvent(thin); err != nil || e.Hint != (order.Hint{}) {
		t.Errorf("a thin event: got %+v, %v, want no hint", e.Hint, err)
	}
}

// disputedOrder is an order that was paid and then disputed in a Stripe double, behind an
// endpoint for the events.
type disputedOrder struct {
	*stripetest.Server

	t        *testing.T
	store    *ordertest.Memory
	endpoint *stripe.Webhook
}

func disputeOrder(t *testing.T) disputedOrder {
	t.Helper()
	s := newStripe(t)
	payments, store := newPayments(t, s.URL, nil), new(ordertest.Memory)
	p := order.Processor{Claims: store, Payments: payments, Scope: scope, Now: s.Now, ConfirmTime: time.Second}
	lease := order.Lease{Owner: "first", From: s.Now(), Until: s.Now().Add(time.Minute)}
	if got := p.Process(t.Context(), newOrder(t, "pm_card_visa"), s.Now(), lease); got.Status != order.Paid {
		t.Fatalf("got %+v, want a paid order", got)
	}
	s.Machine(func(m *stripetest.Machine) {
		_, err := m.OpenDispute(s.Now(), "pi_000001")
		must(t, err)
	})
	follower := &order.DisputeFollower{
		Follower: order.Follower{Records: store, Payments: payments, Scope: scope, Now: s.Now},
		Disputes: payments, Recorder: store,
	}
	return disputedOrder{s, t, store, &stripe.Webhook{
		Secrets: []string{endpointSecret}, Follow: follower.Follow, Now: s.Now,
		Log: slog.New(slog.DiscardHandler), Count: func(string) {},
	}}
}

func (d disputedOrder) lose() {
	d.Machine(func(m *stripetest.Machine) { must(d.t, m.CloseDispute("du_000001", false)) })
}

// deliver sends the events of these numbers: 2 is the dispute's opening, 3 its end.
func (d disputedOrder) deliver(numbers ...int) {
	d.t.Helper()
	var events []stripetest.Event
	d.Machine(func(m *stripetest.Machine) { events = m.Events() })
	for _, n := range numbers {
		body := events[n-1].Body(time.Unix(1_767_225_600, 0))
		r := httptest.NewRequestWithContext(d.t.Context(), http.MethodPost, "/stripe/webhook", bytes.NewReader(body))
		r.Header.Set("Stripe-Signature", stripetest.Signature(body, d.Now(), endpointSecret))
		w := httptest.NewRecorder()
		if d.endpoint.ServeHTTP(w, r); w.Code != http.StatusOK {
			d.t.Errorf("event %d: got %d, want 200", n, w.Code)
		}
	}
}

// history returns the types of the order's events, and the status of its dispute.
func (d disputedOrder) history() (all []string) {
	d.t.Helper()
	r, err := d.store.Load(d.t.Context(), "ORD-1")
	must(d.t, err)
	for _, e := range r.Events {
		all = append(all, e.Type())
	}
	return append(all, string(r.Dispute.Status))
}

func TestWebhooksOfADisputeEndInOneHistory(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		late    time.Duration
		numbers []int
	}{
		"in order":        {0, []int{2, 3}},
		"reversed":        {0, []int{3, 2}},
		"three times":     {0, []int{2, 2, 2, 3, 3, 3}},
		"three days late": {72 * time.Hour, []int{3, 2}},
		"only the first":  {0, []int{2}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			d := disputeOrder(t)
			d.lose()
			d.Advance(tt.late)
			d.deliver(tt.numbers...)
			if diff := cmp.Diff(d.history(), []string{"order.paid", "order.dispute_lost", "lost"}); diff != "" {
				t.Errorf("events and dispute (-got +want):\n%s", diff)
			}
		})
	}
	t.Run("as it happens, then all of it again", func(t *testing.T) {
		t.Parallel()
		d := disputeOrder(t)
		d.deliver(2)
		d.lose()
		d.deliver(3, 2, 1, 3)
		if diff := cmp.Diff(d.history(), []string{"order.paid", "order.disputed", "order.dispute_lost", "lost"}); diff != "" {
			t.Errorf("events and dispute (-got +want):\n%s", diff)
		}
	})
}
