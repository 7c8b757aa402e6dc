package main

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/watch"
)

// The page of sessions shows a snapshot.
func TestAScriptDoesNotTakeWhatCouldNotBeReadForEmpty(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	environ, server := serveQueues(t, sqstest.Options{}, nil)
	server.Fail("GetQueueAttributes", 9, "AccessDenied")
	d.environ = append(d.environ, environ...)
	d.steps(step{line: "watch", code: 1, want: "waiting              0\nqueues: \nnot everything could be read"})
}

// waits is an index of so many orders.
type waits struct{ n int }

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
	r := order.Record{OrderID: id, Status: order.Pending, CreatedAt: noon().Add(-2 * time.Hour)}
	if id == "ORD-0" { // a refund of it waits
		r.Status, r.CreatedAt, r.UpdatedAt = order.Paid, noon().Add(-300*day), noon().Add(-time.Hour)
	}
	return r, nil
}

func TestWatchReadsSoManyWaitingOrders(t *testing.T) {
	t.Parallel()
	for n, more := range map[int]bool{cloud.MaxWaiting: false, cloud.MaxWaiting + 1: true} {
		var got watch.Snapshot
		must(t, cloud.ReadWaiting(t.Context(), waits{n: n}, &got))
		if want := "map[pending:199 refund:1]"; fmt.Sprint(got.Waiting) != want || got.More != more || got.Oldest.ID != "ORD-1" {
			t.Errorf("%d orders: got %v, more %t, oldest %+v, want %s, %t, ORD-1", n, got.Waiting, got.More, got.Oldest, want, more)
		}
	}
}
