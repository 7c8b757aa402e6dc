package schema_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/eventbridge"
	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/domain/order"
	"orderonce/domain/outbox"
	"orderonce/domain/refund"
)

func eventSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiled, err := compiler.Compile("../../../docs/reference/events/order-event.json")
	must(t, err)
	return compiled
}

// published returns the events of every transition, of disputes and of refunds, as a
// rule's target receives them: first with, then without the optional fields.
func published(t *testing.T) (all []json.RawMessage) {
	t.Helper()
	server, err := eventbridgetest.Serve(eventbridgetest.Options{Bus: "orders"})
	must(t, err)
	t.Cleanup(func() { _ = server.Close() })
	bus := eventbridge.New(dynamodbtest.Config(server.URL, func(string) string { return "" }), "orders", "prod-eu")
	for _, e := range outboxEvents() {
		e.Event.Seq, e.Event.At = 1, time.UnixMilli(1_790_000_000_000)
		e.OrderID, e.Total = "ORD-1.a_b", order.Money{Amount: 0, Currency: "jpy"}
		_, err := bus.Put(t.Context(), []outbox.Event{e})
		must(t, err)
	}
	for _, e := range server.Archive() {
		all = append(all, e.Delivered())
	}
	return all
}

// outboxEvents returns an event of each transition, with and without the optional
// fields, of each status of a dispute and of a refund, and of a refund by others.
func outboxEvents() (all []outbox.Event) {
	for _, from := range order.Statuses() {
		for _, to := range from.Next() {
			all = append(all, outbox.Event{Event: order.Event{From: from, To: to}}, outbox.Event{
				Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
				Event: order.Event{From: from, To: to, Intent: "pi_1", Failure: "insufficient_funds"},
			})
		}
	}
	for _, status := range []order.DisputeStatus{order.DisputeOpen, order.DisputeWon, order.DisputeLost} {
		dispute := order.Dispute{ID: "du_1", Status: status}
		all = append(all, outbox.Event{Event: order.Event{From: order.Paid, To: order.Paid, Dispute: dispute}})
	}
	refunds := []order.RefundEvent{{Status: order.RefundedOutside, Amount: -1000}}
	for _, s := range refund.Open.Next() {
		refunds = append(refunds, order.RefundEvent{ID: "R1", Status: string(s), Amount: 1000})
	}
	for _, r := range refunds {
		all = append(all, outbox.Event{
			Event: order.Event{From: order.Paid, To: order.PartiallyRefunded, Intent: "pi_1", Refund: r},
		})
	}
	return all
}

func TestEveryEventIsValid(t *testing.T) {
	s := eventSchema(t)
	types := map[string]bool{}
	for _, event := range published(t) {
		if err := s.Validate(unmarshal(t, string(event))); err != nil {
			t.Errorf("%s\n%v", event, err)
		}
		var e struct {
			DetailType string `json:"detail-type"`
			Detail     map[string]any
		}
		must(t, json.Unmarshal(event, &e))
		types[e.DetailType] = true
		for field := range e.Detail {
			if s.Properties["detail"].Properties[field] == nil {
				t.Errorf("the schema has no field %q", field)
			}
		}
	}
	for _, kind := range s.OneOf {
		if name := (*kind.Properties["detail-type"].Const).(string); !types[name] {
			t.Errorf("no event has the detail-type %q of the schema", name)
		}
	}
}

func TestTheSchemaRejectsOtherEvents(t *testing.T) {
	s := eventSchema(t)
	events := published(t)
	i := slices.IndexFunc(events, func(e json.RawMessage) bool {
		return bytes.Contains(e, []byte("Order Declined")) && bytes.Contains(e, []byte("traceparent"))
	})
	valid := string(events[i])
	for claim, change := range map[string][2]string{
		"another version":          {`"detail":{"version":1`, `"detail":{"version":2`},
		"no order id":              {`"orderId":"ORD-1.a_b",`, ``},
		"an order id with a blank": {`ORD-1.a_b`, `ORD 1`},
		"no seq":                   {`"seq":1,`, ``},
		"a seq of 0":               {`"seq":1,`, `"seq":0,`},
		"an unknown status":        {`"from":"open"`, `"from":"opened"`},
		"another detail-type":      {`Order Declined`, `Order Paid`},
		"an unknown detail-type":   {`Order Declined`, `order declined`},
		"an amount in decimals":    {`"amount":0`, `"amount":0.5`},
		"an upper-case currency":   {`"jpy"`, `"JPY"`},
		"a time without millis":    {`20.000Z"`, `20Z"`},
		"another source":           {`orderonce.prod-eu`, `orders`},
		"a broken traceparent":     {`"00-0af`, `"0af`},
	} {
		changed := strings.Replace(valid, change[0], change[1], 1)
		if changed == valid {
			t.Fatalf("%s: %s does not have %s", claim, valid, change[0])
		}
		if err := s.Validate(unmarshal(t, changed)); err == nil {
			t.Errorf("%s: got no error for %s", claim, changed)
		}
	}
}
