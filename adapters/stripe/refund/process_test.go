package refund_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/adapters/stripe/webhook"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

// refundedOrder is an order of 2500 eur that was paid in a Stripe double, and its
// refunds.
type refundedOrder struct {
	*stripetest.Server

	t        *testing.T
	payments *charge.Payments
	store    *refundtest.Memory
	provider refund.Provider
	attempts int
}

func payOrder(t *testing.T) *refundedOrder {
	t.Helper()
	s := rigtest.NewStripe(t)
	orders, payments := new(ordertest.Memory), charge.New(rigtest.Options(t, s.URL, nil))
	p := order.Processor{
		Claims: orders, Payments: payments, Scope: rigtest.Scope, Now: s.Now, ConfirmTime: time.Second,
	}
	lease := order.Lease{Owner: "charge", From: s.Now(), Until: s.Now().Add(time.Minute)}
	if got := p.Process(t.Context(), rigtest.NewOrder(t, "pm_card_visa"), s.Now(), lease); got.Status != order.Paid {
		t.Fatalf("got %+v, want a paid order", got)
	}
	return &refundedOrder{
		Server: s, t: t, payments: payments, store: refundtest.NewMemory(orders), provider: newRefunds(t, s.URL, s.Now),
	}
}

// refund delivers the message for refund R1 once.
func (o *refundedOrder) refund(amount int64) order.Result {
	o.t.Helper()
	r, err := refund.New(refund.Draft{OrderID: "ORD-1", RefundID: "R1", Amount: amount, Reason: "duplicate"})
	rigtest.Must(o.t, err)
	p := refund.Processor{Claims: o.store, Provider: o.provider, Scope: rigtest.Scope, Now: o.Now, CreateTime: time.Second}
	o.attempts++
	return p.Process(o.t.Context(), r, order.Lease{
		Owner: fmt.Sprint("attempt ", o.attempts), From: o.Now(), Until: o.Now().Add(time.Minute),
	})
}

// made returns the amounts of the refunds at Stripe that are R1.
func (o *refundedOrder) made() (all []int64) {
	o.Machine(func(m *stripetest.Machine) {
		for _, r := range m.Refunds() {
			if r.Metadata["refundId"] == "R1" {
				all = append(all, r.Amount)
			}
		}
	})
	return all
}

func (o *refundedOrder) inDashboard(amount int64) {
	o.t.Helper()
	o.Machine(func(m *stripetest.Machine) {
		_, err := m.RefundInDashboard(o.Now(), "pi_000001", amount)
		rigtest.Must(o.t, err)
	})
}

func (o *refundedOrder) wantStatus(want refund.Status) {
	o.t.Helper()
	a, err := o.store.Account(o.t.Context(), "ORD-1")
	rigtest.Must(o.t, err)
	if i, _ := a.Item("R1"); i.Status != want {
		o.t.Errorf("got refund R1 %s, want it %s", i.Status, want)
	}
}

func TestANewRefundIsTwoRequestsAndADuplicateNone(t *testing.T) {
	t.Parallel()
	o := payOrder(t)
	paid := len(o.Calls())
	for range 3 {
		if got := o.refund(1000); got.Verdict != order.Done {
			t.Errorf("got %+v, want it done", got)
		}
	}
	var calls []stripetest.Endpoint
	for _, c := range o.Calls()[paid:] {
		calls = append(calls, c.Endpoint)
	}
	if diff := cmp.Diff(calls, []stripetest.Endpoint{stripetest.Read, stripetest.CreateRefund}); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(o.made(), []int64{1000}); diff != "" {
		t.Errorf("refunds (-got +want):\n%s", diff)
	}
	o.wantStatus(refund.Succeeded)
}

// A refund of the same amount that somebody made in the Dashboard is not ours.
func TestARefundIsNotTakenForOneOfTheSameAmount(t *testing.T) {
	t.Parallel()
	o := payOrder(t)
	o.inDashboard(1000)
	if got := o.refund(1000); got.Verdict != order.Done || len(o.made()) != 1 {
		t.Errorf("got %+v and %d refunds, want one", got, len(o.made()))
	}
}

