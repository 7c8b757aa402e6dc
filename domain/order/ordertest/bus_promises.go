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
func TestBus(t *testing.T, open func(t *testing.T) BusUnderTest) {
	t.Helper()
	all := OutboxEvents(10)
	all[0].Trace, all[0].Event.Failure, all[0].Event.Intent = "", "", ""
	ended, end := context.WithCancel(t.Context())
	end()
	none := func(BusUnderTest) {}
	for name, p := range map[string]busPromise{
		"the bus accepts events in order, with every field": {
			none, t.Context(),
			[][]outbox.Event{all[:10], all[10:20], all[20:], all[:1]},
			nil, false,
			append(slices.Clone(all), all[0]),
		},
		"a refused event is reported by its index, and the others are accepted": {
			func(b BusUnderTest) { b.Refuse(all[1].OrderID); b.Refuse(all[3].OrderID) },
			t.Context(),
			[][]outbox.Event{all[:4]},
			[]int{1, 3},
			false,
			[]outbox.Event{all[0], all[2]},
		},
		"a refused event is accepted when it is sent again": {
			func(b BusUnderTest) { b.Refuse(all[0].OrderID) },
			t.Context(),
			[][]outbox.Event{all[:1], all[:1]},
			[]int{0},
			false, all[:1],
		},
		"a failed call is an error, and no event was refused": {
			func(b BusUnderTest) { b.Fail() }, t.Context(), [][]outbox.Event{all[:3]}, nil, true, nil,
		},
		"an ended context is an error": {none, ended, [][]outbox.Event{all[:3]}, nil, true, nil},
		"more events than MaxPut are an error, and none is accepted": {
			none, t.Context(), [][]outbox.Event{append(slices.Clone(all[:10]), all[11])}, nil, true, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p.test(t, open(t))
		})
	}
}

type busPromise struct {
	before  func(BusUnderTest)
	ctx     context.Context //nolint:containedctx // of every call
	calls   [][]outbox.Event
	refused []int          // by the first call
	whole   bool           // the first call fails, and is not about single events
	want    []outbox.Event // accepted, in order
}

func (p busPromise) test(t *testing.T, b BusUnderTest) {
	t.Helper()
	p.before(b)
	for n, call := range p.calls {
		failed, err := b.Bus.Put(p.ctx, call)
		first := n == 0
		switch refused := first && len(p.refused) > 0; {
		case !slices.Equal(failed, p.refused) && first || !first && len(failed) > 0:
			t.Errorf("call %d: got the refused indexes %v, want %v", n, failed, p.refused)
		case errors.Is(err, outbox.ErrRefused) != refused, (err != nil) != (refused || p.whole):
			t.Errorf("call %d: got the error %v, want ErrRefused only for refused events", n, err)
		}
	}
	if got := b.Accepted(); len(got)+len(p.want) > 0 && !reflect.DeepEqual(got, p.want) {
		t.Errorf("accepted: got %+v\nwant %+v", got, p.want)
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
