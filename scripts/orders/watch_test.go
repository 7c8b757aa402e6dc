package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/watch"
)

// waits is an index of so many orders.
type waits struct {
	order.Waiting

	n int
}

func (w waits) Due(context.Context, time.Time) iter.Seq2[order.ID, error] {
	return func(yield func(order.ID, error) bool) {
		for n := range w.n {
			if !yield(order.ID(fmt.Sprint("ORD-", n)), nil) {
				return
			}
		}
	}
}

func (waits) Load(_ context.Context, id order.ID) (order.Record, error) {
	return order.Record{OrderID: id, Status: order.Pending}, nil
}

func TestWatchReadsSoManyWaitingOrders(t *testing.T) {
	t.Parallel()
	for n, more := range map[int]bool{cloud.MaxWaiting: false, cloud.MaxWaiting + 1: true} {
		var got watch.Snapshot
		must(t, cloud.ReadWaiting(t.Context(), waits{n: n}, &got))
		if got.Waiting[order.Pending] != 200 || got.More != more {
			t.Errorf("%d orders: got %v, more %t, want 200, %t", n, got.Waiting, got.More, more)
		}
	}
}

// A script must not take a part that could not be read for an empty one.
func TestWatchFailsIfAPartCannotBeRead(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := watchCommand{}.once(t.Context(), testShell(nil, "", &out), watch.Sources{
		Now:     noon,
		Depths:  func(context.Context) (orders, dead watch.Depth, err error) { return orders, dead, errors.New("denied") },
		Waiting: func(context.Context, *watch.Snapshot) error { return nil },
	})
	if err == nil || !strings.Contains(out.String(), "queues: denied\n") {
		t.Errorf("got %v and\n%s\nwant an error, and what it is about", err, &out)
	}
}
