package orders_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/internal/bodytest"
	"orderonce/adapters/sqs/orders"
	"orderonce/domain/order"
)

const missing = "want a number: missing field"

func TestDecode(t *testing.T) {
	want, err := order.New(order.Draft{
		ID: "ORD12345", CustomerID: "CUST987", Currency: "usd",
		Lines:   []order.Line{{SKU: "TSHIRT-M", Quantity: 2, UnitAmount: 1999}},
		Payment: order.Payment{Customer: "cus_NffrFeUfNV2Hib", Method: "pm_1MqLiJLkdIwHu7ix"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const good = bodytest.Order
	decoder := orders.NewDecoder()
	for name, body := range map[string]string{
		"alone":         good,
		"with its type": bodytest.OrderWith(`{"orderId"`, `{"type":"order","orderId"`),
		"in an event":   bodytest.FromEventBridge(good),
		"notified":      bodytest.FromSNS(good),
	} {
		got, err := decoder.Decode(body)
		if diff := cmp.Diff(got, want, cmp.AllowUnexported(order.Order{})); err != nil || diff != "" {
			t.Errorf("%s: %v (-got +want):\n%s", name, err, diff)
		}
	}
}

func TestDecodeRejects(t *testing.T) {
	with := bodytest.OrderWith
	const wantType = `message body: type: want "order"`
	decoder := orders.NewDecoder()
	for name, bad := range map[string][2]string{
		"an unknown field": {with(`"currency"`, `"discount":500,"currency"`), `message body: unknown field "discount"`},
		"a card number as a number": {
			with(`"pm_1MqLiJLkdIwHu7ix"`, bodytest.CardNumber), "message body: payment.method: want a string",
		},
		"a fraction of a cent": {
			with("1999", "1999.5"),
			"message body: lines[0].unitAmount: want an integer of at most 64 bits, without a fraction, an exponent or quotes",
		},
		"a refund":             {bodytest.Refund, wantType + "; send refunds to the refund queue"},
		"a refund without end": {strings.Replace(bodytest.Refund, "}", "", 1), wantType + "; send refunds to the refund queue"},
		"another type":         {with(`{"orderId"`, `{"type":"sale","orderId"`), wantType},
		"an empty type":        {with(`{"orderId"`, `{"type":"","orderId"`), wantType},
		"a number as type":     {with(`{"orderId"`, `{"type":`+bodytest.CardNumber+`,"orderId"`), "message body: type: want a string"},
		"null as type":         {with(`{"orderId"`, `{"type":null,"orderId"`), "message body: type: want a string"},

		"no quantity":    {with(`"quantity":2,`, ""), "invalid order: lines[0].quantity: " + missing},
		"null quantity":  {with(`"quantity":2`, `"quantity":null`), "invalid order: lines[0].quantity: " + missing},
		"no unit amount": {with(`,"unitAmount":1999`, ""), "invalid order: lines[0].unitAmount: " + missing},
		"no number, and other problems": {
			`{"orderId":"a b","currency":"usd","customerId":"x","lines":[{"sku":"a"},null],"payment":{"customer":"cus_1","method":"pm_1"}}`,
			"invalid order: lines[0].quantity: " + missing + "; lines[0].unitAmount: " + missing +
				"; lines[1].quantity: " + missing + "; lines[1].unitAmount: " + missing +
				"; orderId [withheld: length 3, with ' ']: want " + order.NewIDRule + `; lines[1].sku "": want ` + order.SKURule,
		},
		"no fields": {`{}`, `invalid order: orderId "": want ` + order.NewIDRule + "; customerId: want " + order.CustomerIDRule +
			`; currency "": want ` + order.CurrencyRule + "; payment.customer: want " + order.ReferenceRule +
			"; payment.method: want " + order.ReferenceRule + "; lines 0: want 1 to 100 lines"},
		"a value that is not valid": {with(`"quantity":2`, `"quantity":0`), "invalid order: lines[0].quantity 0: want 1 to 1000000"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decoder.Decode(bad[0])
			if err == nil || err.Error() != bad[1] || got.ID() != "" {
				t.Errorf("got order %q, %v, want %s", got.ID(), err, bad[1])
			}
		})
	}
}
