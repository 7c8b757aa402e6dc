package system_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestPublish runs the order function and the publish function over one table.
func TestPublish(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	publish := w.Build(t, "functions/publish")
	start := func(t *testing.T, refuse func(eventbridgetest.Event) string) *running {
		t.Helper()
		return w.start(t, generous(system.Options{Publish: publish, RefuseEvent: refuse}))
	}
	t.Run("every transition is published once, in order for each order", func(t *testing.T) {
		t.Parallel()
		s := start(t, nil)
		const want = 80 // of 40 orders
		if events, got := s.fates(t), len(s.Bus.Archive()); events != want || got != want {
			t.Errorf("got %d event items and %d events, want each of %d once", events, got, want)
		}
	})
	t.Run("refused events and throttled calls are repeated, in order for each order", func(t *testing.T) {
		t.Parallel()
		seen := map[string]bool{}
		s := start(t, func(e eventbridgetest.Event) string { // every third event, once
			first := !seen[string(e.Detail)]
			seen[string(e.Detail)] = true
			if first && len(seen)%3 == 0 {
				return eventbridgetest.CodeInternal
			}
			return ""
		})
		s.Bus.Fail(eventbridgetest.CodeThrottling, 7)
		s.Bus.Lose(2)
		s.fates(t)
		if log := s.log.Text(); !strings.Contains(log, `"reason":"refused"`) || !strings.Contains(log, `"reason":"unavailable"`) {
			t.Errorf("got the log %s\nwant refused and unavailable events", log)
		}
	})
	t.Run("killed in the middle of a batch, it publishes the rest and repeats what it had", func(t *testing.T) {
		t.Parallel()
		var s *running
		var events, kills atomic.Int64
		s = start(t, func(eventbridgetest.Event) string {
			if events.Add(1)%10 == 5 && kills.Add(1) <= 3 {
				s.Publish.Kill(nil)
			}
			return ""
		})
		want := s.fates(t)
		if got := len(s.Bus.Archive()); kills.Load() < 3 || got <= want {
			t.Errorf("got %d events and %d kills, want more than %d events, because a kill repeats some", got, kills.Load(), want)
		}
	})
	t.Run("an unreadable event item does not block its shard", func(t *testing.T) {
		t.Parallel()
		s := start(t, nil)
		client := sdk.NewFromConfig(dynamodbtest.Config(s.Engine.Endpoint, func(string) string { return "" }))
		item := system.Item{
			"orderId": &types.AttributeValueMemberS{Value: "edited"}, "sk": &types.AttributeValueMemberS{Value: "event#000001"},
		}
		if _, err := client.PutItem(t.Context(), &sdk.PutItemInput{TableName: &s.Options.Table, Item: item}); err != nil {
			t.Fatal(err)
		}
		must(t, s.Published(t.Context()))
		if _, err := client.DeleteItem(t.Context(), &sdk.DeleteItemInput{TableName: &s.Options.Table, Key: item}); err != nil {
			t.Fatal(err)
		}
		s.fates(t)
		const want = `"message":"unreadable event item skipped","order_id":"edited","sort_key":"event#000001"`
		if got := strings.Count(s.log.Text(), want); got != 1 {
			t.Errorf("got the line %d times, want once:\n%s", got, s.log.Text())
		}
	})
}

// fates processes orders that end in different ways, compares the events on the bus with
// the table's, and returns the number of event items.
func (o *running) fates(t *testing.T) (events int) {
	t.Helper()
	var bodies []string
	for i, method := range []string{
		"pm_card_visa", "pm_card_chargeDeclined", "pm_card_authenticationRequired", "pm_usBankAccount_processing", "pm_card_unknown",
	} {
		for n := range 8 {
			bodies = append(bodies, bodyWith(fmt.Sprintf("order-%d-%d", i, n), method))
		}
	}
	o.post(bodies...)
	o.settle()
	for r, err := range o.Orders(t.Context()) {
		must(t, err)
		switch r.Status {
		case order.Pending, order.ActionRequired:
			paid := order.Outcome{Status: order.Paid, Intent: r.Intent}
			must(t, o.Store.Settle(t.Context(), r.Record, paid, time.Now()))
		case order.Paid:
			dispute := order.Dispute{ID: "du_1", Status: order.DisputeOpen, CreatedAt: time.Now()}
			must(t, o.Store.RecordDispute(t.Context(), r.Record, dispute, time.Now()))
		case order.Open, order.Declined, order.Canceled, order.Refused, order.PartiallyRefunded, order.Refunded,
			order.OutOfStock:
		}
	}
	_, err := o.Redrive() // refused orders are opened and refused again
	must(t, err)
	o.drain()
	return o.comparePublished(t)
}

// comparePublished waits for the bus, and compares its events with the table's.
func (o *running) comparePublished(t *testing.T) (events int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := o.Published(ctx); err != nil {
		t.Fatalf("%v\n%s", err, o.log.Text())
	}
	published := map[order.ID][]string{} // of each order, in order of the first acceptance
	for _, e := range o.Bus.Archive() {
		var d struct {
			OrderID      order.ID
			Seq          int
			From, Status order.Status
		}
		must(t, json.Unmarshal(e.Detail, &d))
		if strings.Contains(string(e.Detail), "CUST") || strings.Contains(string(e.Detail), "cus_") {
			t.Errorf("an event has the customer: %s", e.Detail)
		}
		switch known := len(published[d.OrderID]); {
		case d.Seq > known+1:
			t.Errorf("order %s: event %d arrived before event %d", d.OrderID, d.Seq, known+1)
		case d.Seq == known+1:
			published[d.OrderID] = append(published[d.OrderID], fmt.Sprintf("%s: %s -> %s", e.DetailType, d.From, d.Status))
		}
	}
	names := map[string]string{
		"order.paid": "Order Paid", "order.declined": "Order Declined", "order.action_required": "Order Action Required",
		"order.pending": "Order Pending", "order.refused": "Order Refused", "order.open": "Order Reopened",
		"order.disputed": "Order Disputed",
	}
	for r, err := range o.Orders(ctx) {
		must(t, err)
		var want []string
		for _, e := range r.Events {
			want = append(want, fmt.Sprintf("%s: %s -> %s", names[e.Type()], e.From, e.To))
		}
		if got := published[r.OrderID]; strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("order %s: got the events %q, want %q", r.OrderID, got, want)
		}
		events += len(want)
	}
	return events
}
