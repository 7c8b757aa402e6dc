package sqs_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

// good is the order of docs/reference/message.md, as one line.
const good = `{"orderId":"ORD12345","customerId":"CUST987","currency":"usd",` +
	`"lines":[{"sku":"TSHIRT-M","quantity":2,"unitAmount":1999}],` +
	`"payment":{"customer":"cus_NffrFeUfNV2Hib","method":"pm_1MqLiJLkdIwHu7ix"}}`

const (
	goodLines   = `[{"sku":"TSHIRT-M","quantity":2,"unitAmount":1999}]`
	goodPrice   = `"quantity":2,"unitAmount":1999`
	goodPayment = `{"customer":"cus_NffrFeUfNV2Hib","method":"pm_1MqLiJLkdIwHu7ix"}`
	cardNumber  = "4242424242424242" // Stripe's test card
)

// with returns the good order after one replacement.
func with(old, replacement string) string {
	if strings.Count(good, old) != 1 {
		panic("not once in the good order: " + old)
	}
	return strings.Replace(good, old, replacement, 1)
}

func fromEventBridge(detail string) string {
	return `{"version":"0","id":"7bf73129-1428-4cd3-a780-95db273d1602","detail-type":"order placed","source":"shop",` +
		`"account":"000000000000","time":"2026-01-02T03:04:05Z","region":"us-east-1","resources":[],"detail":` + detail + `}`
}

func fromSNS(message string) string {
	text, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	return `{"Type":"Notification","MessageId":"22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324","TopicArn":"arn:aws:sns:us-east-1:000000000000:t",` +
		`"Message":` + string(text) + `,"Timestamp":"2026-01-02T03:04:05.000Z","SignatureVersion":"1"}`
}

// Rules that appear in several errors.
const (
	wantAnyID     = `want 1 to 64 letters, digits, '.', '_' or '-', the first a letter or a digit`
	wantID        = wantAnyID + `, and not a card number`
	wantCustomer  = `want 1 to 128 printable characters without blanks`
	wantSKU       = `want 1 to 64 printable characters without blanks`
	wantCurrency  = `want a lower-case three-letter code that Stripe charges in, such as "usd"`
	wantReference = `want an id such as "pm_..." or "cus_...": lower-case letters, '_', then letters, digits or '_', at most 255`
	wantInteger   = `want an integer of at most 64 bits, without a fraction, an exponent or quotes`
	missing       = `want a number: missing field`
)

type badBody struct{ name, body, want string }

