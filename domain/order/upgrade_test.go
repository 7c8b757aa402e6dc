package order_test

import (
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// upgrade switches the next deliveries to a release that writes a second fingerprint
// version.
func (w *world) upgrade() {
	w.Helper()
	o, err := order.NewInRelease2(with(func(d *order.Draft) {
		d.ID, d.Payment = string(w.order.ID()), w.order.Payment()
	}))
	w.must(err)
	w.order = o
}

func TestANewFingerprintVersionContinuesOpenOrders(t *testing.T) {
	for _, last := range []ordertest.Call{ordertest.Begin, ordertest.Prepare, ordertest.Bind, ordertest.Confirm} {
		t.Run("after "+string(last), func(t *testing.T) {
			w := newWorld(t, ordertest.Pays)
			written := w.order.Fingerprint()
			w.crashAfter(last)
			w.upgrade()
			if got, want := w.final(w.redeliver(noFault)), settled(order.Paid); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if r := w.record(); r.Fingerprint != written || r.Intent != "pi_1" {
				t.Errorf("got fingerprint %s and intent %s, want %s and pi_1", r.Fingerprint, r.Intent, written)
			}
		})
	}
}
