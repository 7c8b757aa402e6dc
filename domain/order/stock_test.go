package order_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestStockEffectOf(t *testing.T) {
	for _, s := range order.Statuses() {
		for _, bound := range []order.IntentID{"", "pi_1"} {
			want := order.StockKept
			switch {
			case s == order.Paid:
				want = order.StockSold
			case s == order.Canceled, s == order.OutOfStock, s == order.Refused && bound == "":
				want = order.StockReleased
			}
			if got := order.StockEffectOf(s, bound); got != want {
				t.Errorf("%s with intent %q: got %s, want %s", s, bound, got, want)
			}
		}
	}
}

// track makes the world's store track stock, with so many units of each SKU.
func (w *world) track(units int64) {
	w.Helper()
	w.store = ordertest.NewMemoryWithStock()
	for sku := range w.order.Quantities() {
		w.add(sku, units)
	}
}

func (w *world) add(sku string, n int64) {
	w.Helper()
	_, err := w.store.AddStock(w.Context(), sku, n)
	w.must(err)
}

// stock returns the stock of the order's SKUs, of which it has one unit each and
// which are all in the same state.
func (w *world) stock() (all order.Stock) {
	w.Helper()
	for sku := range w.order.Quantities() {
		s, err := w.store.Stock(w.Context(), sku)
		w.must(err)
		s.SKU = ""
		if all != (order.Stock{}) && s != all {
			w.Errorf("stock of %s is %+v, of another SKU %+v, want all or none", sku, s, all)
		}
		all = s
	}
	return all
}

// balance checks that the stock of the row is what is reserved, and that no
// unit appears or vanishes.
func (w *world) balance(units int64) {
	w.Helper()
	s := w.stock()
	r, _ := w.store.Peek(w.order.ID())
	held := maps.Equal(r.Stock, w.order.Quantities())
	if s.Available < 0 || s.Available+s.Reserved+s.Sold != units || (s.Reserved == 1) != held || s.Reserved > 1 ||
		(s.Sold == 1) != r.Status.Charged() {
		w.Errorf("stock is %+v, the order is %s and holds %v; want %d units in all", s, r.Status, r.Stock, units)
	}
}

