package ordertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"orderonce/domain/order"
	"orderonce/domain/outbox"
)

var _ outbox.Bus = (*Bus)(nil)

// Bus is an event bus in a slice, and the specification of one. The zero Bus is empty and
// ready.
type Bus struct {
	mu       sync.Mutex
	accepted []outbox.Event
	calls    []int // number of events in each
	refuse   map[order.ID]int
	failures int
}

var (
	errBusCall = errors.New("the bus did not answer")
	errPutSize = fmt.Errorf("want 1 to %d events", outbox.MaxPut)
)

// Put accepts the events that no one asked to refuse.
func (b *Bus) Put(ctx context.Context, events []outbox.Event) (failed []int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, len(events))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case len(events) < 1 || len(events) > outbox.MaxPut:
		return nil, errPutSize
	case b.failures > 0:
		b.failures--
		return nil, errBusCall
	}
	for i, e := range events {
		if b.refuse[e.OrderID] == 0 {
			b.accepted = append(b.accepted, e)
			continue
		}
		b.refuse[e.OrderID]--
		failed = append(failed, i)
		err = fmt.Errorf("%w: on demand", outbox.ErrRefused)
	}
	return failed, err
}

// Refuse makes the bus refuse the next event of an order. It adds up.
func (b *Bus) Refuse(id order.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse == nil {
		b.refuse = map[order.ID]int{}
	}
	b.refuse[id]++
}

// Fail makes the next call fail without an effect. It adds up.
func (b *Bus) Fail() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
}

// Accepted returns the accepted events in order.
func (b *Bus) Accepted() []outbox.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.accepted)
}

// Calls returns the number of events in each call.
func (b *Bus) Calls() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}
