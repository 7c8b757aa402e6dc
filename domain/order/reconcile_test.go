package order_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// night is a store with orders that wait, and a bank.
type night struct {
	t     *testing.T
	store *ordertest.Memory
	bank  *ordertest.Bank
	now   time.Time

	mu    sync.Mutex
	calls map[string]int
	down  bool // the bank
	// overcharges is how much more the records say than the bank.
	overcharges int64
	refunds     func(order.ID) error
	freeGoods   func(context.Context, order.Record) (order.Record, error)
}

func peek(s *ordertest.Memory, id order.ID) order.Record {
	r, _ := s.Peek(id)
	return r
}

func newNight(t *testing.T) *night {
	t.Helper()
	return &night{
		t: t, store: new(ordertest.Memory), bank: &ordertest.Bank{Scope: "test"}, now: noon(), calls: map[string]int{},
	}
}

// add processes an order up to a call, after which its worker dies; "" is to the end.
func (n *night) add(id order.ID, card ordertest.Card, last ordertest.Call) {
	n.t.Helper()
	o, err := order.New(with(func(d *order.Draft) { d.ID, d.Payment.Method = string(id), ordertest.PaymentMethod(card) }))
	if err != nil {
		n.t.Fatal(err)
	}
	w := &world{
		T: n.t, order: o, store: n.store, bank: n.bank, payments: n.bank, sent: n.now, now: n.now, lease: time.Minute,
	}
	if last == "" {
		w.deliver(noFault)
		return
	}
	w.crashAfter(last)
}

func (n *night) count(call string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls[call]++
}

func (n *night) Load(ctx context.Context, id order.ID) (order.Record, error) {
	n.count("load")
	r, err := n.store.Load(ctx, id)
	r.Total.Amount += n.overcharges
	return r, err
}

func (n *night) Settle(ctx context.Context, r order.Record, o order.Outcome, at time.Time) error {
	n.count("settle")
	return n.store.Settle(ctx, r, o, at)
}

func (n *night) Due(ctx context.Context, at time.Time) iter.Seq2[order.ID, error] {
	return n.store.Due(ctx, at)
}

func (n *night) Postpone(ctx context.Context, r order.Record, due time.Time) error {
	n.count("postpone")
	return n.store.Postpone(ctx, r, due)
}

func (n *night) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	n.count("read")
	if n.down {
		return order.Intent{}, &order.PaymentError{Kind: order.KindUnavailable, Err: errors.New("down")}
	}
	return n.bank.Read(ctx, id)
}

// records and payments are the other methods of the ports, which a run never calls.
type records struct {
	*night
	order.Records
}

func (r records) Load(ctx context.Context, id order.ID) (order.Record, error) {
	return r.night.Load(ctx, id)
}

func (r records) Settle(ctx context.Context, x order.Record, o order.Outcome, at time.Time) error {
	return r.night.Settle(ctx, x, o, at)
}

type payments struct {
	*night
	order.Payments
}

func (p payments) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	return p.night.Read(ctx, id)
}

// run reconciles until the time is over, or for as many orders as the budget allows.
func (n *night) run(budget int) order.Reconciled {
	n.t.Helper()
	r := order.Reconciler{
		Follower: order.Follower{
			Records: records{night: n}, Payments: payments{night: n}, Scope: "test", Now: func() time.Time { return n.now },
		},
		Waiting: n, Parallel: 4, FreeGoods: n.freeGoods,
		Refunds: func(_ context.Context, id order.ID) error {
			n.count("refunds")
			if n.refunds == nil {
				return nil
			}
			return n.refunds(id)
		},
		Allow: func(context.Context) error {
			if budget--; budget < 0 {
				return context.DeadlineExceeded
			}
			return nil
		},
	}
	done, err := r.Run(n.t.Context(), n.now.Add(time.Minute))
	if err != nil {
		n.t.Fatal(err)
	}
	return done
}

