package refund_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

const (
	scope   = order.Scope("test")
	orderID = order.ID("ORD-1")
	day     = 24 * time.Hour

	total = 3998 // of the order
	half  = total / 2
)

func noon() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

func at(d time.Duration) time.Time { return noon().Add(d) }

func usd(amount int64) order.Money { return order.Money{Amount: amount, Currency: "usd"} }

// world is one order of 39.98 USD with its refunds. Time passes only when a test sets it.
type world struct {
	*testing.T

	orders   *ordertest.Memory
	store    *refundtest.Memory
	bank     *refundtest.Bank
	now      time.Time
	skew     time.Duration // of the next worker's clock
	left     time.Duration // of the next worker's time
	attempts int
	calls    []refundtest.Call      // of the last delivery
	fault    refundtest.Interceptor // of the next delivery
	shows    func(*refund.Ledger)   // changes what Read returns
	answers  func(*refund.Refund)   // changes what Create returns
}

// newWorld returns a world with a paid order.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, func(*order.Draft) {})
}

// newWorldOf returns a world whose order is changed before it is processed.
func newWorldOf(t *testing.T, change func(*order.Draft)) *world {
	t.Helper()
	w := &world{T: t, orders: new(ordertest.Memory), now: noon(), left: time.Minute}
	w.store = refundtest.NewMemory(w.orders)
	intents := &ordertest.Bank{Scope: scope}
	w.bank = &refundtest.Bank{Intents: intents, Now: w.clock, KeyLife: day}
	d := ordertest.Draft(orderID)
	change(&d)
	o, err := order.New(d)
	if err != nil {
		t.Fatal(err)
	}
	p := order.Processor{Store: w.orders, Payments: intents, Scope: scope, Now: noon, ConfirmTime: time.Second}
	p.Process(t.Context(), o, noon(), order.Lease{Owner: "charge", From: noon(), Until: at(time.Minute)})
	return w
}

func paysWith(c ordertest.Card) func(*order.Draft) {
	return func(d *order.Draft) { d.Payment.Method = ordertest.PaymentMethod(c) }
}

func (w *world) clock() time.Time { return w.now }

func (w *world) wait(d time.Duration) { w.now = w.now.Add(d) }

func request(t *testing.T, id string, amount int64) refund.Request {
	t.Helper()
	r, err := refund.New(refund.Draft{OrderID: string(orderID), RefundID: id, Amount: amount, Reason: "requested_by_customer"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// deliver processes a refund once under a new lease.
func (w *world) deliver(id string, amount int64) order.Result {
	w.Helper()
	fault := w.fault
	w.calls, w.fault = nil, nil
	w.attempts++
	ports := refundtest.Intercepted{
		Store: w.store, Provider: w, Intercept: func(c refundtest.Call, do func() error) error {
			w.calls = append(w.calls, c)
			if fault == nil {
				return do()
			}
			return fault(c, do)
		},
	}
	now := func() time.Time { return w.now.Add(w.skew) }
	p := refund.Processor{Store: ports, Provider: ports, Scope: scope, Now: now, CreateTime: 10 * time.Second}
	l := order.Lease{Owner: fmt.Sprint("worker ", w.attempts), From: now(), Until: now().Add(w.left)}
	return p.Process(w.Context(), request(w.T, id, amount), l)
}

// Open implements refund.Provider: sessions at the bank whose answers may be changed.
func (w *world) Open(ctx context.Context) refund.Session { //nolint:ireturn // as the port
	return session{w.bank.Open(ctx), w}
}

type session struct {
	refund.Session

	w *world
}

func (s session) Read(ctx context.Context, id order.IntentID) (refund.Ledger, error) {
	l, err := s.Session.Read(ctx, id)
	if s.w.shows != nil {
		s.w.shows(&l)
	}
	return l, err
}

func (s session) Create(ctx context.Context, p refund.CreateParams) (refund.Refund, error) {
	r, err := s.Session.Create(ctx, p)
	if s.w.answers != nil {
		s.w.answers(&r)
	}
	return r, err
}

func (w *world) account() refund.Account {
	w.Helper()
	a, err := w.store.Load(w.Context(), orderID)
	if err != nil {
		w.Fatal(err)
	}
	return a
}

// item returns the refund R1.
func (w *world) item() refund.Item {
	w.Helper()
	i, _ := w.account().Item("R1")
	return i
}

func (w *world) refresher() *refund.Refresher {
	return &refund.Refresher{Store: w.store, Provider: w, Scope: scope, Now: w.clock}
}

// refresh refreshes twice: the second time finds nothing new.
func (w *world) refresh() refund.Account {
	w.Helper()
	a, err := w.refresher().Refresh(w.Context(), orderID)
	again, againErr := w.refresher().Refresh(w.Context(), orderID)
	if err != nil || againErr != nil || again.Seq != a.Seq {
		w.Fatalf("got %+v, %v, then %+v, %v, want the same account twice", a, err, again, againErr)
	}
	return a
}

// made returns how many refunds of an id count at the bank.
func (w *world) made(id refund.ID) (n int) {
	for _, r := range w.bank.Refunds() {
		if r.For == id && r.Status.Counts() {
			n++
		}
	}
	return n
}

// check checks the invariants at rest: at most one refund that counts for each id, no
// more back than was charged, nothing called refused or failed that counts, nothing
// called succeeded that does not, and one event for each change.
func (w *world) check() {
	w.Helper()
	var back int64
	for _, r := range w.bank.Refunds() {
		if r.Status.Counts() {
			back += r.Total.Amount
		}
	}
	a := w.account()
	r, _ := w.orders.Peek(orderID)
	if back > a.Charged.Amount || len(r.Events) != r.Seq || r.Status != a.Status || !a.Due.Equal(r.DueAt) {
		w.Errorf("%d went back of %+v, recorded as %+v", back, a, r)
	}
	for _, i := range a.Items {
		made, settled := w.made(i.ID), i.Status != refund.Open && i.Status != refund.Unknown
		if made > 1 || settled && i.Status.Counts() != (made > 0) {
			w.Errorf("refund %s is %s and was made %d times", i.ID, i.Status, made)
		}
	}
}
