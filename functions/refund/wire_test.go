package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
	"orderonce/functions/internal/functiontest"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	const timeout = "ORDER_BUDGET: want more than the time-outs of its calls"
	for change, want := range map[string]string{
		"SCOPE=test": "", "ORDER_BUDGET=8001ms": "", "ORDER_BUDGET=8s": timeout, "STRIPE_TIMEOUT=10s": timeout,
		"PARALLEL_ORDERS=0": "PARALLEL_ORDERS: want at least 1", "ORDERS_TABLE=": "ORDERS_TABLE: want the name of the orders table",
		"STRIPE_SECRET_KEY=": "STRIPE_SECRET_ARN, STRIPE_SECRET_KEY: want exactly one of them",
	} {
		_, err := config.Read[environment](functiontest.Environ("", change))
		if functiontest.Wrong(err, want) {
			t.Errorf("%s: got %v, want %q", change, err, want)
		}
	}
}

func TestRefundsAreMadeInTheFunctionsScopeAndTime(t *testing.T) {
	t.Parallel()
	c, err := config.Read[environment](functiontest.Environ(""))
	functiontest.Must(t, err)
	p := newProcessor(c, refundtest.NewMemory(new(ordertest.Memory)), &refundtest.Bank{})
	if p.Scope != "test" || p.CreateTime != 12*time.Second { // Stripe, half of what is left for a write, the response
		t.Errorf("got scope %q and %v to create, want test and 12s", p.Scope, p.CreateTime)
	}
	if unset := functiontest.Unset(*p); len(unset) > 0 {
		t.Errorf("not set are %q", unset)
	}
}

// The refund is claimed in the table and read at Stripe, which is unavailable. An order
// is parked, and named in no other call.
func TestWire(t *testing.T) {
	t.Parallel()
	r, err := refund.New(refund.Draft{OrderID: "ORD-1", RefundID: "R-1", Amount: 1250, Reason: "duplicate"})
	functiontest.Must(t, err)
	row := `{"orderId":{"S":"ORD-1"},"sk":{"S":"order"},"status":{"S":"paid"},"fingerprint":{"S":"v1:0"},` +
		`"amount":{"N":"1250"},"currency":{"S":"usd"},"attempt":{"N":"1"},"seq":{"N":"0"},"intentId":{"S":"pi_1"},` +
		`"createdAt":{"N":"1767225600000"},"updatedAt":{"N":"1767225600000"},"refund#R-1":{"M":{` +
		`"status":{"S":"open"},"amount":{"N":"1250"},"reason":{"S":"duplicate"},"fingerprint":{"S":"` + string(r.Fingerprint()) +
		`"},"owner":{"S":"owner"},"leaseUntil":{"N":"1767225660000"},"attempt":{"N":"1"},"keySeq":{"N":"1"},` +
		`"createdAt":{"N":"1767225600000"},"updatedAt":{"N":"1767225600000"}}}}`
	c := functiontest.Serve(t, func(call, _ string) string {
		if strings.HasPrefix(call, "DynamoDB") {
			return `{"Item":` + row + `,"Attributes":` + row + `}`
		}
		return ""
	})
	var out functiontest.Output
	h, err := wire(t.Context(), functiontest.Environ(c.URL, "PARALLEL_ORDERS=1"), &out)
	functiontest.Must(t, err)
	h.Settings, h.NewOwner = nil, func() string { return "owner" }
	got, err := h.Handle(t.Context(), functiontest.Batch(
		`{"type":"refund","orderId":"ORD-1","refundId":"R-1","amount":1250,"reason":"duplicate"}`,
	))
	if err != nil || len(got.BatchItemFailures) != 1 {
		t.Errorf("got %+v, %v, want the refund redelivered\n%s", got, err, &out)
	}
	want := []string{
		"AmazonSQS.ChangeMessageVisibilityBatch https://sqs.example/1/live",
		"DynamoDB_20120810.GetItem orders", "DynamoDB_20120810.UpdateItem orders", // begin and release
		"GET /v1/payment_intents/pi_1 sk_test_canary",
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(c.Calls())), want); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
	if part := out.Lacks(
		`"reason":"provider_unavailable"`, `"refund_id":"R-1"`, `"message":"refund"`, `"Function":"refund"`,
	); part != "" {
		t.Errorf("want %s in the output:\n%s", part, &out)
	}
}