func TestReconcileSettlesWhatTheProviderSettled(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("paid", ordertest.Pays, "")
	n.add("died", ordertest.Pays, ordertest.Confirm)
	n.add("never-confirmed", ordertest.Pays, ordertest.Bind)
	n.add("no-intent", ordertest.Pays, ordertest.Begin)
	n.add("cleared", ordertest.TakesDays, "")
	n.add("pending", ordertest.TakesDays, "")
	n.bank.Clear("pi_4")
	n.now = n.now.Add(3 * time.Hour)
	noIntent := peek(n.store, "no-intent")
	got := n.run(100)
	want := order.Reconciled{
		Followed: map[order.Followed]int{order.HintSettled: 2, order.HintUnchanged: 2, order.HintNoIntent: 1},
		NoIntent: []order.Record{noIntent},
		Oldest:   map[order.Status]time.Duration{order.Open: 2 * time.Hour, order.Pending: 3 * time.Hour},
	}
	if diff := cmp.Diff(got, want, cmpopts.EquateApprox(0, 0)); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	for id, status := range map[order.ID]order.Status{
		"paid": order.Paid, "died": order.Paid, "cleared": order.Paid, "pending": order.Pending, "no-intent": order.Open,
		"never-confirmed": order.Open,
	} {
		if r := peek(n.store, id); r.Status != status {
			t.Errorf("%s is %s, want %s", id, r.Status, status)
		}
	}
	if diff := cmp.Diff(n.calls, map[string]int{"load": 5, "read": 4, "settle": 2, "postpone": 3}); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
	if again := n.run(100); len(again.Followed) > 0 {
		t.Errorf("a second run at once looked at %v, want none", again.Followed)
	}
}

func TestReconcileGoesOnWhereARunEnded(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	const orders = 100
	for i := range orders {
		n.add(order.ID(fmt.Sprintf("order-%d", i)), ordertest.TakesDays, "")
	}
	n.now = n.now.Add(2 * time.Hour)
	runs := 0
	for more := true; more && runs < 9; runs++ {
		more = n.run(30).More
	}
	if diff := cmp.Diff(n.calls, map[string]int{"load": orders, "read": orders, "postpone": orders}); diff != "" || runs != 4 {
		t.Errorf("got %d runs, want 4; calls (-got +want):\n%s", runs, diff)
	}
}

func TestReconcileStopsWhileTheProviderIsDown(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	for i := range 50 {
		n.add(order.ID(fmt.Sprintf("order-%d", i)), ordertest.TakesDays, "")
	}
	n.now, n.down = n.now.Add(2*time.Hour), true
	got := n.run(1000)
	if got.Unavailable < 10 || got.Unavailable > 14 || !got.More || n.calls["postpone"] > 0 {
		t.Errorf("got %+v and calls %v, want about ten looks, and no order postponed", got, n.calls)
	}
	n.down = false
	if got := n.run(1000); got.Followed[order.HintUnchanged] != 50 {
		t.Errorf("afterwards: got %+v, want every order looked at", got)
	}
}

// Rows that only a newer release or a person can read stay due, and come first in every
// run.
func TestReconcileLooksPastRowsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	for i := range 50 {
		id := order.ID(fmt.Sprintf("damaged-%d", i))
		n.add(id, ordertest.Pays, "")
		due := peek(n.store, id)
		due.DueAt = n.now
		n.store.Replace(peek(n.store, id), due)
	}
	n.add("later", ordertest.TakesDays, "")
	n.now = n.now.Add(2 * time.Hour)
	n.refunds = func(id order.ID) error {
		if strings.HasSuffix(string(id), "1") {
			return order.ErrUnknownVersion
		}
		return order.ErrCorrupt
	}
	if got := n.run(1000); got.Unavailable != 50 || got.Followed[order.HintUnchanged] != 1 || got.More {
		t.Errorf("got %+v, want every order looked at", got)
	}
}

func TestALookIsPostponedByTheTimeThatTheOrderHasWaited(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("order", ordertest.TakesDays, "")
	began, looks := n.now, []string{}
	for range 8 {
		n.now = peek(n.store, "order").DueAt
		looks = append(looks, n.now.Sub(began).String())
		n.run(10)
	}
	want := []string{"1h0m0s", "2h0m0s", "4h0m0s", "8h0m0s", "16h0m0s", "32h0m0s", "56h0m0s", "80h0m0s"}
	if diff := cmp.Diff(looks, want); diff != "" {
		t.Errorf("looks after (-got +want):\n%s", diff)
	}
}

func TestReconcileReportsADisagreementOnce(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("order", ordertest.TakesDays, "")
	n.overcharges = 1
	n.now = n.now.Add(2 * time.Hour)
	got := n.run(10)
	if len(got.Mismatched) != 1 || got.Mismatched[0].OrderID != "order" || n.calls["postpone"] != 1 {
		t.Errorf("got calls %v and %v, want one disagreement, postponed", n.calls, got.Mismatched)
	}
	if again := n.run(10); len(again.Mismatched) > 0 {
		t.Errorf("at once again: got %v, want nothing due", again.Mismatched)
	}
}

// laggingIndex returns an order that is settled already.
type laggingIndex struct {
	*night
	id order.ID
}

