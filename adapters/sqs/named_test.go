package sqs_test

import (
	"strings"
	"testing"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

func TestDecodeNamed(t *testing.T) {
	t.Parallel()
	const id = "ORD12345"
	d := sqs.NewDecoder()
	want, err := d.Decode(good)
	if err != nil {
		t.Fatal(err)
	}
	withoutID := strings.Replace(good, `"orderId":"ORD12345",`, "", 1)
	const otherID = `orderId "ORD-2": want the id of the request, or none`
	for claim, tt := range map[string]struct{ body, id, err string }{
		"without an id":           {withoutID, id, ""},
		"with the same id":        {good, id, ""},
		"with its type":           {with("{\"orderId\"", `{"type":"order","orderId"`), id, ""},
		"with another id":         {with(id, "ORD-2"), id, "invalid order: " + otherID},
		"with an empty id":        {with(id, ""), id, `invalid order: orderId "": want the id of the request, or none`},
		"with the id null":        {with(`"ORD12345"`, "null"), id, `invalid order: orderId "": want the id of the request, or none`},
		"with a number for an id": {with(`"ORD12345"`, "5"), id, "message body: orderId: want a string"},
		"every problem is reported": {
			strings.Replace(with(id, "ORD-2"), "usd", "USD", 1), id,
			"invalid order: " + otherID + `; currency "USD": ` + wantCurrency,
		},
		"an invalid id of a request": {withoutID, "a b", "invalid order: orderId [withheld: length 3, with ' ']: " + wantID},
		"an amount beyond the currency": {
			strings.Replace(withoutID, "1999", "100000000", 1), id,
			"invalid order: lines[0].unitAmount [withheld: 9 digits]: want 0 to 99999999 in usd",
		},
		"a refund": {
			`{"type":"refund","orderId":"ORD12345","refundId":"R","amount":1,"reason":"duplicate"}`, id,
			`message body: type: want "order"`,
		},
		"an event":      {fromEventBridge(good), id, `message body: unknown field "version"`},
		"a large body":  {good + strings.Repeat(" ", sqs.MaxBody), id, "message body: too large: 262341 bytes, want at most 262144"},
		"a field twice": {with(`"currency"`, `"currency":"eur","currency"`), id, `message body: duplicate field "currency"`},
		"no JSON":       {"hello", id, "message body: invalid JSON at byte 1"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			got, err := d.DecodeNamed(tt.body, tt.id)
			switch {
			case tt.err != "" && (err == nil || err.Error() != tt.err):
				t.Errorf("got %v, want %s", err, tt.err)
			case tt.err == "" && (err != nil || got.Fingerprint() != want.Fingerprint()):
				t.Errorf("got %+v, %v, want the order of the message", got, err)
			case tt.err != "" && got.ID() != order.ID(""):
				t.Errorf("got order %q with an error, want none", got.ID())
			}
		})
	}
}
