package ordertest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/outbox"
)

// BusUnderTest is a port and controls of the bus behind it. A bus starts empty.
type BusUnderTest struct {
	Bus      outbox.Bus
	Accepted func() []outbox.Event // in the order of their acceptance
	Refuse   func(order.ID)        // the next event of this order
	Fail     func()                // the next call, without an effect
}

// TestBus tests the contract of outbox.Bus.
//
//nolint:tparallel // the caller calls t.Parallel
func TestBus(t *testing.T, open func(t *testing.T) BusUnderTest) {
	t.Helper()
	for _, p := range busPromises() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.test(busTest{t, open(t)})
		})
	}
}

// busPromise is one sentence of the contract and its test.
type busPromise struct {
	name string
	test func(busTest)
}

type busTest struct {
	testing.TB

	under BusUnderTest
}

func busPromises() []busPromise {
	return []busPromise{
		{"the bus accepts events in order, with every field", busTest.accepts},
		{"a refused event is reported by its index, and the others are accepted", busTest.refuses},
		{"a refused event is accepted when it is sent again", busTest.acceptsLater},
		{"a failed call is an error, and no event was refused", busTest.fails},
		{"an ended context is an error", busTest.ended},
		{"more events than MaxPut are an error, and none is accepted", busTest.tooMany},
	}
}

// OutboxEvents returns the events of n orders: each order waits for the customer, is
// declined and then paid. They are in the order of their times: every order's first
// event, then every order's second.
func OutboxEvents(n int) (all []outbox.Event) {
	steps := []order.Event{
		{Seq: 1, From: order.Open, To: order.ActionRequired, Failure: "authentication_required"},
		{Seq: 2, From: order.ActionRequired, To: order.Declined, Failure: "insufficient_funds"},
		{Seq: 3, From: order.Declined, To: order.Paid},
	}
	for _, e := range steps {
		for i := range n {
			e.Intent, e.At = intentID(i+1), at(time.Duration(e.Seq)*time.Hour+time.Duration(i)*time.Millisecond)
			all = append(all, outbox.Event{
				OrderID: order.ID(fmt.Sprintf("ORD-%d", i+1)), Total: order.Money{Amount: 3998, Currency: "usd"},
				Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Event: e,
			})
		}
	}
	return all
}

// put sends events and compares the indexes of the refused ones.
func (x busTest) put(events []outbox.Event, want ...int) {
	x.Helper()
	failed, err := x.under.Bus.Put(x.Context(), events)
	if !slices.Equal(failed, want) {
		x.Errorf("got the refused indexes %v, want %v", failed, want)
	}
	if (err != nil) != (len(want) > 0) || err != nil && !errors.Is(err, outbox.ErrRefused) {
		x.Errorf("got the error %v, want %v only for refused events", err, outbox.ErrRefused)
	}
}

func (x busTest) wantAccepted(want ...outbox.Event) {
	x.Helper()
	if got := x.under.Accepted(); !slices.EqualFunc(got, want, func(a, b outbox.Event) bool {
		return reflect.DeepEqual(a, b)
	}) {
		x.Errorf("accepted: got %+v\nwant %+v", got, want)
	}
}

func (x busTest) accepts() {
	all := OutboxEvents(10)
	all[0].Trace, all[0].Event.Failure, all[0].Event.Intent = "", "", ""
	for call := range slices.Chunk(all, 10) {
		x.put(call)
	}
	x.put(all[:1])
	x.wantAccepted(append(slices.Clone(all), all[0])...)
}

func (x busTest) refuses() {
	all := OutboxEvents(4)[:4]
	x.under.Refuse(all[1].OrderID)
	x.under.Refuse(all[3].OrderID)
	x.put(all, 1, 3)
	x.wantAccepted(all[0], all[2])
}

func (x busTest) acceptsLater() {
	all := OutboxEvents(1)[:1]
	x.under.Refuse(all[0].OrderID)
	x.put(all, 0)
	x.put(all)
	x.wantAccepted(all...)
}

func (x busTest) fails() {
	x.under.Fail()
	x.wantError(x.Context(), OutboxEvents(3)[:3])
}

func (x busTest) ended() {
	ctx, cancel := context.WithCancel(x.Context())
	cancel()
	x.wantError(ctx, OutboxEvents(3)[:3])
}

func (x busTest) tooMany() { x.wantError(x.Context(), OutboxEvents(11)[:11]) }

// wantError requires an error that is not about single events, and that nothing was
// accepted.
func (x busTest) wantError(ctx context.Context, events []outbox.Event) {
	x.Helper()
	failed, err := x.under.Bus.Put(ctx, events)
	if len(failed) > 0 || err == nil || errors.Is(err, outbox.ErrRefused) {
		x.Errorf("got %v, %v, want an error of the call", failed, err)
	}
	x.wantAccepted()
}
