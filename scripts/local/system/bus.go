package system

import (
	"context"
	"encoding/json"
	"fmt"

	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/domain/order"
)

// BusEvent is an event on the bus, as docs/reference/events.md describes it, as far as
// Audit reads it.
type BusEvent struct {
	DetailType string       `json:"-"`
	OrderID    order.ID     `json:"orderId"`
	Seq        int          `json:"seq"`
	From       order.Status `json:"from"`
	Status     order.Status `json:"status"`
}

// ParseBusEvent reads the detail of an event on the bus.
func ParseBusEvent(e eventbridgetest.Event) (BusEvent, error) {
	parsed := BusEvent{DetailType: e.DetailType}
	if err := json.Unmarshal(e.Detail, &parsed); err != nil {
		return BusEvent{}, fmt.Errorf("event %s on the bus: %w", e.ID, err)
	}
	return parsed, nil
}

// collectBus waits until every event is published, and reads the events on the bus in the
// order of their acceptance.
func (b *Books) collectBus(ctx context.Context, s *System) error {
	if s.Bus == nil {
		return nil
	}
	if err := s.Published(ctx); err != nil {
		return fmt.Errorf("publish every event: %w", err)
	}
	b.Publishes = true
	for _, e := range s.Bus.Archive() {
		parsed, err := ParseBusEvent(e)
		if err != nil {
			return err
		}
		b.Bus = append(b.Bus, parsed)
	}
	return nil
}

// Published returns how many events of each order are on the bus, in order and without
// the repetitions.
func (b *Books) Published() map[order.ID]int {
	published := map[order.ID]int{}
	for _, e := range b.Bus {
		if e.Seq == published[e.OrderID]+1 {
			published[e.OrderID]++
		}
	}
	return published
}

// wronglyPublished returns the events that are not on the bus, arrived there before an
// earlier one of their order, or differ from the table's.
func (b *Books) wronglyPublished() (broken findings) {
	published := map[order.ID]int{}
	for _, e := range b.Bus {
		rows := b.Records[e.OrderID].Events
		switch known := published[e.OrderID]; {
		case e.Seq > known+1:
			broken.add("published out of order: order %s: event %d before event %d", e.OrderID, e.Seq, known+1)
		case e.Seq < 1 || e.Seq > len(rows),
			e.From != rows[e.Seq-1].From || e.Status != rows[e.Seq-1].To:
			broken.add("event mismatch: order %s: event %d on the bus is %s -> %s", e.OrderID, e.Seq, e.From, e.Status)
		case e.Seq == known+1:
			published[e.OrderID]++
		}
	}
	for id, r := range b.Records {
		if n := published[id]; n < len(r.Events) {
			broken.add("not published: order %s has %d events, %d are on the bus", id, len(r.Events), n)
		}
	}
	return broken.sorted()
}
