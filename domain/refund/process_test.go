package refund_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

const (
	scope      = order.Scope("test")
	orderID    = order.ID("ORD-1")
	createTime = 10 * time.Second
	day        = 24 * time.Hour
)

func noon() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// world is one order of 39.98 USD with its refunds. Time passes only when a test sets it.
type world struct {
	*testing.T

	orders   *ordertest.Memory
	store    *refundtest.Memory
	bank     *refundtest.Bank
	now      time.Time
	skew     time.Duration // of the next worker's clock
	attempts int
	calls    []refundtest.Call // of the last delivery
}

// total is the amount of the order, and half of it.
const (
	total = 3998
	half  = total / 2
)

// newWorld returns a world with a paid order.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, ordertest.Pays)
}

func newWorldWith(t *testing.T, card ordertest.Card) *world {
	t.Helper()
	return newWorldOf(t, func(d *order.Draft) { d.Payment.Method = ordertest.PaymentMethod(card) })
}

// newWorldOf returns a world whose order is changed before it is processed.
func newWorldOf(t *testing.T, change func(*order.Draft)) *world {
	t.Helper()
	w := &world{T: t, orders: new(ordertest.Memory), now: noon()}
	w.store = refundtest.NewMemory(w.orders)
	intents := &ordertest.Bank{Scope: scope}
	w.bank = &refundtest.Bank{Intents: intents, Now: func() time.Time { return w.now }, KeyLife: day}
	d := ordertest.Draft(orderID)
	change(&d)
	o, err := order.New(d)
	if err != nil {
		t.Fatal(err)
	}
	p := order.Processor{Store: w.orders, Payments: intents, Scope: scope, Now: noon, ConfirmTime: time.Second}
	p.Process(t.Context(), o, noon(), order.Lease{Owner: "charge", From: noon(), Until: noon().Add(time.Minute)})
	return w
}