func (x laggingIndex) Due(context.Context, time.Time) iter.Seq2[order.ID, error] {
	return func(yield func(order.ID, error) bool) { yield(x.id, nil) }
}

func TestASettledOrderOfALaggingIndexIsLeft(t *testing.T) {
	t.Parallel()
	n := newNight(t)
	n.add("paid", ordertest.Pays, "")
	now := func() time.Time { return n.now }
	r := order.Reconciler{
		Follower: order.Follower{Records: records{night: n}, Payments: payments{night: n}, Scope: "test", Now: now},
		Waiting:  laggingIndex{n, "paid"}, Allow: func(context.Context) error { return nil },
	}
	got, err := r.Run(t.Context(), n.now.Add(time.Minute))
	if err != nil || len(got.Oldest) > 0 || n.calls["postpone"]+n.calls["settle"] > 0 {
		t.Errorf("got %+v, %v and calls %v, want no waiting order and no write", got, err, n.calls)
	}
}

// The webhook of a payment may meet the lease of the worker that records the decline, and
// no other one follows.
func TestReconcileLooksOnceAtADeclinedOrder(t *testing.T) {
	t.Parallel()
	for paid, want := range map[bool]order.Status{true: order.Paid, false: order.Declined} {
		n := newNight(t)
		n.add("order", ordertest.Declines, "")
		if paid {
			n.bank.CustomerPays("pi_1")
		}
		n.now = n.now.Add(23 * time.Hour)
		early := n.run(10)
		n.now = n.now.Add(2 * time.Hour)
		got := n.run(10)
		n.now = n.now.Add(1000 * time.Hour)
		again := n.run(10)
		if r := peek(n.store, "order"); r.Status != want || len(early.Followed)+len(again.Followed) > 0 || len(got.Followed) != 1 ||
			len(got.Oldest) > 0 {
			t.Errorf("paid %t: got %s, %+v, %+v and %+v, want it %s after one look a day later", paid, r.Status, early, got, again, want)
		}
	}
}

// slow is a store whose Load takes an hour, and begins when nothing else can continue.
type slow struct{ records }

func (s slow) Load(ctx context.Context, id order.ID) (order.Record, error) {
	synctest.Wait()
	s.now = s.now.Add(time.Hour)
	return s.records.Load(ctx, id)
}

// The second look waits for the first, which uses up the time.
func TestNoLookBeginsAfterTheTimeIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNight(t)
		n.add("first", ordertest.TakesDays, "")
		n.add("second", ordertest.TakesDays, "")
		n.now = n.now.Add(3 * time.Hour)
		r := order.Reconciler{
			Follower: order.Follower{
				Records: slow{records{night: n}}, Payments: payments{night: n}, Scope: "test",
				Now: func() time.Time { return n.now },
			},
			Waiting: n, Parallel: 1, Allow: func(context.Context) error { return nil },
		}
		got, err := r.Run(t.Context(), n.now.Add(time.Minute))
		if err != nil || !got.More || n.calls["load"] != 1 {
			t.Errorf("got %d looks, more: %t, error %v, want 1 look and more", n.calls["load"], got.More, err)
		}
	})
}

// A charged order is due while one of its refunds waits.
func TestReconcileLooksAtRefunds(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		settles  bool
		err      error
		want     order.Reconciled
		postpone int
	}{
		"a refund that still waits": {
			want: order.Reconciled{Followed: map[order.Followed]int{order.HintUnchanged: 1}}, postpone: 1,
		},
		"a refund that was settled": {settles: true, want: order.Reconciled{}, postpone: 1},
		"the provider is down": {
			err: &order.PaymentError{Kind: order.KindUnavailable}, want: order.Reconciled{Unavailable: 1},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			n := newNight(t)
			n.add("order", ordertest.Pays, "")
			due := peek(n.store, "order")
			due.DueAt = n.now
			n.store.Replace(peek(n.store, "order"), due)
			n.refunds = func(id order.ID) error {
				if r := peek(n.store, id); tt.settles {
					r.Seq, r.DueAt = r.Seq+1, time.Time{}
					n.store.Replace(peek(n.store, id), r)
				}
				return tt.err
			}
			got := n.run(10)
			if len(got.Followed) == 0 {
				got.Followed = nil
			}
			got.Oldest = nil
			if diff := cmp.Diff(got, tt.want); diff != "" || n.calls["refunds"] != 1 || n.calls["postpone"] != tt.postpone {
				t.Errorf("calls %v, (-got +want):\n%s", n.calls, diff)
			}
			if again := n.run(10); tt.err == nil && len(again.Followed) > 0 {
				t.Errorf("at once again: got %v, want nothing due", again)
			}
		})
	}
}