// malformed returns bodies that are not an order.
func malformed() []badBody {
	return []badBody{
		{"too large", strings.Repeat(" ", sqs.MaxBody) + good, "too large: 262341 bytes, want at most 262144"},
		{"empty", "", "truncated JSON"},
		{"blank", " \n", "truncated JSON"},
		{"not JSON", "hello", "invalid JSON at byte 1"},
		{"a byte order mark", "\ufeff" + good, "invalid JSON at byte 1"},
		{"truncated in a string", good[:50], "truncated JSON"},
		{"truncated before the last brace", good[:len(good)-1], "truncated JSON"},
		{"a trailing comma", `{"orderId":"x",}`, "invalid JSON at byte 16"},
		{"two orders", good + good, "trailing data after the JSON object at byte 197"},
		{"trailing bytes", good + " x", "trailing data after the JSON object at byte 197"},
		{"a closing bracket too many", good + "}", "trailing data after the JSON object at byte 197"},
		{"null", "null", "not a JSON object"},
		{"a number", "5", "not a JSON object"},
		{"a string", `"order"`, "not a JSON object"},
		{"a list of one order", "[" + good + "]", "not a JSON object"},
		{"a hundred thousand brackets", strings.Repeat("[", 100_000), "invalid JSON at byte 10001"},
		{"a syntax error at a large offset", strings.Repeat(" ", 5000) + "x", "invalid JSON at byte 5001"},
		{
			"one level too many", fromEventBridge(strings.Repeat("[", 17) + strings.Repeat("]", 17)),
			"nested deeper than 16 levels",
		},
		{"one level less", fromEventBridge(strings.Repeat("[", 16) + strings.Repeat("]", 16)), "not a JSON object"},
		{
			"deep nesting in the wrapper", fromEventBridge(strings.Repeat("[", 5000) + strings.Repeat("]", 5000)),
			"nested deeper than 16 levels",
		},

		{"a field twice", with(`"currency"`, `"orderId":"X","currency"`), `duplicate field "orderId"`},
		{"a field twice, in other case", with(`"currency"`, `"ORDERID":"X","currency"`), `duplicate field "ORDERID"`},
		{
			"a field twice in a line", with(`"quantity":2`, `"quantity":2,"quantity":3`),
			`duplicate field "lines[].quantity"`,
		},
		{
			"a field twice in the payment", with(`,"method"`, `,"Customer":"x","method"`),
			`duplicate field "payment.Customer"`,
		},
		{"a field twice, by an escape", with(`"currency"`, `"\u006frderId":"X","currency"`), `duplicate field "orderId"`},
		{
			"a field twice, with a long s", with(`,"method"`, `,"cu\u017ftomer":"x","method"`),
			`duplicate field payment.[withheld: length 8, with '\u017f']`,
		},
		{
			"a field twice, with a Kelvin sign", with(`,"quantity"`, `,"s\u212au":"x","quantity"`),
			`duplicate field lines[].[withheld: length 3, with '\u212a']`,
		},
		{
			"a field twice in the wrapper",
			strings.Replace(fromEventBridge(good), `"account"`, `"Detail":{},"account"`, 1),
			`duplicate field "detail"`,
		},
		{
			"a field twice in a wrapped order", fromEventBridge(with(`"currency"`, `"Currency":"eur","currency"`)),
			`duplicate field "detail.currency"`,
		},
		{
			"a field twice in a notified order", fromSNS(with(`"currency"`, `"currency":"eur","currency"`)),
			`duplicate field "currency"`,
		},

		{"an unknown field", with(`"currency"`, `"discount":500,"currency"`), `unknown field "discount"`},
		{"an unknown field in a line", with(`"quantity"`, `"tax":5,"quantity"`), `unknown field "lines[].tax"`},
		{"an unknown field in the payment", with(`"method"`, `"cvc":"123","method"`), `unknown field "payment.cvc"`},
		{
			"an unknown field in a wrapped order", fromEventBridge(with(`"currency"`, `"tip":1,"currency"`)),
			`unknown field "tip"`,
		},
		{"a wrong case", with(`"orderId"`, `"orderID"`), `unknown field "orderID": want "orderId"`},
		{
			"a wrong case in a line", with(`"unitAmount"`, `"unitamount"`),
			`unknown field "lines[].unitamount": want "unitAmount"`,
		},
		{"a wrong case in the payment", with(`"method"`, `"Method"`), `unknown field "payment.Method": want "method"`},
		{
			"a field's name of a kilobyte", with(`"currency"`, `"`+strings.Repeat("x", 1024)+`":0,"currency"`),
			`unknown field [withheld: length 1024]`,
		},

		{"a number for a string", with(`"ORD12345"`, `5`), "orderId: want a string"},
		{"a list for a string", with(`"usd"`, `["usd"]`), "currency: want a string"},
		{"a float", with(`"quantity":2`, `"quantity":2.0`), "lines.quantity: " + wantInteger},
		{"an exponent", with(`"quantity":2`, `"quantity":2e0`), "lines.quantity: " + wantInteger},
		{"a quoted number", with(`"quantity":2`, `"quantity":"2"`), "lines.quantity: " + wantInteger},
		{"a fraction of a cent", with("1999", "1999.5"), "lines.unitAmount: " + wantInteger},
		{"a number beyond 64 bits", with("1999", "9223372036854775808"), "lines.unitAmount: " + wantInteger},
		{"a number far beyond 64 bits", with("1999", strings.Repeat("9", 400)), "lines.unitAmount: " + wantInteger},
		{"a leading zero", with("1999", "01999"), "invalid JSON at byte 117"},
		{"an object for lines", with(goodLines, `{}`), "lines: want a list of lines"},
		{"a number for a line", with(goodLines, `[5]`), "lines: want a list of lines"},
		{"lists in the list", with(goodLines, `[[{"sku":"x"}]]`), `unknown field "lines[][].sku"`},
		{"a card number for the payment", with(goodPayment, `"`+cardNumber+`"`), "payment: want an object"},
		{"a card number as a number", with(`"pm_1MqLiJLkdIwHu7ix"`, cardNumber), "payment.method: want a string"},

		{"an event without a detail", `{"detail-type":"order placed"}`, `unknown field "detail-type"`},
		{"an event whose detail is null", fromEventBridge(`null`), "not a JSON object"},
		{"an event whose detail is a string", fromEventBridge(`"order"`), "not a JSON object"},
		{
			"an order with the fields of an event", with(`"lines"`, `"detail-type":"x","detail":`+good+`,"lines"`),
			`unknown field "detail-type"`,
		},
		{
			"an event with a field of an order",
			strings.Replace(fromEventBridge(good), `"account"`, `"currency":"eur","account"`, 1),
			`unknown field "version"`,
		},
		{
			"trailing bytes after an event", `{"detail-type":"x","detail":{}} x`,
			"trailing data after the JSON object at byte 31",
		},
		{"a notification of text", fromSNS("hello"), "invalid JSON at byte 1"},
		{"a notification without a message", `{"Type":"Notification"}`, `unknown field "Type"`},
		{
			"another message of a topic",
			strings.Replace(fromSNS(good), `"Type":`, `"Type":"UnsubscribeConfirmation","Subject":`, 1),
			`unknown field "Type"`,
		},
		{"a detail without a type, alone", `{"kind":"detail-type","detail":` + good + `}`, `unknown field "kind"`},
		{"a notification of an object", `{"Type":"Notification","Message":{}}`, `unknown field "Type"`},
		{"an event in an event", fromEventBridge(fromEventBridge(good)), `unknown field "version"`},
		{"a notification in an event", fromEventBridge(fromSNS(good)), `unknown field "Type"`},
		{"a notification in a notification", fromSNS(fromSNS(good)), `unknown field "Type"`},
	}
}

