package refunds_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/internal/bodytest"
	"orderonce/adapters/sqs/refunds"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

func refundOf(t *testing.T, currency string) refund.Request {
	t.Helper()
	r, err := refund.New(refund.Draft{
		OrderID: "ORD12345", RefundID: "R-1", Amount: 1999, Currency: currency, Reason: "requested_by_customer",
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDecode(t *testing.T) {
	decoder := refunds.NewDecoder()
	// An older release may have charged an order with such an id.
	if r, err := decoder.Decode(bodytest.RefundWith("ORD12345", bodytest.CardNumber)); err != nil || r.OrderID() != bodytest.CardNumber {
		t.Errorf("got %+v, %v, want the refund", r, err)
	}
	for body, want := range map[string]refund.Request{
		bodytest.Refund: refundOf(t, ""),
		bodytest.FromEventBridge(bodytest.Refund):                    refundOf(t, ""),
		bodytest.FromSNS(bodytest.Refund):                            refundOf(t, ""),
		bodytest.RefundWith(`"amount"`, `"currency":null,"amount"`):  refundOf(t, ""),
		bodytest.RefundWith(`"amount"`, `"currency":"eur","amount"`): refundOf(t, "eur"),
	} {
		got, err := decoder.Decode(body)
		if diff := cmp.Diff(got, want, cmp.AllowUnexported(refund.Request{})); err != nil || diff != "" {
			t.Errorf("%s: %v (-got +want):\n%s", body, err, diff)
		}
	}
}

func TestDecodeRejects(t *testing.T) {
	with, decoder := bodytest.RefundWith, refunds.NewDecoder()
	const (
		wantType    = `message body: type: want "refund"; send orders to the order queue`
		wantInteger = "message body: amount: want an integer of at most 64 bits, without a fraction, an exponent or quotes"
		missing     = "want a number: missing field"
		wantID      = "want " + order.IDRule
	)
	for name, bad := range map[string][2]string{
		"another type":    {with(`"refund"`, `"reversal"`), wantType},
		"no type":         {with(`"type":"refund",`, ""), wantType},
		"null for a type": {with(`"refund"`, `null`), wantType},
		"an order":        {bodytest.Order, wantType},
		"not JSON":        {"hello", "message body: invalid JSON at byte 1"},

		"an unknown field": {with(`"amount"`, `"tip":1,"amount"`), `message body: unknown field "tip"`},
		"a fraction":       {with("1999", "19.99"), wantInteger},

		"an empty currency": {
			with(`"amount"`, `"currency":"","amount"`), "invalid refund: currency: want at least one character, or no field",
		},
		"no amount":           {with(`"amount":1999,`, ""), "invalid refund: amount: " + missing},
		"null for the amount": {with("1999", "null"), "invalid refund: amount: " + missing},
		"no fields": {
			`{"type":"refund"}`, "invalid refund: amount: " + missing + `; orderId "": ` + wantID + `; refundId "": ` + wantID +
				`; reason "": want "duplicate", "fraudulent" or "requested_by_customer"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decoder.Decode(bad[0])
			if err == nil || err.Error() != bad[1] || got.ID() != "" {
				t.Errorf("got %+v, %v, want %s", got, err, bad[1])
			}
		})
	}
}

type meter []string

func (m *meter) Count(metric, _, value string)                { *m = append(*m, metric+" "+value) }
func (m *meter) Observe(metric, _, _ string, _ time.Duration) { *m = append(*m, metric) }
func (m *meter) Flush()                                       {}

// The row of a paid order must not say that its refund was parked. Settled and OrderAge
// count orders alone.
func TestTheTaskOfARefundMakesItAndNotesNothing(t *testing.T) {
	lease := order.Lease{Owner: "owner"}
	tasks := refunds.Tasks{
		Decoder: refunds.NewDecoder(),
		Process: func(_ context.Context, r refund.Request, l order.Lease) order.Result {
			if r.ID() != "R-1" || l != lease {
				t.Errorf("got refund %s, lease %v, want R-1, %v", r.ID(), l, lease)
			}
			return order.Result{Verdict: order.Done}
		},
	}
	task, err := tasks.Task(bodytest.Refund)
	if err != nil || task.ID != "ORD12345" || task.NoteParked != nil || fmt.Sprint(task.Attrs) != "[refund_id=R-1]" {
		t.Fatalf("got %+v, %v, want a task of ORD12345 that logs refund_id and notes nothing", task, err)
	}
	if r := task.Run(t.Context(), sqs.Delivery{}, lease); r.Verdict != order.Done {
		t.Errorf("got %+v, want the result of Process", r)
	}
	var m meter
	for _, reason := range append(order.Reasons(), refund.Reasons()...) {
		task.Count(&m, order.Result{Reason: reason}, time.Minute)
	}
	if diff := cmp.Diff(m, meter{"Refunds settled", "Refunds refund_refused"}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if task, err := tasks.Task(bodytest.Order); err == nil || task.Run != nil {
		t.Errorf("an order: got task %v, %v, want an error", task, err)
	}
}
