package stripetest_test

import (
	"fmt"
	"testing"
	"time"

	"orderonce/adapters/stripe/stripetest"
)

// FuzzRefunds reads bytes as a schedule of refunds of one charge, and checks after each
// step that no more is refunded than was charged, and that each key made one refund.
func FuzzRefunds(f *testing.F) {
	f.Add([]byte{0, 16, 32, 1, 17, 2, 18, 3, 19, 4, 5, 6, 7})
	f.Add([]byte{6, 0, 5, 0, 70, 16, 5, 2, 5, 7, 0, 5})
	f.Add([]byte("a refund is made once"))
	f.Fuzz(func(t *testing.T, schedule []byte) {
		w := newWorld(t, stripetest.Rules{})
		id := w.pay()
		for _, op := range schedule[:min(len(schedule), 200)] {
			w.refundStep(id, op)
			w.checkRefunds(id)
		}
	})
}

// refundStep decodes and executes one byte: its low half is the action, its high half the
// amount, key, refund or fault.
func (w *world) refundStep(id string, op byte) {
	arg := int(op / 16)
	switch op % 8 {
	case 0, 1:
		w.refund(id, fmt.Sprint(arg%4*500+1), fmt.Sprint("key", arg))
	case 2:
		_ = w.ChangeRefund(fmt.Sprintf("re_%06d", arg%4+1), stripetest.RefundFailed)
	case 3:
		_, _ = w.RefundInDashboard(w.now, id, int64(arg*100+1))
	case 4:
		if d, err := w.OpenDispute(w.now, id); err == nil {
			_ = w.CloseDispute(d.ID, arg != 0)
		}
	case 5:
		w.RollForward(w.now)
	case 6:
		kinds := []stripetest.FaultKind{
			stripetest.ServerErrorBeforeEffect, stripetest.ServerErrorAfterEffect, stripetest.LoseRequest,
			stripetest.LoseResponse,
		}
		w.Fail(stripetest.Fault{Kind: kinds[arg%4], On: stripetest.CreateRefund})
	case 7:
		w.now = w.now.Add(time.Duration(arg) * time.Second) // less than a key's life in all
	}
}

func (w *world) checkRefunds(id string) {
	w.t.Helper()
	var sum int64
	made := map[string]int{}
	for _, r := range w.Refunds() {
		if r.Status == stripetest.RefundSucceeded {
			sum += r.Amount
		}
		made[r.Metadata["refundId"]]++
	}
	if refunded, whole := w.refunded(id); sum != refunded || sum > 1999 || whole != (sum == 1999) {
		w.t.Errorf("got %d refunded, in full %t, and refunds of %d, want equal and at most 1999", refunded, whole, sum)
	}
	for key, n := range made {
		if key != "" && n > 1 {
			w.t.Errorf("got %d refunds under %s, want 1", n, key)
		}
	}
}
