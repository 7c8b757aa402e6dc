package order_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// changedMeanwhile is a store in which every record changes between a Load and a Settle.
type changedMeanwhile struct{ order.Records }

func (changedMeanwhile) Settle(context.Context, order.Record, order.Outcome, time.Time) error {
	return order.ErrStale
}

func (w *world) refresh(rs order.Records) (order.Record, error) {
	return order.Refresh(w.Context(), rs, w.bank, "test", w.order.ID(), w.now)
}

func TestRefreshSettlesWhatTheProviderSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		card   ordertest.Card
		before func(w *world)
		want   order.Status
		events int
	}{
		{"pending, and it cleared", ordertest.TakesDays, func(w *world) { w.deliver(asIs); w.bank.Clear("pi_1") }, order.Paid, 2},
		{"declined, and the customer paid", ordertest.Declines, func(w *world) {
			w.deliver(asIs)
			w.bank.CustomerPays("pi_1")
		}, order.Paid, 2},
		{"a bank that wanted the customer, and got canceled", ordertest.NeedsAuthentication, func(w *world) {
			w.deliver(asIs)
			w.bank.Cancel("pi_1")
		}, order.Canceled, 2},
		{"open, and charged by a worker that died", ordertest.Pays, func(w *world) { w.dieAfter(ordertest.Confirm) }, order.Paid, 1},
		{"open, and never confirmed", ordertest.Pays, func(w *world) { w.dieAfter(ordertest.Bind) }, order.Open, 0},
		{"declined, and somebody canceled the intent", ordertest.Declines, func(w *world) {
			w.deliver(asIs)
			w.bank.Cancel("pi_1")
		}, order.Declined, 1},
		{"pending, then refused and canceled before anybody asked", ordertest.TakesDays, func(w *world) {
			w.deliver(asIs)
			w.bank.Cancel("pi_1")
		}, order.Canceled, 2},
		{"pending still", ordertest.TakesDays, func(w *world) { w.deliver(asIs) }, order.Pending, 1},
		{"paid already", ordertest.Pays, func(w *world) { w.deliver(asIs) }, order.Paid, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.card)
			c.before(w)
			got, err := w.refresh(w.store)
			if err != nil || got.Status != c.want || len(got.Events) != c.events || w.record().Status != c.want {
				t.Errorf("got %s with %d events, %v, want %s with %d", got.Status, len(got.Events), err, c.want, c.events)
			}
			w.isTrue()
			if again, err := w.refresh(changedMeanwhile{w.store}); err != nil || again.Seq != got.Seq {
				t.Errorf("again: got seq %d, %v, want %d and nothing written", again.Seq, err, got.Seq)
			}
		})
	}
}

func TestRefreshChangesNothingWhenItCannotKnow(t *testing.T) {
	t.Parallel()
	misconfigured := &order.PaymentError{}
	for _, c := range []struct {
		name   string
		before func(w *world)
		is     func(error) bool
	}{
		{"no intent is bound", func(w *world) { w.claim() }, func(err error) bool { return errors.Is(err, order.ErrNoIntent) }},
		{"the provider does not know the intent", func(w *world) { w.bind("pi_gone") }, func(err error) bool {
			return errors.As(err, &misconfigured) && misconfigured.Kind == order.Misconfigured
		}},
		{"the intent is another order's", func(w *world) {
			w.bind(w.prepare(w.twice(), w.firstKey()))
			w.bank.CustomerPays("pi_1")
		}, func(err error) bool { return errors.As(err, new(*order.MismatchError)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, ordertest.Pays)
			c.before(w)
			before := w.store.AppendState(nil)
			if got, err := w.refresh(w.store); !c.is(err) || got.OrderID != w.order.ID() {
				t.Errorf("got %+v, %v", got, err)
			}
			if after := w.store.AppendState(nil); string(after) != string(before) {
				t.Errorf("got state %q, want it as before: %q", after, before)
			}
		})
	}
}

func TestRefreshOfAnUnknownOrderIsNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ordertest.Pays)
	if _, err := w.refresh(w.store); !errors.Is(err, order.ErrNotFound) {
		t.Errorf("got %v, want %v", err, order.ErrNotFound)
	}
}

func TestRefreshOfARecordThatChangesMeanwhileIsStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ordertest.TakesDays)
	w.deliver(asIs)
	w.bank.Clear("pi_1")
	if r, err := w.refresh(changedMeanwhile{w.store}); !errors.Is(err, order.ErrStale) ||
		r.Status != order.Pending {
		t.Errorf("got %s, %v, want the record as loaded and %v", r.Status, err, order.ErrStale)
	}
}

// tookItBack is a provider whose intents have all lost their money again.
type tookItBack struct{ order.Payments }

func (p tookItBack) Read(ctx context.Context, id order.IntentID) (order.Intent, error) {
	i, err := p.Payments.Read(ctx, id)
	i.State = order.IntentCanceled
	return i, err
}

func TestAPaidOrderThatIsNotPaidAtTheProviderIsAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ordertest.Pays)
	w.deliver(asIs)
	_, err := order.Refresh(w.Context(), w.store, tookItBack{w.bank}, "test", w.order.ID(), w.now)
	if e, ok := errors.AsType[*order.TransitionError](err); !ok || e.From != order.Paid {
		t.Errorf("got %v, want a *TransitionError from paid", err)
	}
}

func TestFinishAfterRefreshIsFine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ordertest.Pays)
	got := w.deliver(only(ordertest.Finish, func(do func() error) error {
		if _, err := w.refresh(w.store); err != nil {
			t.Errorf("refresh under the worker: %v", err)
		}
		return do()
	}))
	w.settledAs(got, order.Paid)
	if n := len(w.record().Events); n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
}