// Ours was made, the response was lost, its key has expired, and so many others were made
// since that ours is on the third page.
func TestARefundBehindManyOthersIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	o := payOrder(t)
	o.Fail(stripetest.Fault{Kind: stripetest.LoseResponse, On: stripetest.CreateRefund})
	if got := o.refund(500); got.Verdict != order.Redeliver {
		t.Errorf("got %+v, want it redelivered", got)
	}
	for range 115 {
		o.inDashboard(1)
	}
	o.Machine(func(m *stripetest.Machine) { m.ForgetKeys() })
	o.Advance(time.Hour)
	if got := o.refund(500); got.Verdict != order.Done || len(o.made()) != 1 {
		t.Errorf("got %+v and %d refunds, want one", got, len(o.made()))
	}
	o.wantStatus(refund.Succeeded)
}

// A 200 that shows another refund than was ordered settles nothing.
func TestAResponseWithAnotherRefundSettlesNothing(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]*strings.Replacer{
		"the refund's id": strings.NewReplacer(`"refundId":"R1"`, `"refundId":"R2"`),
		"the order":       strings.NewReplacer(`"orderId":"ORD-1"`, `"orderId":"ORD-2"`),
		"the scope":       strings.NewReplacer(`"scope":"test"`, `"scope":"prod"`),
		"the amount":      strings.NewReplacer(`"amount":1000`, `"amount":100`),
		"the currency":    strings.NewReplacer(`"currency":"eur"`, `"currency":"usd"`),
		"the intent":      strings.NewReplacer(`"pi_000001"`, `"pi_000002"`),
	} {
		o := payOrder(t)
		exchange := exchangeWith(o.Server)
		o.provider = striperefund.New(stripe.Options{
			Key: rigtest.Key, Scope: rigtest.Scope, Now: o.Now,
			Exchange: func(ctx context.Context, r stripe.Request) (stripe.Response, error) {
				response, err := exchange(ctx, r)
				if r.Method == http.MethodPost {
					response.Body = []byte(change.Replace(string(response.Body)))
				}
				return response, err
			},
		})
		if got := o.refund(1000); got.Verdict == order.Done {
			t.Errorf("another value of %s: got %+v, want it not done", field, got)
		}
		o.wantStatus(refund.Open)
	}
}

// The worker is frozen between its read and its request, for longer than Stripe keeps
// a key. Meanwhile another attempt makes the refund.
func TestAWorkerThatWasFrozenDoesNotRefundAgain(t *testing.T) {
	t.Parallel()
	o := payOrder(t)
	provider, frozen := o.provider, false
	o.provider = refundtest.Intercepted{
		Claims: o.store, Provider: provider, Intercept: func(c refundtest.Call, do func() error) error {
			if c == refundtest.Create && !frozen {
				frozen = true
				o.Advance(time.Hour) // past the lease
				if got := o.refund(1000); got.Verdict != order.Done {
					t.Errorf("another attempt: got %+v, want it done", got)
				}
				o.Advance(25 * time.Hour)
			}
			return do()
		},
	}
	o.refund(1000)
	if got := len(o.made()); got != 1 {
		t.Errorf("got %d refunds, want 1", got)
	}
	o.wantStatus(refund.Succeeded)
}

func TestADisputedChargeRefusesARefund(t *testing.T) {
	t.Parallel()
	o := payOrder(t)
	o.Machine(func(m *stripetest.Machine) {
		_, err := m.OpenDispute(o.Now(), "pi_000001")
		rigtest.Must(t, err)
	})
	if got := o.refund(1000); got.Verdict != order.Done || got.Reason != refund.ReasonRefused {
		t.Errorf("got %+v, want it refused", got)
	}
	a, err := o.store.Account(t.Context(), "ORD-1")
	rigtest.Must(t, err)
	if i, _ := a.Item("R1"); i.Status != refund.Refused || i.Failure != "charge_disputed" {
		t.Errorf("got %+v, want it refused as charge_disputed", i)
	}
}

