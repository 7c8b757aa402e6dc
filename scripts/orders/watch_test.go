package main

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/domain/settle"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/watch"
)

// Without a terminal, watch prints one snapshot, without escape codes.
func TestWatchPrintsOnceWithoutATerminal(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	_, server := serveQueues(t, nil)
	d.process(takes, "ORD-1")
	d.process(pays, "ORD-2")
	for _, reason := range []string{"conflict", "conflict", "refused"} {
		server.Machine(func(m *sqstest.Machine, now time.Time) {
			attributes := map[string]sqstest.Attribute{sqs.AttrReason: sqstest.Text(reason)}
			_, err := m.Send(now, "dead", sqstest.Draft{Body: sale("ORD-3", 2400, pays), Attributes: attributes})
			must(t, err)
		})
	}
	d.environ = append(d.environ, "AWS_ENDPOINT_URL_SQS="+server.URL, "QUEUE_URL="+server.QueueURL("orders"),
		"DEAD_LETTER_QUEUE_URL="+server.QueueURL("dead"))
	d.steps(
		step{line: "watch --scan --rate 100", want: "queue                0   0 waiting, 0 in flight, 0 delayed\n" +
			"dead letters         3   conflict 2, refused 1\nwaiting              1   pending 1\n" +
			"oldest              0s   ORD-1, pending\nall orders           2   paid 1, pending 1, scanned at 12:00:00"},
		step{
			line: "watch", claim: "a script must not take a part that could not be read for an empty one", code: 1,
			before: func() { server.Fail("GetQueueAttributes", 9, "AccessDenied") }, want: "queues: \nnot everything could be read",
		},
	)
}

// waits is an index of so many orders.
type waits struct {
	settle.Waiting

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
