package order_test

import (
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// A refused Confirm does not prove the state of the intent, so every outcome is recorded,
// and not only a payment.
func TestARefusedConfirmRecordsTheIntentsOutcome(t *testing.T) {
	for _, tt := range []struct {
		name    string
		card    ordertest.Card
		during  func(w *world, confirm func() error)
		want    order.Status
		failure string
	}{
		{"it was paid", ordertest.Pays, mustConfirm, order.Paid, ""},
		{"it was declined", ordertest.Declines, mustConfirm, order.Declined, "insufficient_funds"},
		{"it needs authentication", ordertest.NeedsAuthentication, mustConfirm, order.ActionRequired, "authentication_required"},
		{"it takes days", ordertest.TakesDays, mustConfirm, order.Pending, ""},
		{"it was canceled", ordertest.Pays, func(w *world, _ func() error) { w.bank.Cancel("pi_1") }, order.Canceled, ""},
		{"it was declined and paid later", ordertest.Declines, func(w *world, confirm func() error) {
			mustConfirm(w, confirm)
			w.bank.CustomerPays("pi_1")
		}, order.Paid, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.card)
			got := w.deliver(intercept(ordertest.Confirm, func(confirm func() error) error {
				tt.during(w, confirm)
				return refused()
			}))
			r := w.record()
			if got.Verdict != order.Done || got.Status != tt.want || r.Status != tt.want || r.Failure != tt.failure {
				t.Errorf("got %+v, record status %s and failure %q, want %s, %s and %q",
					got, r.Status, r.Failure, order.Done, tt.want, tt.failure)
			}
		})
	}
}

func mustConfirm(w *world, confirm func() error) {
	w.Helper()
	if err := confirm(); err != nil {
		w.Errorf("confirm: %v", err)
	}
}