// deliverAll sends every event of the double to an endpoint, twice.
func (o *refundedOrder) deliverAll() {
	o.t.Helper()
	orders := order.Follower{Records: o.store.Orders, Payments: o.payments, Scope: rigtest.Scope, Now: o.Now}
	follower := refund.Follower{Orders: orders.Follow, Refresher: refund.Refresher{
		Records: o.store, Provider: o.provider, Scope: rigtest.Scope, Now: o.Now,
	}}
	endpoint := &webhook.Endpoint{
		Secrets: []string{"whsec_current"}, Follow: follower.Follow, Now: o.Now,
		Log: slog.New(slog.DiscardHandler), Count: func(string) {},
	}
	var events []stripetest.Event
	o.Machine(func(m *stripetest.Machine) { events = m.Events() })
	for _, e := range slices.Concat(events, events) {
		body := e.Body(o.Now())
		r := httptest.NewRequestWithContext(o.t.Context(), http.MethodPost, "/stripe/webhook", bytes.NewReader(body))
		r.Header.Set("Stripe-Signature", stripetest.Signature(body, o.Now(), "whsec_current"))
		w := httptest.NewRecorder()
		if endpoint.ServeHTTP(w, r); w.Code != http.StatusOK {
			o.t.Errorf("%s: got %d, want 200", e.Type, w.Code)
		}
	}
}

// The bank returns a refund, and somebody makes another one in the Dashboard.
func TestWebhooksRecordWhatHappenedToRefundsLater(t *testing.T) {
	t.Parallel()
	o := payOrder(t)
	if got := o.refund(1000); got.Verdict != order.Done {
		t.Fatalf("got %+v, want it done", got)
	}
	o.Machine(func(m *stripetest.Machine) { rigtest.Must(t, m.ChangeRefund("re_000001", stripetest.RefundFailed)) })
	o.inDashboard(2500)
	o.deliverAll()
	o.wantStatus(refund.Failed)
	a, err := o.store.Account(t.Context(), "ORD-1")
	rigtest.Must(t, err)
	if a.Status != order.Refunded || a.Outside != 2500 {
		t.Errorf("got %+v, want it refunded by others", a)
	}
	r, err := o.store.Orders.Load(t.Context(), "ORD-1")
	rigtest.Must(t, err)
	var history []string
	for _, e := range r.Events {
		history = append(history, e.Type())
	}
	want := []string{"order.paid", "refund.succeeded", "refund.failed", "order.refunded_outside"}
	if diff := cmp.Diff(history, want); diff != "" {
		t.Errorf("events (-got +want):\n%s", diff)
	}
}

// Stripe's status of a refund may be null (docs.stripe.com/api/refunds/object). The
// refund counts, and hides no other one of its order.
func TestARefundWithoutAStatusCountsAndHidesNoOther(t *testing.T) {
	t.Parallel()
	o := payOrder(t)
	o.inDashboard(500)
	o.Machine(func(m *stripetest.Machine) { rigtest.Must(t, m.ChangeRefund("re_000001", stripetest.RefundUnstated)) })
	if got := o.refund(1000); got.Reason != order.ReasonSettled {
		t.Errorf("got %+v, want it settled", got)
	}
	o.Machine(func(m *stripetest.Machine) { rigtest.Must(t, m.ChangeRefund("re_000002", stripetest.RefundFailed)) })
	o.deliverAll()
	o.wantStatus(refund.Failed)
	if a, err := o.store.Account(t.Context(), "ORD-1"); err != nil || a.Outside != 500 || a.Left() != 2000 {
		t.Errorf("got %+v, %v, want 500 given back by others", a, err)
	}
}
