package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// The refund is claimed in the table and read at Stripe, which is unavailable.
func TestRefundsAreWired(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	r, err := refund.New(refund.Draft{OrderID: "ORD-1", RefundID: "R-1", Amount: 1250, Reason: "duplicate"})
	must(t, err)
	c.row = strings.NewReplacer(
		`"open"`, `"paid"`, `"openShard":{"N":"1"},"dueAt":{"N":"1767226500000"}`, `"intentId":{"S":"pi_1"},"refund#R-1":{"M":{`+
			`"status":{"S":"open"},"amount":{"N":"1250"},"reason":{"S":"duplicate"},"fingerprint":{"S":"`+string(r.Fingerprint())+`"},`+
			`"owner":{"S":"`+owner+`"},"leaseUntil":{"N":"1767225660000"},"attempt":{"N":"1"},"keySeq":{"N":"1"},`+
			`"createdAt":{"N":"1767225600000"},"updatedAt":{"N":"1767225600000"}}}`,
	).Replace(claimed())
	h, out := wired(t, c.environ())
	got, err := h.Handle(t.Context(), batchOf(`{"type":"refund","orderId":"ORD-1","refundId":"R-1","amount":1250,"reason":"duplicate"}`))
	if err != nil || len(got.BatchItemFailures) != 1 || !strings.Contains(out.String(), `"reason":"provider_unavailable"`) {
		t.Errorf("got %+v, %v, want the refund redelivered\n%s", got, err, out)
	}
	want := []string{
		"AmazonSQS.ChangeMessageVisibilityBatch https://sqs.example/1/orders",
		"DynamoDB_20120810.GetItem orders", "DynamoDB_20120810.UpdateItem orders", // begin and release
		"GET /v1/payment_intents/pi_1 Bearer sk_test_canary ",
	}
	if diff := cmp.Diff(c.calls(), want); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
}