// malformedLayers returns bodies that break a rule at one layer of an order in an event
// in a notification.
func malformedLayers() []badBody {
	event, note := fromEventBridge(good), fromSNS(fromEventBridge(good))
	behind := func(layer string) string {
		return fmt.Sprintf("trailing data after the JSON object at byte %d", len(layer))
	}
	beside := func(layer, field string) string { return strings.Replace(layer, `{`, `{`+field+`,`, 1) }
	return []badBody{
		{"a notification with a field of an order", beside(fromSNS(good), `"currency":"eur"`), `unknown field "Type"`},
		{"a notification of an event with a field of an order", beside(note, `"currency":"eur"`), `unknown field "Type"`},
		{
			"a notified event with a field of an order", fromSNS(beside(event, `"currency":"eur"`)),
			`unknown field "version"`,
		},
		{
			"a notification that is an event", beside(note, `"detail-type":"x","detail":`+good),
			`unknown field "detail-type"`,
		},
		{"an event with a message", beside(event, `"Message":"x"`), `unknown field "Message"`},
		{"a notification whose message is null", `{"Type":"Notification","Message":null}`, "truncated JSON"},
		{"a field twice in the notification", beside(note, `"message":"x"`), `duplicate field "Message"`},
		{"a field twice in a notified event", fromSNS(beside(event, `"Detail":{}`)), `duplicate field "detail"`},
		{
			"a field twice in the order of a notified event",
			fromSNS(fromEventBridge(with(`"currency"`, `"Currency":"eur","currency"`))),
			`duplicate field "detail.currency"`,
		},
		{
			"an unknown field in the order of a notified event",
			fromSNS(fromEventBridge(with(`"currency"`, `"tip":1,"currency"`))),
			`unknown field "tip"`,
		},
		{"trailing bytes after the notification", note + "x", behind(note)},
		{"trailing bytes after a notified event", fromSNS(event + "x"), behind(event)},
	}
}

