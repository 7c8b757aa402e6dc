package jobs_test

import (
	"errors"
	"testing"

	"orderonce/domain/order"
	"orderonce/scripts/jobs"
)

// The errors of each kind are tested where its messages are decoded.
func TestDecodeReadsOrdersAndRefunds(t *testing.T) {
	const refund = `{"type":"refund","orderId":"ORD12345","refundId":"R-1","amount":1999,"reason":"duplicate"}`
	decoder := jobs.NewDecoder()
	for body, want := range map[string]struct {
		order  order.ID
		refund bool
		err    string
		newer  bool // another release may know it
	}{
		`{"orderId":"A","customerId":"C","currency":"usd","lines":[{"sku":"S","quantity":1,"unitAmount":50}],` +
			`"payment":{"customer":"cus_1","method":"pm_1"}}`: {order: "A"},
		refund: {order: "ORD12345", refund: true},
		`{"detail-type":"x","detail":` + refund + `}`: {order: "ORD12345", refund: true},
		`{"type":"reversal"}`:                         {err: `message body: type: want "order"`, newer: true},
		`{"type":"refund","tip":1}`:                   {err: `message body: unknown field "tip"`, newer: true},
		`{"tax":1,"orderId":"A"}`:                     {err: `message body: unknown field "tax"`, newer: true},
		`{"orderID":"A"}`:                             {err: `message body: unknown field "orderID": want "orderId"`},
	} {
		got, err := decoder.Decode(body)
		if got.OrderID() != want.order || got.IsRefund() != want.refund || (err == nil) != (want.err == "") ||
			errors.Is(err, order.ErrUnknownVersion) != want.newer {
			t.Errorf("%s: got %+v, %v, want %+v", body, got, err, want)
		}
		if err != nil && err.Error() != want.err {
			t.Errorf("%s: got %v, want %s", body, err, want.err)
		}
	}
}
