package sqs_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

// Only an order's own failures count toward parking, however often its message was
// received.
func TestOnlyAnOrdersOwnFailuresCountTowardParking(t *testing.T) {
	t.Parallel()
	for reason, breaks := range map[order.Reason]func(*world){
		order.ReasonMisconfigured: func(w *world) { w.OrderBudget = time.Minute },
		sqs.ReasonNotStarted:      func(w *world) { w.processFor(25 * time.Second) },
		sqs.ReasonBehind:          func(w *world) { w.script["HEAD"] = outage() },
		sqs.ReasonParkFailed: func(w *world) {
			w.script["ORD12345"] = conflict()
			w.server.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable)
		},
	} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			w := newFIFOWorld(t)
			breaks(w)
			ids := w.sendGrouped("g", orderWithID("HEAD"), good)
			if reason == order.ReasonMisconfigured {
				ids = ids[:1] // the others are behind it
			}
			w.deliverWithin(30*time.Second, w.receivedTimes(500))
			line := w.line("message_id", ids[len(ids)-1])
			if got := fmt.Sprint(line["verdict"], " ", line["reason"]); got != "redeliver "+string(reason) {
				t.Errorf("after 500 receives got %q, want it redelivered for %s", got, reason)
			}
			if got := w.messageIDs(w.dead); len(got) > 0 {
				t.Errorf("messages %q were parked", got)
			}
		})
	}
}

func TestTheHandlerAppliesItsPolicy(t *testing.T) {
	t.Parallel()
	type policy = sqs.Policy
	for name, tt := range map[string]struct {
		policy func(*policy)
		takes  time.Duration // the order
		fails  bool          // the dead-letter queue
		result order.Result
		count  int
		age    time.Duration
		want   string // verdict and delay in seconds
	}{
		"the queue's retention": {
			policy: func(p *policy) { p.Retention = 2 * day },
			result: outage(), count: 1, age: day, want: "park <nil>",
		},
		"the last day of a message that cannot be parked": {
			policy: func(p *policy) { p.Retention = 2 * day },
			fails:  true, result: conflict(), count: 9, age: day, want: "redeliver 30",
		},

		// A batch may take 15 minutes, so the action depends on the time at the end of
		// processing, not on the start of the batch.
		"a lease, at the end of processing": {
			takes: 10 * time.Second, result: held(time.Minute), count: 1, want: "redeliver 51",
		},
		"the last day begins while processing": {
			takes: 10 * time.Second, result: outage(), count: 9, age: 6*day - 10*time.Second, want: "park <nil>",
		},
		"the last day begins while processing, and parking fails": {
			takes: 10 * time.Second, fails: true, result: conflict(), count: 9, age: 6*day - 10*time.Second,
			want: "redeliver 30",
		},
		"the last day has not begun after processing": {
			takes: 10 * time.Second, result: outage(), count: 9, age: 6*day - 11*time.Second, want: "redeliver 600",
		},
		"the last day has not begun after processing, and parking fails": {
			takes: 10 * time.Second, fails: true, result: conflict(), count: 9, age: 6*day - 11*time.Second,
			want: "redeliver 600",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tt.policy != nil {
				tt.policy(&w.Policy)
			}
			w.processFor(tt.takes)
			w.script["ORD12345"] = tt.result
			if tt.fails {
				w.server.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable)
			}
			id := w.send(good)[0]
			w.advance(tt.age)
			w.deliver(t.Context(), w.receivedTimes(tt.count))
			line := w.line("message_id", id)
			if got := fmt.Sprint(line["verdict"], " ", line["retry_after_s"]); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestALeaseBeginsWithItsOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.processFor(7 * time.Second)
	w.send(good, good, good) // one lane
	w.deliverVisible()
	var got []time.Duration
	for _, d := range w.processed() {
		got = append(got, d.Lease.From.Sub(start()))
	}
	if diff := cmp.Diff(got, []time.Duration{0, 7 * time.Second, 14 * time.Second}); diff != "" {
		t.Errorf("starts of the leases (-got +want):\n%s", diff)
	}
}

// If the processor returns Redeliver and the policy parks, the log line and the metrics
// report the parking.
func TestAnOrderThatWaitedTooLongIsReportedAsParked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["ORD12345"] = order.Result{
		Verdict: order.Redeliver, Reason: order.ReasonUnavailable, Transient: true, Status: order.Open, Attempt: 7, RequestID: "req_9",
		Takeover: true,
	}
	id := w.send(good)[0]
	w.advance(6 * day)
	w.deliver(t.Context(), w.receivedTimes(33))
	want := map[string]any{
		"level": "ERROR", "msg": "order", "order_id": "ORD12345", "message_id": id, "delivery": 33.0, "attempt": 7.0,
		"status": "open", "verdict": "park", "reason": "provider_unavailable", "intent_id": "", "request_id": "request-1",
		"provider_request_id": "req_9",
	}
	if diff := cmp.Diff(w.line("message_id", id), want); diff != "" {
		t.Errorf("log (-got +want):\n%s", diff)
	}
	counts := map[string]int{
		"Received": 1, "Takeovers": 1, "Parked": 1, "Parked provider_unavailable": 1, "flush": 1,
	}
	if diff := cmp.Diff(w.meter, counts); diff != "" {
		t.Errorf("metrics (-got +want):\n%s", diff)
	}
}

// A message that cannot be parked is redelivered, whatever its result was.
func TestAMessageThatCannotBeParkedIsReportedAsRedelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["ORD12345"] = order.Result{
		Verdict: order.Park, Reason: order.ReasonRefused, Status: order.Open, Attempt: 2, Intent: "pi_2",
	}
	w.server.Fail("SendMessage", 1, "AccessDenied")
	id := w.send(good)[0]
	w.deliverVisible()
	line := w.line("message_id", id)
	text := fmt.Sprint(line["error"])
	if !strings.Contains(text, "park message "+id+" for refused: ") || !strings.Contains(text, "AccessDenied") {
		t.Errorf("error = %q, want the message, its reason and AccessDenied", text)
	}
	delete(line, "error")
	want := map[string]any{
		"level": "WARN", "msg": "order", "order_id": "ORD12345", "message_id": id, "delivery": 1.0, "attempt": 0.0, "status": "",
		"verdict": "redeliver", "reason": "park_failed", "intent_id": "", "request_id": "request-1", "retry_after_s": 3.0,
	}
	if diff := cmp.Diff(line, want); diff != "" {
		t.Errorf("log (-got +want):\n%s", diff)
	}
	counts := map[string]int{
		"Received": 1, "Redelivered": 1, "Redelivered park_failed": 1, "WaitingAge": 1, "WaitingAge 0": 1,
		"flush": 1,
	}
	if diff := cmp.Diff(w.meter, counts); diff != "" {
		t.Errorf("metrics (-got +want):\n%s", diff)
	}
}

func TestPoisonMessagesAreParkedInParallelUpToTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("{", "[", "x")
	e := w.receive()
	for _, parallel := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			parked, gate := make(chan string, 10), make(chan struct{})
			w.Queue = queueOf(doer(func(r *http.Request) (*http.Response, error) {
				parked <- r.Header.Get("X-Amz-Target")
				<-gate
				return sqsResponse(http.StatusServiceUnavailable, "{}"), nil
			}))
			w.Parallel = parallel
			go func() { _, _ = w.Handle(t.Context(), e) }()
			synctest.Wait()
			if got := len(parked); got != parallel {
				t.Errorf("%d messages are parked at once, want %d", got, parallel)
			}
			close(gate)
			synctest.Wait()
		})
	}
}