func request(t *testing.T, id string, amount int64) refund.Request {
	t.Helper()
	r, err := refund.New(refund.Draft{OrderID: string(orderID), RefundID: id, Amount: amount, Reason: "requested_by_customer"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func noFault(_ refundtest.Call, do func() error) error { return do() }

// deliver processes a refund once under a new lease.
func (w *world) deliver(r refund.Request, fault refundtest.Interceptor) order.Result {
	w.Helper()
	w.calls = nil
	w.attempts++
	ports := refundtest.Intercepted{
		Store: w.store, Provider: w.bank, Intercept: func(c refundtest.Call, do func() error) error {
			w.calls = append(w.calls, c)
			return fault(c, do)
		},
	}
	return w.process(ports, ports, r)
}

// process processes a refund under a new lease.
func (w *world) process(store refund.Store, provider refund.Provider, r refund.Request) order.Result {
	w.Helper()
	now := func() time.Time { return w.now.Add(w.skew) }
	p := refund.Processor{Store: store, Provider: provider, Scope: scope, Now: now, CreateTime: createTime}
	l := order.Lease{Owner: fmt.Sprint("worker ", w.attempts), From: now(), Until: now().Add(time.Minute)}
	return p.Process(w.Context(), r, l)
}

func (w *world) account() refund.Account {
	w.Helper()
	a, err := w.store.Load(w.Context(), orderID)
	if err != nil {
		w.Fatal(err)
	}
	return a
}

func (w *world) refresh() refund.Account {
	w.Helper()
	f := refund.Refresher{Store: w.store, Provider: w.bank, Scope: scope, Now: func() time.Time { return w.now }}
	a, err := f.Refresh(w.Context(), orderID)
	if err != nil {
		w.Fatal(err)
	}
	return a
}

// made returns how many refunds of an id count at the bank.
func (w *world) made(id string) (n int) {
	for _, r := range w.bank.Refunds() {
		if string(r.For) == id && r.Status.Counts() {
			n++
		}
	}
	return n
}

// violations lists the invariants that do not hold at rest: at most one refund that
// counts for each id, no more back than was charged, the account as the bank has it,
// nothing called refused or failed that counts, and one event for each change.
func (w *world) violations() (all []string) {
	var back int64
	for _, r := range w.bank.Refunds() {
		if r.Status.Counts() {
			back += r.Total.Amount
		}
	}
	a := w.account()
	if back > a.Charged.Amount {
		all = append(all, fmt.Sprintf("%d went back of %d", back, a.Charged.Amount))
	}
	for _, i := range a.Items {
		made := w.made(string(i.ID))
		if made > 1 {
			all = append(all, fmt.Sprintf("refund %s was made %d times", i.ID, made))
		}
		if i.Status != refund.Open && i.Status != refund.Unknown && i.Status.Counts() != (made > 0) {
			all = append(all, fmt.Sprintf("refund %s is %s and was made %d times", i.ID, i.Status, made))
		}
	}
	r, _ := w.orders.Peek(orderID)
	if len(r.Events) != r.Seq || r.Status != a.Status {
		all = append(all, fmt.Sprintf("%d events for seq %d, status %s and %s", len(r.Events), r.Seq, r.Status, a.Status))
	}
	return all
}

func TestARefundIsMadeOnce(t *testing.T) {
	for _, tt := range []struct {
		amount int64
		want   order.Status
	}{
		{total, order.Refunded}, {half + 1, order.PartiallyRefunded}, {1, order.PartiallyRefunded},
	} {
		t.Run(fmt.Sprint(tt.amount), func(t *testing.T) {
			w := newWorld(t)
			r := request(t, "R1", tt.amount)
			got := w.deliver(r, noFault)
			if got.Verdict != order.Done || got.Reason != order.ReasonSettled ||
				got.Status != tt.want || w.account().Status != tt.want {
				t.Errorf("got %+v and %+v, want it %s", got, w.account(), tt.want)
			}
			fresh := []refundtest.Call{refundtest.Load, refundtest.Begin, refundtest.Read, refundtest.Mark, refundtest.Create, refundtest.Finish}
			if diff := cmp.Diff(w.calls, fresh); diff != "" {
				t.Errorf("calls of a new refund (-got +want):\n%s", diff)
			}
			w.now = w.now.Add(20 * day)
			got = w.deliver(r, noFault)
			if got.Reason != order.ReasonDuplicate || !slices.Equal(w.calls, []refundtest.Call{refundtest.Load}) {
				t.Errorf("duplicate: got %+v with calls %v, want one call", got, w.calls)
			}
			if w.made("R1") != 1 || len(w.violations()) > 0 {
				t.Errorf("made %d times; %v", w.made("R1"), w.violations())
			}
		})
	}
}

// crash is the panic value of a worker that dies.
type crash struct{}

// crashAt crashes just before or just after the nth call, from 0.
func crashAt(n int, before bool) refundtest.Interceptor {
	return func(_ refundtest.Call, do func() error) error {
		n--
		if n == -1 && before {
			panic(crash{})
		}
		err := do()
		if n == -1 {
			panic(crash{})
		}
		return err
	}
}

// crashes delivers a refund to a worker that may crash, and reports whether it did.
func (w *world) crashes(r refund.Request, fault refundtest.Interceptor) (crashed bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, crashed = p.(crash); !crashed {
				panic(p)
			}
		}
	}()
	w.deliver(r, fault)
	return false
}

// Every worker dies at every call, and the message comes back after up to twenty days,
// whether the bank keeps keys for a day, or keeps none.
func TestARefundSurvivesEveryCrash(t *testing.T) {
	for _, keyLife := range []time.Duration{day, 0} {
		for _, later := range []time.Duration{0, time.Hour, 25 * time.Hour, 5 * day, 20 * day} {
			for _, amount := range []int64{total, half + 1, half} {
				for call := range 6 {
					for _, before := range []bool{true, false} {
						name := fmt.Sprintf("keys live %v, back after %v, %d, call %d, before it %t", keyLife, later, amount, call, before)
						t.Run(name, func(t *testing.T) {
							w := newWorld(t)
							w.bank.KeyLife = keyLife
							r := request(t, "R1", amount)
							if !w.crashes(r, crashAt(call, before)) {
								t.Fatal("got no crash, want one")
							}
							w.now = w.now.Add(later)
							w.deliver(r, noFault)
							w.now = w.now.Add(time.Hour) // past every lease
							got := w.deliver(r, noFault)
							if v := w.violations(); len(v) > 0 || got.Verdict == order.Redeliver {
								t.Errorf("got %+v; %s", got, strings.Join(v, "; "))
							}
							if unknown := got.Reason == refund.ReasonUnknown; unknown == (w.made("R1") == 1) {
								t.Errorf("got %s, made %d times, want it made or unknown", got.Reason, w.made("R1"))
							}
						})
					}
				}
			}
		}
	}
}
