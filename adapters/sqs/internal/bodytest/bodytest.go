// Package bodytest has bodies of messages for tests.
package bodytest

import (
	"encoding/json"
	"strings"
)

// Order is the order of docs/reference/message.md, as one line.
const Order = `{"orderId":"ORD12345","customerId":"CUST987","currency":"usd",` +
	`"lines":[{"sku":"TSHIRT-M","quantity":2,"unitAmount":1999}],` +
	`"payment":{"customer":"cus_NffrFeUfNV2Hib","method":"pm_1MqLiJLkdIwHu7ix"}}`

// Refund is the refund of docs/reference/message.md, as one line.
const Refund = `{"type":"refund","orderId":"ORD12345","refundId":"R-1","amount":1999,` +
	`"reason":"requested_by_customer"}`

// CardNumber is Stripe's test card.
const CardNumber = "4242424242424242"

// OrderWith returns Order after one replacement.
func OrderWith(old, replacement string) string { return replace(Order, old, replacement) }

// RefundWith returns Refund after one replacement.
func RefundWith(old, replacement string) string { return replace(Refund, old, replacement) }

func replace(body, old, replacement string) string {
	if strings.Count(body, old) != 1 {
		panic("not once in the body: " + old)
	}
	return strings.Replace(body, old, replacement, 1)
}

// FromEventBridge returns an event with a detail, as a rule sends it to a queue.
func FromEventBridge(detail string) string {
	return `{"version":"0","id":"7bf73129-1428-4cd3-a780-95db273d1602",` +
		`"detail-type":"order placed","source":"shop","account":"000000000000",` +
		`"time":"2026-01-02T03:04:05Z","region":"us-east-1","resources":[],"detail":` + detail + `}`
}

// FromSNS returns a notification with a message, as a topic sends it to a queue.
func FromSNS(message string) string {
	text, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	return `{"Type":"Notification","MessageId":"22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",` +
		`"TopicArn":"arn:aws:sns:us-east-1:000000000000:t",` +
		`"Message":` + string(text) + `,"Timestamp":"2026-01-02T03:04:05.000Z","SignatureVersion":"1"}`
}
