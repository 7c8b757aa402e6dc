package settle_test

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
)

// world is a store with orders, and their bank. It is the ports of what it tests: it
// notes each call, and fails those that a test chooses. Time passes only when a test sets
// it.
type world struct {
	*testing.T
	order.Payments // the bank; Read goes through the world

	store *ordertest.Memory
	bank  *ordertest.Bank
	age   time.Duration // of the messages at their delivery

	mu    sync.Mutex
	now   time.Time
	calls []string

	loads  func(order.ID) error                  // before Load
	reads  func(order.IntentID) error            // before Read
	change func(*order.Intent)                   // that Read returns
	saves  func(ordertest.Call) error            // before Save
	relist func([]order.Dispute) []order.Dispute // that Disputes returns
	dueEnd func()                                // at the end of Due
}

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

func newWorld(t *testing.T) *world {
	t.Helper()
	bank := &ordertest.Bank{Scope: "test"}
	return &world{T: t, Payments: bank, store: new(ordertest.Memory), bank: bank, now: noon()}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// deliver processes an order with this card up to a call, after which its worker dies; ""
// is to the end. The lease lasts a minute.
func (w *world) deliver(id order.ID, card ordertest.Card, last ordertest.Call) order.Result {
	w.Helper()
	o := ordertest.OrderWith(id, ordertest.PaymentMethod(card))
	ports := ordertest.Intercepted{
		Store: w.store, Payments: w.bank, Intercept: func(c ordertest.Call, do func() error) error {
			err := do()
			if c == last {
				panic(ordertest.Crash{Call: c})
			}
			return err
		},
	}
	p := order.Processor{
		Store: ports, Payments: ports, Scope: "test", ConfirmTime: 10 * time.Second,
		TracksStock: w.store.TracksStock(), Now: w.clock,
	}
	defer func() {
		if end := recover(); end != nil && end != any(ordertest.Crash{Call: last}) {
			panic(end)
		}
	}()
	l := order.Lease{Owner: w.now.String(), From: w.now, Until: w.now.Add(time.Minute)}
	return p.Process(w.Context(), o, w.now.Add(-w.age), l)
}

// claimed returns a claim of ORD-1 that is bound to pi_1.
func (w *world) claimed() order.Claim {
	w.Helper()
	o := ordertest.Order("ORD-1")
	i, err := w.bank.Prepare(w.Context(), o, order.PrepareKey("test", o.ID()))
	w.must(err)
	l := order.Lease{Owner: "worker", From: w.now, Until: w.now.Add(time.Minute)}
	c, err := order.Begin(w.Context(), w.store, o, l, nil)
	w.must(err)
	w.must(c.Bind(w.Context(), w.store, i, w.now))
	c.Intent = i.ID
	return c
}

func (w *world) confirm(id order.IntentID) {
	w.Helper()
	_, err := w.bank.Confirm(w.Context(), id, order.ConfirmKey("test", "ORD-1", 1))
	w.must(err)
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) wait(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) record(id order.ID) order.Record {
	r, _ := w.store.Peek(id)
	return r
}

func (w *world) note(call string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, call)
}

// counts returns how often each port was called.
func (w *world) counts() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := map[string]int{}
	for _, c := range w.calls {
		n[c]++
	}
	return n
}

func (w *world) Load(ctx context.Context, id order.ID) (order.Record, error) {
	w.note("load")
	if w.loads != nil {
		if err := w.loads(id); err != nil {
			return order.Record{}, err
		}
	}
	return w.store.Load(ctx, id)
}

func (w *world) Save(ctx context.Context, before, after order.Record) (order.Record, error) {
	call := ordertest.CallOf(before, after)
	w.note(string(call))
	if w.saves != nil {
		if err := w.saves(call); err != nil {
			return order.Record{}, err
		}
	}
	return w.store.Save(ctx, before, after)
}

func (w *world) Due(ctx context.Context, at time.Time) iter.Seq2[order.ID, error] {
	return func(yield func(order.ID, error) bool) {
		if w.dueEnd != nil {
			defer w.dueEnd()
		}
		w.store.Due(ctx, at)(yield)
	}
}

func (w *world) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	w.note("read")
	if w.reads != nil {
		if err := w.reads(id); err != nil {
			return order.Intent{}, err
		}
	}
	i, err := w.bank.Read(ctx, id)
	if err == nil && w.change != nil {
		w.change(&i)
	}
	return i, err
}

func (w *world) Disputes(ctx context.Context, id order.IntentID) ([]order.Dispute, error) {
	w.note("list")
	all, err := w.bank.Disputes(ctx, id)
	if w.relist != nil {
		all = w.relist(slices.Clone(all))
	}
	return all, err
}

func (w *world) follower() settle.Follower {
	return settle.Follower{Store: w, Payments: w, Disputes: w, Scope: "test", Now: w.clock}
}
