package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

// complete returns a valid environment with changes, in which every service is at url.
func complete(url string, changes ...string) []string {
	return append([]string{
		"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=canary", "AWS_ENDPOINT_URL=" + url,
		"ORDERS_TABLE=orders", "QUEUE_URL=https://sqs.example/1/refunds", "DEAD_LETTER_QUEUE_URL=https://sqs.example/1/dead",
		"SCOPE=test", "STRIPE_SECRET_KEY=sk_test_canary", "STRIPE_API_BASE=" + url,
	}, changes...)
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	const timeout = "ORDER_BUDGET: want more than the time-outs of its calls"
	for change, want := range map[string]string{
		"SCOPE=test": "", "ORDER_BUDGET=8001ms": "", "ORDER_BUDGET=8s": timeout, "STRIPE_TIMEOUT=10s": timeout,
		"PARALLEL_ORDERS=0": "PARALLEL_ORDERS: want at least 1", "ORDERS_TABLE=": "ORDERS_TABLE: want the name of the orders table",
		"STRIPE_SECRET_KEY=": "STRIPE_SECRET_ARN, STRIPE_SECRET_KEY: want exactly one of them",
	} {
		_, err := config.Read[environment](complete("http://127.0.0.1:1", change))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", change, err, want)
		}
	}
}

func TestRefundsAreMadeInTheFunctionsScopeAndTime(t *testing.T) {
	t.Parallel()
	c, err := config.Read[environment](complete("http://127.0.0.1:1"))
	must(t, err)
	p := newProcessor(c, refundtest.NewMemory(new(ordertest.Memory)), &refundtest.Bank{})
	if p.Scope != "test" || p.CreateTime != 12*time.Second { // Stripe, half of what is left for a write, the response
		t.Errorf("got scope %q and %v to create, want test and 12s", p.Scope, p.CreateTime)
	}
	v := reflect.ValueOf(*p)
	for field := range v.Type().Fields() {
		if v.FieldByIndex(field.Index).IsZero() {
			t.Errorf("%s is not set", field.Name)
		}
	}
}

// The refund is claimed in the table and read at Stripe, which is unavailable. An order
// is parked, and named in no other call.
func TestWire(t *testing.T) {
	t.Parallel()
	r, err := refund.New(refund.Draft{OrderID: "ORD-1", RefundID: "R-1", Amount: 1250, Reason: "duplicate"})
	must(t, err)
	row := `{"orderId":{"S":"ORD-1"},"sk":{"S":"order"},"status":{"S":"paid"},"fingerprint":{"S":"v1:0"},` +
		`"amount":{"N":"1250"},"currency":{"S":"usd"},"attempt":{"N":"1"},"seq":{"N":"0"},"intentId":{"S":"pi_1"},` +
		`"createdAt":{"N":"1767225600000"},"updatedAt":{"N":"1767225600000"},"refund#R-1":{"M":{` +
		`"status":{"S":"open"},"amount":{"N":"1250"},"reason":{"S":"duplicate"},"fingerprint":{"S":"` + string(r.Fingerprint()) +
		`"},"owner":{"S":"owner"},"leaseUntil":{"N":"1767225660000"},"attempt":{"N":"1"},"keySeq":{"N":"1"},` +
		`"createdAt":{"N":"1767225600000"},"updatedAt":{"N":"1767225600000"}}}}`
	var calls []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, queue, _ := strings.Cut(string(body), "https://sqs.example/1/")
		queue, _, _ = strings.Cut(queue, `"`)
		target := r.Header.Get("X-Amz-Target")
		calls = append(calls, strings.TrimSpace(target+" "+queue))
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		switch {
		case strings.HasPrefix(target, "DynamoDB"):
			_, _ = io.WriteString(w, `{"Item":`+row+`,"Attributes":`+row+`}`)
		case target == "":
			calls[len(calls)-1] = r.Method + " " + r.URL.Path + " " + r.Header.Get("Authorization")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":{"type":"api_error","message":"try later"}}`)
		default:
			_, _ = io.WriteString(w, `{}`)
		}
	}))
	t.Cleanup(server.Close)
	var out strings.Builder
	h, err := wire(t.Context(), complete(server.URL, "PARALLEL_ORDERS=1"), &out)
	must(t, err)
	h.Settings, h.NewOwner = nil, func() string { return "owner" }
	got, err := h.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "m-1", Body: `{"type":"refund","orderId":"ORD-1","refundId":"R-1","amount":1250,"reason":"duplicate"}`},
	}})
	if err != nil || len(got.BatchItemFailures) != 1 {
		t.Errorf("got %+v, %v, want the refund redelivered\n%s", got, err, &out)
	}
	slices.Sort(calls)
	want := []string{
		"AmazonSQS.ChangeMessageVisibilityBatch refunds",
		"DynamoDB_20120810.GetItem", "DynamoDB_20120810.UpdateItem", // begin and release
		"GET /v1/payment_intents/pi_1 Bearer sk_test_canary",
	}
	if diff := cmp.Diff(calls, want); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
	for _, line := range []string{`"reason":"provider_unavailable"`, `"refund_id":"R-1"`, `"message":"refund"`, `"Function":"refund"`} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("want %s in the output:\n%s", line, &out)
		}
	}
	if strings.Contains(out.String(), "canary") {
		t.Errorf("the output shows a secret:\n%s", &out)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
