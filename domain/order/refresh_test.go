package order_test

import (
	"errors"
	"slices"
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
)

func (w *world) refresh(s order.Store) (order.Record, error) {
	return settle.Refresh(w.Context(), s, w.bank, "test", w.order.ID(), w.now)
}

// What the provider says later is recorded if the status may follow. A paid order that is
// not paid at the provider is reported, so that Settle refuses it.
func TestUnrecorded(t *testing.T) {
	t.Parallel()
	card := order.Failure{Code: "card_declined"}
	for said, want := range map[order.Intent][]order.Status{ // the statuses of records that should show it
		{State: order.Succeeded}: {
			order.Open, order.Declined, order.Canceled, order.ActionRequired, order.Pending, order.Refused, order.OutOfStock,
		},
		{State: order.IntentCanceled}: {
			order.Open, order.Declined, order.ActionRequired, order.Pending, order.Refused,
			order.Paid, order.PartiallyRefunded, order.Refunded,
		},
		{State: order.NeedsMethod, Failure: card}: {
			order.Open, order.ActionRequired, order.Pending, order.Refused,
			order.Paid, order.PartiallyRefunded, order.Refunded,
		},
		{State: order.Processing}:        {order.Open, order.Refused, order.Paid, order.PartiallyRefunded, order.Refunded},
		{State: order.NeedsConfirmation}: nil,
		{State: order.NeedsMethod}:       nil,
	} {
		for _, now := range order.Statuses() {
			if _, found := order.Unrecorded(now, said); found != slices.Contains(want, now) {
				t.Errorf("%s, and %s at the provider: got it unrecorded: %t, want %t", now, said.State, found, !found)
			}
		}
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
		{"no record", func(*world) {}, func(err error) bool { return errors.Is(err, order.ErrNotFound) }},
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
			if got, err := w.refresh(w.store); !c.wantErr(err) || c.name != "no record" && got.OrderID != w.order.ID() {
				t.Errorf("got record %+v, error %v, want the record and the error of this case", got, err)
			}
			if after := w.store.AppendState(nil); string(after) != string(before) {
				t.Errorf("got state %q, want it unchanged: %q", after, before)
			}
		})
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