// absent returns the good order without one of its fields, and with null in its place.
func absent() (all []badBody) {
	for _, f := range []struct{ name, member, want string }{
		{"orderId", `"orderId":"ORD12345"`, `orderId "": ` + wantID},
		{"customerId", `"customerId":"CUST987"`, "customerId: " + wantCustomer},
		{"currency", `"currency":"usd"`, `currency "": ` + wantCurrency},
		{"lines", `"lines":` + goodLines, "lines 0: want 1 to 100 lines"},
		{"sku", `"sku":"TSHIRT-M"`, `lines[0].sku "": ` + wantSKU},
		{"quantity", `"quantity":2`, "lines[0].quantity: " + missing},
		{"unitAmount", `"unitAmount":1999`, "lines[0].unitAmount: " + missing},
		{"payment", `"payment":` + goodPayment, "payment.customer: " + wantReference + "; payment.method: " + wantReference},
		{"payment customer", `"customer":"cus_NffrFeUfNV2Hib"`, "payment.customer: " + wantReference},
		{"payment method", `"method":"pm_1MqLiJLkdIwHu7ix"`, "payment.method: " + wantReference},
	} {
		name, _, _ := strings.Cut(f.member, ":")
		without := strings.NewReplacer(f.member+",", "", ","+f.member, "").Replace(good)
		all = append(all,
			badBody{"no " + f.name, without, f.want}, badBody{"null " + f.name, with(f.member, name+":null"), f.want},
		)
	}
	return all
}

