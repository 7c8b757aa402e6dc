package order_test

import (
	"errors"
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
)

func (w *world) refresh(s order.Store) (order.Record, error) {
	return settle.Refresh(w.Context(), s, w.bank, "test", w.order.ID(), w.now)
}

func TestRefreshRecordsTheProvidersState(t *testing.T) {
	t.Parallel()
	settled := func(w *world) { w.deliver(noFault) }
	unchanged := func(*ordertest.Bank, order.IntentID) {}
	for _, c := range []struct {
		name   string
		card   ordertest.Card
		before func(w *world)
		later  func(b *ordertest.Bank, id order.IntentID)
		want   order.Status
		events int
	}{
		{"pending, and the payment cleared", ordertest.TakesDays, settled, (*ordertest.Bank).Clear, order.Paid, 2},
		{"pending, and the intent was canceled", ordertest.TakesDays, settled, (*ordertest.Bank).Cancel, order.Canceled, 2},
		{"pending, and unchanged", ordertest.TakesDays, settled, unchanged, order.Pending, 1},
		{
			"declined, and the customer paid later", ordertest.Declines, settled,
			(*ordertest.Bank).CustomerPays, order.Paid, 2,
		},
		{"declined, and the intent was canceled", ordertest.Declines, settled, (*ordertest.Bank).Cancel, order.Canceled, 2},
		{
			"action_required, and the intent was canceled", ordertest.NeedsAuthentication, settled,
			(*ordertest.Bank).Cancel, order.Canceled, 2,
		},
		{"open, and charged by a crashed worker", ordertest.Pays, crashAfter(ordertest.Confirm), unchanged, order.Paid, 1},
		{"open, and never confirmed", ordertest.Pays, crashAfter(ordertest.Bind), unchanged, order.Open, 0},
		{"paid, and unchanged", ordertest.Pays, settled, unchanged, order.Paid, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.card)
			c.before(w)
			c.later(w.bank, "pi_1")
			got, err := w.refresh(w.store)
			if err != nil || got.Status != c.want || len(got.Events) != c.events || w.record().Status != c.want {
				t.Errorf("got %s with %d events, %v, want %s with %d", got.Status, len(got.Events), err, c.want, c.events)
			}
			if v := w.violations(); v != "" {
				t.Error(v)
			}
			if again, err := w.refresh(&staleStore{w.store, 1}); err != nil || again.Seq != got.Seq {
				t.Errorf("again: got seq %d, %v, want seq %d and no write", again.Seq, err, got.Seq)
			}
		})
	}
}

func TestRefreshChangesNothingOnAnError(t *testing.T) {
	t.Parallel()
	misconfigured := &order.PaymentError{}
	for _, c := range []struct {
		name    string
		before  func(w *world)
		wantErr func(error) bool
	}{
		{"no intent is bound", func(w *world) { w.claim() }, func(err error) bool {
			return errors.Is(err, order.ErrNoIntent)
		}},
		{"the provider does not know the intent", func(w *world) { w.bind("pi_gone") }, func(err error) bool {
			return errors.As(err, &misconfigured) && misconfigured.Kind == order.KindMisconfigured
		}},
		{"the intent belongs to another order", func(w *world) {
			w.bind(w.prepare(w.differentContent(), w.prepareKey()))
			w.bank.CustomerPays("pi_1")
		}, func(err error) bool { return errors.As(err, new(*order.MismatchError)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, ordertest.Pays)
			c.before(w)
			before := w.store.AppendState(nil)
			if got, err := w.refresh(w.store); !c.wantErr(err) || got.OrderID != w.order.ID() {
				t.Errorf("got record %+v, error %v, want the record and the error of this case", got, err)
			}
			if after := w.store.AppendState(nil); string(after) != string(before) {
				t.Errorf("got state %q, want it unchanged: %q", after, before)
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

func TestRefreshOfARecordThatChangesConcurrentlyIsStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ordertest.TakesDays)
	w.deliver(noFault)
	w.bank.Clear("pi_1")
	if r, err := w.refresh(&staleStore{w.store, 1}); !errors.Is(err, order.ErrStale) ||
		r.Status != order.Pending {
		t.Errorf("got %s, %v, want the record as loaded and %v", r.Status, err, order.ErrStale)
	}
}

func TestAPaidOrderThatIsNotPaidAtTheProviderIsAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ordertest.Pays)
	w.deliver(noFault)
	cancel := func(i *order.Intent) { i.State = order.IntentCanceled }
	canceled := changedIntents{w.bank, changeFrom(ordertest.Read, cancel)}
	_, err := settle.Refresh(w.Context(), w.store, canceled, "test", w.order.ID(), w.now)
	if e, ok := errors.AsType[*order.TransitionError](err); !ok || e.From != order.Paid {
		t.Errorf("got %v, want a *TransitionError from paid", err)
	}
}

func TestFinishAfterRefreshSucceeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ordertest.Pays)
	got := w.deliver(intercept(ordertest.Finish, func(do func() error) error {
		if _, err := w.refresh(w.store); err != nil {
			t.Errorf("refresh during the attempt: %v", err)
		}
		return do()
	}))
	if got, want := w.final(got), settled(order.Paid); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if n := len(w.record().Events); n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
}
