package ordertest_test

import (
	"context"
	"slices"
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestBus(t *testing.T) {
	t.Parallel()
	ordertest.TestBus(t, func(*testing.T) ordertest.BusUnderTest {
		b := new(ordertest.Bus)
		return busUnderTest(b, b)
	})
}

func busUnderTest(b *ordertest.Bus, port order.Bus) ordertest.BusUnderTest {
	return ordertest.BusUnderTest{Bus: port, Accepted: b.Accepted, Refuse: b.Refuse, Fail: b.Fail}
}

// brokenBus is a Bus with a bug.
type brokenBus struct {
	*ordertest.Bus

	put func(ctx context.Context, b *ordertest.Bus, events []order.OutboxEvent) ([]int, error)
}

func (b brokenBus) Put(ctx context.Context, events []order.OutboxEvent) ([]int, error) {
	return b.put(ctx, b.Bus, events)
}

func TestTheBusSuiteFindsEveryBug(t *testing.T) {
	t.Parallel()
	broken := map[string]bool{}
	for bug, tt := range map[string]struct {
		promise string
		put     func(ctx context.Context, b *ordertest.Bus, events []order.OutboxEvent) ([]int, error)
	}{
		"the last event is sent first": {
			"the bus accepts events in order, with every field",
			func(ctx context.Context, b *ordertest.Bus, events []order.OutboxEvent) ([]int, error) {
				events = slices.Clone(events)
				slices.Reverse(events)
				return b.Put(ctx, events)
			},
		},
		"the other indexes are reported": {
			"a refused event is reported by its index, and the others are accepted",
			func(ctx context.Context, b *ordertest.Bus, events []order.OutboxEvent) ([]int, error) {
				failed, err := b.Put(ctx, events)
				for i := range failed {
					failed[i]--
				}
				return failed, err
			},
		},
		"a repetition is taken for done": {
			"a refused event is accepted when it is sent again",
			func(ctx context.Context, b *ordertest.Bus, events []order.OutboxEvent) ([]int, error) {
				if len(b.Calls()) > 0 {
					return nil, nil
				}
				return b.Put(ctx, events)
			},
		},
		"a failed call refuses every event": {
			"a failed call is an error, and no event was refused",
			func(ctx context.Context, b *ordertest.Bus, events []order.OutboxEvent) ([]int, error) {
				if _, err := b.Put(ctx, events); err != nil {
					return []int{0, 1, 2}, order.ErrEventRefused
				}
				return nil, nil
			},
		},
		"the context is ignored": {
			"an ended context is an error",
			func(ctx context.Context, b *ordertest.Bus, events []order.OutboxEvent) ([]int, error) {
				return b.Put(context.WithoutCancel(ctx), events)
			},
		},
		"the eleventh event is another call": {
			"more events than MaxPut are an error, and none is accepted",
			func(ctx context.Context, b *ordertest.Bus, events []order.OutboxEvent) ([]int, error) {
				for call := range slices.Chunk(events, order.MaxPut) {
					if failed, err := b.Put(ctx, call); err != nil {
						return failed, err
					}
				}
				return nil, nil
			},
		},
	} {
		broken[tt.promise] = true
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			wrong, right := new(ordertest.Bus), new(ordertest.Bus)
			testBug(t, ordertest.BusPromises(), tt.promise, busUnderTest(wrong, brokenBus{wrong, tt.put}), busUnderTest(right, right))
		})
	}
	if left := uncovered(ordertest.BusPromises(), broken); len(left) > 0 {
		t.Errorf("no bug breaks the promises %q", left)
	}
}
