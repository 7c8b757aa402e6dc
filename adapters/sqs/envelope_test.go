package sqs_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/internal/bodytest"
)

func TestUnwrap(t *testing.T) {
	const message = `{"orderId":"a","sku":"Notification"}`
	event := bodytest.FromEventBridge(message)
	beside := func(layer, field string) string { return strings.Replace(layer, `{`, `{`+field+`,`, 1) }
	for name, tt := range map[string][2]string{ // without a second text the body stays as it is
		"a message": {message},
		"not JSON":  {"hello"},
		"a message with a field like a wrapper's":  {`{"orderId":"a","type":"order","sku":"detail-type"}`},
		"a message with the fields of an event":    {`{"orderId":"a","detail-type":"x","detail":{}}`},
		"an event with a field of a message":       {beside(event, `"currency":"eur"`)},
		"a notification with a field of a message": {beside(bodytest.FromSNS(message), `"currency":"eur"`)},
		"a notification that is an event":          {beside(bodytest.FromSNS(message), `"detail-type":"x","detail":{}`)},
		"an event with a message":                  {beside(event, `"Message":"x"`)},
		"an event without a detail":                {`{"detail-type":"x"}`},
		"a detail without a type":                  {`{"kind":"detail-type","detail":{}}`},
		"a notification without a message":         {`{"Type":"Notification"}`},
		"a notification of an object":              {`{"Type":"Notification","Message":{}}`},
		"a notification whose message is null":     {`{"Type":"Notification","Message":null}`},
		"another message of a topic":               {`{"Type":"UnsubscribeConfirmation","Subject":"Notification","Message":"x"}`},

		"an event":                         {event, message},
		"a notification":                   {bodytest.FromSNS(message), message},
		"an event in a notification":       {bodytest.FromSNS(event), message},
		"an event of a text":               {bodytest.FromEventBridge(`"x"`), `"x"`},
		"a notification of a text":         {bodytest.FromSNS("hello"), "hello"},
		"an event in an event":             {bodytest.FromEventBridge(event), event},
		"a notification in an event":       {bodytest.FromEventBridge(bodytest.FromSNS(message)), bodytest.FromSNS(message)},
		"a notification in a notification": {bodytest.FromSNS(bodytest.FromSNS(message)), bodytest.FromSNS(message)},
		"an event with a field of a message in a notification": {
			bodytest.FromSNS(beside(event, `"currency":"eur"`)), beside(event, `"currency":"eur"`),
		},
	} {
		want := cmp.Or(tt[1], tt[0])
		got := []byte(tt[0])
		if err := sqs.Unwrap(&got); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, want)
		}
	}
}

func TestUnwrapRejects(t *testing.T) {
	event := bodytest.FromEventBridge(`{}`)
	trailing := func(body string) string {
		return fmt.Sprintf("trailing data after the JSON object at byte %d", len(body))
	}
	nested := strings.Repeat("[", 17) + strings.Repeat("]", 17)
	for name, bad := range map[string][2]string{
		"a field twice":                     {strings.Replace(event, `{`, `{"detail":{},`, 1), `duplicate field "detail"`},
		"a field twice, in other case":      {strings.Replace(event, `{`, `{"Detail":{},`, 1), `unknown field "Detail": want "detail"`},
		"a field twice in the detail":       {bodytest.FromEventBridge(`{"a":{"b":1,"b":2}}`), `duplicate field "detail.a.b"`},
		"a field twice in a notified event": {bodytest.FromSNS(strings.Replace(event, `{`, `{"id":0,`, 1)), `duplicate field "id"`},
		"a notification's message in other case": {
			strings.Replace(bodytest.FromSNS("{}"), `{`, `{"message":"",`, 1), `unknown field "message": want "Message"`,
		},
		"trailing data":                        {event + "x", trailing(event)},
		"trailing data after a notified event": {bodytest.FromSNS(event + "x"), trailing(event)},
		"too deep":                             {bodytest.FromEventBridge(nested), "nested deeper than 16 levels"},
		"too large": {
			event + strings.Repeat(" ", sqs.MaxBody),
			fmt.Sprintf("too large: %d bytes, want at most 262144", sqs.MaxBody+len(event)),
		},
	} {
		got := []byte(bad[0])
		if err := sqs.Unwrap(&got); err == nil || err.Error() != "message body: "+bad[1] {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, bad[1])
		}
	}
}