// invalid returns bodies with the fields of an order that must not be charged.
func invalid() []badBody {
	line := func(sku string) string { return `{"sku":"` + sku + `","quantity":1,"unitAmount":1}` }
	return []badBody{
		{
			"no fields",
			`{}`,
			`orderId "": ` + wantID + "; customerId: " + wantCustomer +
				`; currency "": ` + wantCurrency + "; lines 0: want 1 to 100 lines; payment.customer: " + wantReference +
				"; payment.method: " + wantReference,
		},
		{
			"a null line", with(goodLines, "[null]"),
			`lines[0].sku "": ` + wantSKU + "; lines[0].quantity: " + missing + "; lines[0].unitAmount: " + missing,
		},

		{"orderId with a blank", with("ORD12345", "ORD 1"), `orderId [withheld: length 5, with ' ']: ` + wantID},
		{"orderId with a slash", with("ORD12345", "ORD/1"), `orderId [withheld: length 5, with '/']: ` + wantID},
		{"orderId with a hash", with("ORD12345", "ORD#1"), `orderId [withheld: length 5, with '#']: ` + wantID},
		{"orderId that starts with a dot", with("ORD12345", ".ORD"), `orderId ".ORD": ` + wantID},
		{"orderId with an umlaut", with("ORD12345", "ÖRD"), `orderId [withheld: length 3, with '\u00d6']: ` + wantID},
		{"orderId with a line break", with("ORD12345", `ORD1\n`), `orderId [withheld: length 5, with '\n']: ` + wantID},
		{"orderId of 65 characters", with("ORD12345", strings.Repeat("a", 65)), `orderId [withheld: length 65]: ` + wantID},
		{
			"a card number for an orderId", with("ORD12345", "4242-4242-4242-4242"),
			`orderId [withheld: length 19, with 16 digits]: ` + wantID,
		},
		{
			"orderId of a kilobyte", with("ORD12345", strings.Repeat("a", 1024)),
			`orderId [withheld: length 1024]: ` + wantID,
		},
		{"customerId of 129 characters", with("CUST987", strings.Repeat("a", 129)), "customerId: " + wantCustomer},
		{
			"sku of 65 characters", with("TSHIRT-M", strings.Repeat("a", 65)),
			`lines[0].sku [withheld: length 65]: ` + wantSKU,
		},
		{
			"payment customer of 256 characters", with("cus_NffrFeUfNV2Hib", "cus_"+strings.Repeat("a", 252)),
			"payment.customer: " + wantReference,
		},
		{
			"payment method of 256 characters", with("pm_1MqLiJLkdIwHu7ix", "pm_"+strings.Repeat("a", 253)),
			"payment.method: " + wantReference,
		},
		{"customerId with a blank", with("CUST987", "Jane Doe"), "customerId: " + wantCustomer},
		{"unknown currency", with(`"usd"`, `"xyz"`), `currency "xyz": ` + wantCurrency},
		{"upper-case currency", with(`"usd"`, `"USD"`), `currency "USD": ` + wantCurrency},
		{"two currencies", with(`"usd"`, `"usd eur"`), `currency [withheld: length 7, with ' ']: ` + wantCurrency},
		{"a card number for a method", with("pm_1MqLiJLkdIwHu7ix", cardNumber), "payment.method: " + wantReference},
		{"a name for a customer", with("cus_NffrFeUfNV2Hib", "Jane Doe"), "payment.customer: " + wantReference},

		{"zero quantity", with(`"quantity":2`, `"quantity":0`), "lines[0].quantity 0: want 1 to 1000000"},
		{"negative quantity", with(`"quantity":2`, `"quantity":-2`), "lines[0].quantity -2: want 1 to 1000000"},
		{
			"quantity above the limit", with(`"quantity":2`, `"quantity":1000001`),
			"lines[0].quantity 1000001: want 1 to 1000000",
		},
		{
			"quantity of the largest integer", with(`"quantity":2`, `"quantity":9223372036854775807`),
			"lines[0].quantity [withheld: 19 digits]: want 1 to 1000000",
		},
		{"negative amount", with("1999", "-1"), "lines[0].unitAmount -1: want 0 to 999999999999"},
		{
			"amount above the limit", with("1999", "100000000"),
			"lines[0].unitAmount [withheld: 9 digits]: want 0 to 99999999 in usd",
		},
		{
			"amount above every limit", with("1999", "1000000000000"),
			"lines[0].unitAmount [withheld: 13 digits]: want 0 to 999999999999",
		},
		{
			"amount of the smallest integer", with("1999", "-9223372036854775808"),
			"lines[0].unitAmount [withheld: 19 digits]: want 0 to 999999999999",
		},
		{"an empty list of lines", with(goodLines, "[]"), "lines 0: want 1 to 100 lines"},
		{
			"101 lines", with(goodLines, "["+strings.Repeat(line("x")+",", 100)+line("x")+"]"),
			"lines 101: want 1 to 100 lines",
		},
		{
			"1001 lines", with(goodLines, "["+strings.Repeat(line("x")+",", 1000)+line("x")+"]"),
			"lines more than 1000: want 1 to 100 lines",
		},
		{
			"the second line is bad", with(goodLines, "["+line("x")+","+line("a b")+"]"),
			`lines[1].sku [withheld: length 3, with ' ']: ` + wantSKU,
		},
		{"total of zero", with("1999", "0"), "total 0: want 1 to 99999999 in usd"},
		{
			"total one too large", with(goodPrice, `"quantity":1000000,"unitAmount":100`),
			"total: want at most 99999999 in usd: the lines add up to more than one charge can hold",
		},
		{
			"the largest of all lines",
			with(goodPrice, `"quantity":1000000,"unitAmount":99999999`),
			"total: want at most 99999999 in usd: the lines add up to more than one charge can hold",
		},
		{"krónur that are not whole", with(`"usd"`, `"isk"`), "total 3998: want 1 to 99999999 in isk, a multiple of 100"},
		{"dinars with a third decimal", with(`"usd"`, `"kwd"`), "total 3998: want 1 to 99999999 in kwd, a multiple of 10"},

		{"invalid UTF-8", with("TSHIRT-M", "T\xffM"), `lines[0].sku [withheld: length 3, with '\ufffd']: ` + wantSKU},
		{"half a surrogate", with("TSHIRT-M", `T\ud800M`), `lines[0].sku [withheld: length 3, with '\ufffd']: ` + wantSKU},
		{"a zero byte", with("TSHIRT-M", `T\u0000M`), `lines[0].sku [withheld: length 3, with '\x00']: ` + wantSKU},
		{"a wrapped order without an id", fromEventBridge(with("ORD12345", "")), `orderId "": ` + wantID},
		{"a notified order without an id", fromSNS(with("ORD12345", "")), `orderId "": ` + wantID},
		{"a notified event without an id", fromSNS(fromEventBridge(with("ORD12345", ""))), `orderId "": ` + wantID},
	}
}

