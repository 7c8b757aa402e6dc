package main

import (
	"testing"
	"time"

	"orderonce/adapters/config"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

// refunding is a paid order of 39.98 USD in memory.
type refunding struct {
	claims *refundtest.Memory
	bank   *refundtest.Bank
}

func newRefunding(t *testing.T) refunding {
	t.Helper()
	orders, intents := new(ordertest.Memory), &ordertest.Bank{Scope: "test"}
	o, err := order.New(ordertest.Draft("ORD-1"))
	must(t, err)
	p := order.Processor{Claims: orders, Payments: intents, Scope: "test", Now: time.Now, ConfirmTime: time.Second}
	if r := p.Process(t.Context(), o, time.Now(), lease(time.Minute)); r.Status != order.Paid {
		t.Fatalf("charge: got %+v, want it paid", r)
	}
	return refunding{
		claims: refundtest.NewMemory(orders), bank: &refundtest.Bank{Intents: intents, Now: time.Now, KeyLife: time.Hour},
	}
}

// lease returns the lease of an invocation that ends after d.
func lease(d time.Duration) order.Lease {
	return order.Lease{Owner: owner, From: time.Now(), Until: time.Now().Add(d)}
}

func TestRefundsAreMadeInTheFunctionsScopeAndTime(t *testing.T) {
	t.Parallel()
	c, err := config.Read[environment](complete())
	must(t, err)
	r, err := refund.New(refund.Draft{OrderID: "ORD-1", RefundID: "R-1", Amount: 1999, Reason: "duplicate"})
	must(t, err)
	for claim, tt := range map[string]struct {
		environment environment
		left        time.Duration // of the invocation
		reason      order.Reason
		made        int
	}{
		"a refund with time to finish is made":            {c, time.Minute, order.ReasonSettled, 1},
		"a refund with no time to finish is not sent":     {c, c.budget().ConfirmTime() - time.Millisecond, order.ReasonOutOfTime, 0},
		"a refund of another scope's order is a mismatch": {environment{Scope: "other"}, time.Minute, order.ReasonMismatch, 0},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newRefunding(t)
			got := newRefunds(tt.environment, w.claims, w.bank).Process(t.Context(), r, lease(tt.left))
			if got.Reason != tt.reason || len(w.bank.Refunds()) != tt.made {
				t.Errorf("got %+v and %d refunds, want %s and %d", got, len(w.bank.Refunds()), tt.reason, tt.made)
			}
		})
	}
}

// No refund is lost while refunds are not wired.
func TestARefundThatCannotBeMadeYetWaits(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	h, _ := wired(t, c.environ())
	got, err := h.Handle(t.Context(), batchOf(`{"type":"refund","orderId":"ORD-1","refundId":"R-1","amount":1,"reason":"duplicate"}`))
	if err != nil || len(got.BatchItemFailures) != 1 {
		t.Errorf("got %+v, %v, want the refund redelivered", got, err)
	}
}
