// Package outbox sends the events of orders to an event bus, at least once and in order
// for each order. It does not know how a store keeps them.
package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"orderonce/domain/order"
)

// MaxPut is the largest number of events in one call of Bus.Put.
const MaxPut = 10

// Event is an event of an order as the store's outbox holds it: with what a consumer
// needs of its order.
type Event struct {
	OrderID order.ID
	Total   order.Money
	Trace   order.Trace
	Event   order.Event
	// NewerType is the type of an event that a newer release recorded and that this
	// release does not know, or "". More are its texts and numbers of that kind, by name.
	NewerType string
	More      map[string]any
}

// Type returns what the event is called in the outbox.
func (e Event) Type() string { return cmp.Or(e.NewerType, e.Event.Type()) }

// ErrRefused reports events that the bus answered for and did not accept.
var ErrRefused = errors.New("event refused by the bus")

// Bus is the event bus. ordertest.TestBus tests this contract.
type Bus interface {
	// Put sends one to MaxPut events. It returns the indexes of those that the bus
	// refused, in ascending order, with an error that wraps ErrRefused and the cause;
	// it accepted the others. After any other error, it may have accepted any of them.
	Put(ctx context.Context, events []Event) (failed []int, err error)
}

// Publisher sends the outbox to a bus, at least once and in order for each order: no
// event is sent before the bus has accepted every earlier event of its order. A consumer
// discards repetitions by order id and Seq.
type Publisher struct{ Bus Bus }

// Publish sends events in the order of the outbox, up to the first call with a failure.
// It returns how many from the start the bus has certainly accepted. The caller sends the
// rest again, which repeats at most MaxPut events that the bus has accepted.
//
// A call has no two events of one order: otherwise the bus could refuse the first and
// accept the second.
func (p Publisher) Publish(ctx context.Context, events []Event) (done int, err error) {
	for done < len(events) {
		call := events[done : done+callSize(events[done:])]
		failed, err := p.Bus.Put(ctx, call)
		if len(failed) > 0 {
			done += slices.Min(failed)
		}
		if len(failed) > 0 || err != nil {
			e := events[done]
			return done, fmt.Errorf("publish event %d of order %s: %w", e.Event.Seq, e.OrderID, err)
		}
		done += len(call)
	}
	return done, nil
}

// callSize returns how many events from the start fit into one call.
func callSize(events []Event) int {
	for n, e := range events {
		sameOrder := func(earlier Event) bool { return earlier.OrderID == e.OrderID }
		if n == MaxPut || slices.ContainsFunc(events[:n], sameOrder) {
			return n
		}
	}
	return len(events)
}