func TestDecodeRejects(t *testing.T) {
	t.Parallel()
	decoder := sqs.NewDecoder()
	for prefix, bodies := range map[string][]badBody{
		"message body: ": append(malformed(), malformedLayers()...), "invalid order: ": append(absent(), invalid()...),
	} {
		for _, bad := range bodies {
			t.Run(bad.name, func(t *testing.T) {
				t.Parallel()
				got, err := decoder.Decode(bad.body)
				if err == nil {
					t.Fatalf("got order %s, want an error", got.ID())
				}
				if diff := cmp.Diff(err.Error(), prefix+bad.want); diff != "" {
					t.Errorf("mismatch (-got +want):\n%s", diff)
				}
				if strings.Contains(err.Error(), cardNumber) {
					t.Error("the error contains a card number")
				}
			})
		}
	}
}

func TestDecodeAccepts(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat(`{"sku":"x","quantity":1,"unitAmount":1},`, 99)
	hundred := with(goodLines, "["+lines+`{"sku":"x","quantity":1,"unitAmount":0}]`)
	for _, tt := range []struct{ name, body, total string }{
		{"a plain order", good, "39.98 USD"},
		{"blanks around it", "\n\t " + good + "\r\n", "39.98 USD"},
		{"an order that EventBridge wrapped", fromEventBridge(good), "39.98 USD"},
		{"an order that SNS wrapped", fromSNS(good), "39.98 USD"},
		{"an event that SNS wrapped", fromSNS(fromEventBridge(good)), "39.98 USD"},
		{"an article with the name of a wrapper", with("TSHIRT-M", "Notification"), "39.98 USD"},
		{"yen, which have no decimals", with(`"usd"`, `"jpy"`), "3998 JPY"},
		{"whole krónur", strings.Replace(with(`"usd"`, `"isk"`), "1999", "1950", 1), "39.00 ISK"},
		{"dinars with two decimals", strings.Replace(with(`"usd"`, `"kwd"`), "1999", "1995", 1), "3.990 KWD"},
		{"a hundred lines, one of them free", hundred, "0.99 USD"},
		{"the largest quantity", with(goodPrice, `"quantity":1000000,"unitAmount":99`), "990000.00 USD"},
		{"the largest total", with(goodPrice, `"quantity":1,"unitAmount":99999999`), "999999.99 USD"},
		{
			"rupiah, which have twelve digits",
			strings.Replace(with(goodPrice, `"quantity":1,"unitAmount":999999999999`), "usd", "idr", 1),
			"9999999999.99 IDR",
		},
		{"the smallest total", with(goodPrice, `"quantity":1,"unitAmount":1`), "0.01 USD"},
		{"the longest id", with("ORD12345", strings.Repeat("a", 64)), "39.98 USD"},
		{"the longest customerId", with("CUST987", strings.Repeat("a", 128)), "39.98 USD"},
		{"the longest sku", with("TSHIRT-M", strings.Repeat("a", 64)), "39.98 USD"},
		{"the longest payment customer", with("cus_NffrFeUfNV2Hib", "cus_"+strings.Repeat("a", 251)), "39.98 USD"},
		{"the longest payment method", with("pm_1MqLiJLkdIwHu7ix", "pm_"+strings.Repeat("a", 252)), "39.98 USD"},
		{"an id with every kind of character", with("ORD12345", "0.A_z-9"), "39.98 USD"},
		{"a body of the largest size", good + strings.Repeat(" ", sqs.MaxBody-len(good)), "39.98 USD"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := sqs.NewDecoder().Decode(tt.body)
			if err != nil {
				t.Fatal(err)
			}
			if got.Total().String() != tt.total {
				t.Errorf("got total %s, want %s", got.Total(), tt.total)
			}
		})
	}
}