func TestAnOrderWithoutStockIsNeverCharged(t *testing.T) {
	w := newWorld(t, ordertest.Pays)
	w.track(0)
	r := w.deliver(noFault)
	if r.Verdict != order.Done || r.Status != order.OutOfStock || r.Intent != "" {
		t.Errorf("got %+v, want it done, out of stock and without an intent", r)
	}
	if diff := cmp.Diff([]ordertest.Call{ordertest.Begin, ordertest.Begin, ordertest.Finish}, w.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	record := w.record()
	if e := record.Events[0]; e.Type() != "order.out_of_stock" || e.Failure != "MUG" || record.Failure != "MUG" {
		t.Errorf("got event %+v and failure %q, want both to name the SKU MUG", e, record.Failure)
	}
	for sku := range w.order.Quantities() {
		w.add(sku, 1)
	}
	if r := w.redeliver(noFault); r.Status != order.OutOfStock || r.Reason != order.ReasonDuplicate {
		t.Errorf("redelivered when there is stock: got %+v, want it to stay out of stock", r)
	}
	if got, err := w.cancel(); err != nil || got.Status != order.OutOfStock {
		t.Errorf("canceled: got %s, %v, want it to stay out of stock", got.Status, err)
	}
	w.balance(1)
}

// restored writes the record that a restore writes for the intent: it is open, and holds
// no stock.
func (w *world) restored(i order.IntentID) {
	w.Helper()
	r := order.Record{
		OrderID: w.order.ID(), Total: w.order.Total(), Fingerprint: w.order.Fingerprint(), Status: order.Open,
		Attempt: 1, Intent: i, CreatedAt: w.now,
	}
	_, err := w.store.Save(w.Context(), order.Record{}, r.ChangedAt(w.now))
	w.must(err)
}

// Somebody forgot to add a SKU to the stock. Its orders wait until it is there.
func TestAnOrderOfAnUnknownSKUWaits(t *testing.T) {
	for claim, bound := range map[string]bool{"a new order": false, "a restored order": true} {
		t.Run(claim, func(t *testing.T) {
			w := newWorld(t, ordertest.Pays)
			w.track(0)
			w.store = ordertest.NewMemoryWithStock() // without a SKU
			if bound {
				w.restored(w.prepare(w.order, w.prepareKey()))
			}
			r := w.redeliver(noFault)
			if r.Verdict != order.Redeliver || r.Reason != order.ReasonUnknownSKU || r.Transient || r.Attempt == 0 {
				t.Errorf("got %+v, want it redelivered for its own fault", r)
			}
			if record := w.record(); record.Status != order.Open || record.LastError != "unknown_sku" || len(record.Events) > 0 {
				t.Errorf("got %+v, want it open without an event", record)
			}
			for sku := range w.order.Quantities() {
				w.add(sku, 1)
			}
			if r := w.redeliver(noFault); r.Status != order.Paid {
				t.Errorf("with the SKUs: got %+v, want it paid", r)
			}
			w.balance(1)
		})
	}
}

// After a restore from backup the store may lack an order that was charged. Its message
// must not settle it as out of stock.
func TestAnOrderWithoutStockMayHaveALostRecord(t *testing.T) {
	for claim, charged := range map[string]bool{"it was charged": true, "its intent was only prepared": false} {
		t.Run(claim, func(t *testing.T) {
			w := newWorld(t, ordertest.Pays)
			if charged {
				w.deliver(noFault)
			} else if _, err := w.bank.Prepare(t.Context(), w.order, order.PrepareKey("test", w.order.ID())); err != nil {
				t.Fatal(err)
			}
			w.track(0) // another store
			w.now = w.now.Add(25 * time.Hour)
			if r := w.deliver(noFault); r.Verdict != order.Park || r.Reason != order.ReasonRecordLost {
				t.Errorf("got %+v, want it parked as record_lost", r)
			}
		})
	}
}

// Restore knows the order's intent and not its lines, so the record that it writes holds
// no stock.
func TestARestoredOrderIsNotChargedWithoutItsStock(t *testing.T) {
	w := newWorld(t, ordertest.Pays)
	w.crashAfter(ordertest.Bind)
	w.track(0) // another store
	w.restored("pi_1")
	r := w.redeliver(noFault)
	if r.Verdict != order.Park || r.Reason != order.ReasonRefused || w.record().Failure != "out_of_stock" {
		t.Errorf("got %+v and failure %q, want it parked and refused: %s", r, w.record().Failure, "out_of_stock")
	}
	if v := w.violations(); v != "" {
		t.Error(v)
	}
	w.balance(0)
	for sku := range w.order.Quantities() {
		w.add(sku, 1)
	}
	if r := w.redeliver(noFault); r.Status != order.Paid || r.Intent != "pi_1" {
		t.Errorf("redriven when there is stock: got %+v, want pi_1 paid", r)
	}
	w.balance(1)
}

func TestAChargeIsRecordedWithoutStock(t *testing.T) {
	w := newWorld(t, ordertest.Pays)
	w.crashAfter(ordertest.Bind)
	w.track(0) // another store
	w.restored("pi_1")
	_, err := w.bank.Confirm(t.Context(), "pi_1", order.ConfirmKey("test", w.order.ID(), 1))
	w.must(err)
	if r := w.redeliver(noFault); r.Status != order.Paid || w.violations() != "" {
		t.Errorf("got %+v %s, want it paid", r, w.violations())
	}
}

func (w *world) free(hold time.Duration) order.Record {
	w.Helper()
	c := order.Cancellation{Store: w.store, Payments: w.bank, Canceler: w.bank, Scope: "test"}
	r, err := c.CancelDeclined(w.Context(), w.record(), hold, w.now)
	w.must(err)
	return r
}

// declinedLater delivers an order that needs authentication, which fails after a while.
func declinedLater(after time.Duration) func(*world) {
	return func(w *world) {
		w.deliver(noFault)
		w.now = w.now.Add(after)
		declined := order.Outcome{Status: order.Declined, Intent: "pi_1", Failure: "card_declined"}
		w.must(order.Settle(w.Context(), w.store, w.record(), declined, w.now))
	}
}

func TestCancelDeclined(t *testing.T) {
	const hold = 24 * time.Hour
	delivered := func(w *world) { w.deliver(noFault) }
	for claim, tt := range map[string]struct {
		card    ordertest.Card
		before  func(*world)
		units   int64
		waited  time.Duration
		want    order.Status
		holding bool
	}{
		"a declined order is canceled after the hold": {ordertest.Declines, delivered, 1, hold, order.Canceled, false},
		"a declined order is left before":             {ordertest.Declines, delivered, 1, hold - 1, order.Declined, true},
		"an order that needs authentication is canceled": {
			ordertest.NeedsAuthentication, delivered, 1, hold, order.Canceled, false,
		},
		"an order that its customer paid meanwhile is paid": {
			ordertest.Declines, func(w *world) { delivered(w); w.bank.CustomerPays("pi_1") }, 1, hold, order.Paid, false,
		},
		"a payment that the bank processes is left": {
			ordertest.NeedsAuthentication, func(w *world) { delivered(w); w.bank.SetProcessing("pi_1") }, 1, hold,
			order.ActionRequired, true,
		},
		"the hold counts from the last change": {
			ordertest.NeedsAuthentication, declinedLater(20 * time.Hour), 1, hold - 1, order.Declined, true,
		},
		"the hold after the last change is over": {
			ordertest.NeedsAuthentication, declinedLater(20 * time.Hour), 1, hold, order.Canceled, false,
		},
		"a pending order is left": {ordertest.TakesDays, delivered, 1, 9 * hold, order.Pending, true},
		"an open order is left":   {ordertest.Pays, crashAfter(ordertest.Bind), 1, 9 * hold, order.Open, true},
		"a declined order without stock is left": {
			ordertest.Declines, func(w *world) { w.store = new(ordertest.Memory); delivered(w) }, 1, 9 * hold, order.Declined, false,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			w := newWorld(t, tt.card)
			w.track(tt.units)
			tt.before(w)
			w.now = w.now.Add(tt.waited)
			if r := w.free(hold); r.Status != tt.want || (r.Stock != nil) != tt.holding {
				t.Errorf("got %s with stock %v, want %s, with stock: %t", r.Status, r.Stock, tt.want, tt.holding)
			}
		})
	}
}

// The clock of whoever recorded the decline may be ahead of ours.
func TestCancelDeclinedWithoutAHoldNeedsNoClock(t *testing.T) {
	w := newWorld(t, ordertest.Declines)
	w.track(1)
	w.deliver(noFault)
	w.now = w.now.Add(-order.MaxSkew)
	if r := w.free(0); r.Status != order.Canceled || r.Stock != nil {
		t.Errorf("got %s with stock %v, want a canceled order without stock", r.Status, r.Stock)
	}
}
