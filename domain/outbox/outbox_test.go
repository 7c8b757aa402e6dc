package outbox_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/outbox"
)

func TestPublisherSplitsCalls(t *testing.T) {
	of := func(id order.ID, seq int) outbox.Event {
		return outbox.Event{OrderID: id, Event: order.Event{Seq: seq, From: order.Open, To: order.Pending}}
	}
	for claim, tt := range map[string]struct {
		events []outbox.Event
		want   []int // number of events in each call
	}{
		"no events are no call":                       {nil, nil},
		"ten events are one call":                     {ordertest.OutboxEvents(10)[:10], []int{10}},
		"the eleventh event is another call":          {ordertest.OutboxEvents(11)[:11], []int{10, 1}},
		"no call has two events of one order":         {[]outbox.Event{of("A", 1), of("B", 1), of("A", 2)}, []int{2, 1}},
		"an order's events in a row are a call each":  {[]outbox.Event{of("A", 1), of("A", 2), of("A", 3)}, []int{1, 1, 1}},
		"a repeated event of an order splits as well": {[]outbox.Event{of("A", 1), of("A", 1)}, []int{1, 1}},
	} {
		t.Run(claim, func(t *testing.T) {
			var bus ordertest.Bus
			done, err := outbox.Publisher{Bus: &bus}.Publish(t.Context(), tt.events)
			if done != len(tt.events) || err != nil {
				t.Errorf("got %d, %v, want %d events and no error", done, err, len(tt.events))
			}
			if diff := cmp.Diff(bus.Calls(), tt.want); diff != "" {
				t.Errorf("calls (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(bus.Accepted(), tt.events); diff != "" {
				t.Errorf("accepted (-got +want):\n%s", diff)
			}
		})
	}
}

func TestPublisherStopsAtTheFirstFailure(t *testing.T) {
	events := ordertest.OutboxEvents(20)[:20]
	var bus ordertest.Bus
	bus.Refuse(events[7].OrderID)
	bus.Refuse(events[4].OrderID)
	done, err := outbox.Publisher{Bus: &bus}.Publish(t.Context(), events)
	if done != 4 || !errors.Is(err, outbox.ErrRefused) {
		t.Errorf("got %d, %v, want the 4 events before the first refused one", done, err)
	}
	if err == nil || !strings.Contains(err.Error(), "publish event 1 of order ORD-5: ") {
		t.Errorf("got error %v, want the refused event", err)
	}
	if diff := cmp.Diff(bus.Calls(), []int{10}); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}

	bus.Fail()
	done, err = outbox.Publisher{Bus: &bus}.Publish(t.Context(), events)
	if done != 0 || err == nil || errors.Is(err, outbox.ErrRefused) {
		t.Errorf("got %d, %v, want none and the error of the call", done, err)
	}
}