func TestDecodeReadsEveryFieldInEveryWrapper(t *testing.T) {
	t.Parallel()
	want, err := order.New(order.Draft{
		ID: "ORD12345", CustomerID: "CUST987", Currency: "usd",
		Lines:   []order.Line{{SKU: "TSHIRT-M", Quantity: 2, UnitAmount: 1999}},
		Payment: order.Payment{Customer: "cus_NffrFeUfNV2Hib", Method: "pm_1MqLiJLkdIwHu7ix"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{good, fromEventBridge(good), fromSNS(good), fromSNS(fromEventBridge(good))} {
		got, err := sqs.NewDecoder().Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, want, cmp.AllowUnexported(order.Order{})); diff != "" {
			t.Errorf("%.40s (-got +want):\n%s", body, diff)
		}
	}
}

// Of two names that encoding/json treats as one field, the second would overwrite the
// checked value.
func TestDecodeFoldsNamesAsEncodingJSONDoes(t *testing.T) {
	t.Parallel()
	decoder := sqs.NewDecoder()
	for r := range rune(unicode.MaxRune) {
		other := unicode.SimpleFold(r)
		if other == r {
			continue
		}
		body := fmt.Sprintf(`{"detail-type":"x","detail":%s,"%c":0,"%c":0}`, good, r, other)
		if _, err := decoder.Decode(body); err == nil {
			t.Errorf("%q and %q are not duplicates", r, other)
		}
	}
}

// The validator's tags and order.New have the same limits, and must return the same
// errors.
func TestDecodeAgreesWithTheDomain(t *testing.T) {
	t.Parallel()
	decoder := sqs.NewDecoder()
	rapid.Check(t, func(t *rapid.T) {
		d := drafts().Draw(t, "draft")
		want, wantErr := order.New(d)
		got, err := decoder.Decode(encode(d))
		if diff := cmp.Diff(problems(t, err), problems(t, wantErr)); diff != "" {
			t.Fatalf("mismatch (-got +want):\n%s", diff)
		}
		if got.Fingerprint() != want.Fingerprint() {
			t.Fatalf("got fingerprint %s, want %s", got.Fingerprint(), want.Fingerprint())
		}
	})
}

// problems returns those of an InvalidError, sorted by field, because the two sides find
// them in different order.
func problems(t *rapid.T, err error) []order.Problem {
	if err == nil {
		return nil
	}
	invalid, ok := err.(*order.InvalidError) //nolint:errorlint // the documented type
	if !ok {
		t.Fatalf("got error %T %v, want *order.InvalidError", err, err)
	}
	byField := func(a, b order.Problem) int { return strings.Compare(a.Field, b.Field) }
	return slices.SortedFunc(slices.Values(invalid.Problems), byField)
}

// drafts generates orders with valid and invalid fields.
func drafts() *rapid.Generator[order.Draft] {
	oneOf := func(usual string, others ...string) *rapid.Generator[string] {
		lengths := rapid.Map(
			rapid.SampledFrom([]int{63, 64, 65, 127, 128, 129, 254, 255, 256}),
			func(n int) string { return usual + strings.Repeat("x", n-len(usual)) },
		)
		return rapid.OneOf(rapid.Just(usual), rapid.SampledFrom(others), lengths, rapid.StringN(0, 100, 300))
	}
	numbers := rapid.OneOf(
		rapid.Int64Range(1, 100),
		rapid.SampledFrom([]int64{
			0, -1, order.MaxQuantity, order.MaxQuantity + 1, order.MaxUnitAmount, order.MaxUnitAmount + 1, 1 << 62,
		}),
		rapid.Int64(),
	)
	lines := rapid.Custom(func(t *rapid.T) order.Line {
		return order.Line{
			SKU:        oneOf("TSHIRT-M", "", "a b").Draw(t, "sku"),
			Quantity:   numbers.Draw(t, "quantity"),
			UnitAmount: numbers.Draw(t, "unitAmount"),
		}
	})
	return rapid.Custom(func(t *rapid.T) order.Draft {
		d := order.Draft{
			ID:         oneOf("ORD12345", "", "-x", strings.Repeat("x", 65)).Draw(t, "orderId"),
			CustomerID: oneOf("CUST987", "", strings.Repeat("x", 129)).Draw(t, "customerId"),
			Currency:   oneOf("usd", "idr", "jpy", "isk", "kwd", "USD", "xyz").Draw(t, "currency"),
			Lines:      rapid.SliceOfN(lines, 0, 3).Draw(t, "lines"),
			Payment: order.Payment{
				Customer: oneOf("cus_NffrFeUfNV2Hib", "", "Jane Doe").Draw(t, "customer"),
				Method:   oneOf("pm_1MqLiJLkdIwHu7ix", cardNumber, "pm_").Draw(t, "method"),
			},
		}
		if n := rapid.SampledFrom([]int{0, 0, 0, 100, 101}).Draw(t, "many lines"); n > 0 {
			d.Lines = slices.Repeat([]order.Line{{SKU: "x", Quantity: 1, UnitAmount: 1}}, n)
		}
		return d
	})
}

// encode returns a draft as a producer sends it.
func encode(d order.Draft) string {
	lines := make([]map[string]any, len(d.Lines))
	for i, l := range d.Lines {
		lines[i] = map[string]any{"sku": l.SKU, "quantity": l.Quantity, "unitAmount": l.UnitAmount}
	}
	body, err := json.Marshal(map[string]any{
		"orderId": d.ID, "customerId": d.CustomerID, "currency": d.Currency, "lines": lines,
		"payment": map[string]any{"customer": d.Payment.Customer, "method": d.Payment.Method},
	})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// Producers can send bodies of many small keys or brackets, so the cost of a body must be
// linear in its size.
//
//nolint:paralleltest // AllocsPerRun counts all goroutines
func TestTheCostOfDecodeIsLinear(t *testing.T) {
	decoder := sqs.NewDecoder()
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"%d":0,`, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	for name, body := range map[string]func(n int) string{
		"unknown keys of an order":   func(n int) string { return `{` + keys(n) + `}` },
		"unknown keys of a wrapper":  func(n int) string { return `{"detail-type":"x",` + keys(n) + `,"detail":` + good + `}` },
		"brackets":                   func(n int) string { return strings.Repeat("[", 8*n) },
		"lists side by side":         func(n int) string { return with(goodLines, `[`+strings.Repeat("[],", 2*n)+`[]]`) },
		"lines":                      func(n int) string { return with(goodLines, `[`+strings.Repeat("{},", 2*n)+`{}]`) },
		"escapes in one long string": func(n int) string { return with("TSHIRT-M", strings.Repeat(`\u0000`, n)) },
	} {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) float64 {
				body := body(n)
				return testing.AllocsPerRun(2, func() { _, _ = decoder.Decode(body) })
			}
			if small, large := cost(3_000), cost(27_000); large > 9*small+200 {
				t.Errorf("%.0f allocations for nine times a body that takes %.0f", large, small)
			}
		})
	}
}
