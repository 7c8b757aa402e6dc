package sqs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

func TestOnlyRedeliveredMessagesAreBatchItemFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["WAITS"], w.script["CLASHES"] = outage(), conflict()
	w.send(orderWithID("PAID"), orderWithID("WAITS"), orderWithID("CLASHES"), "no order")
	want := outcome{
		Failed:    []string{"WAITS"},
		Processed: []string{"CLASHES", "PAID", "WAITS"},
		Parked:    []string{"CLASHES: conflict", "no order: invalid_order"},
	}
	if diff := cmp.Diff(w.outcome(), want); diff != "" {
		t.Errorf("mismatch (-got +want):\n%s", diff)
	}
	if got := w.messages(w.orders); len(got) != 1 || nameOf(got[0].Body) != "WAITS" {
		t.Errorf("order queue: got %+v, want WAITS alone", got)
	}
	if got := w.counted("flush"); got != 1 {
		t.Errorf("got %d flushes of the meter, want 1", got)
	}
}

// Lambda accepts null as an empty list, but other readers of the response may not.
func TestBatchItemFailuresIsNeverNull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(good)
	for _, e := range []events.SQSEvent{{}, w.receive()} {
		response, err := w.Handle(t.Context(), e)
		w.must(err)
		got, err := json.Marshal(response)
		w.must(err)
		if want := `{"batchItemFailures":[]}`; string(got) != want {
			t.Errorf("got %s for %d records, want %s", got, len(e.Records), want)
		}
	}
}

func TestAPoisonMessageIsParkedAtOnceAndDelaysNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	large := strings.Repeat("x", sqs.MaxBody+1)
	w.send(orderWithID("A"), "{", orderWithID("B"), large, orderWithID("C"))
	want := outcome{
		Processed: []string{"A", "B", "C"},
		Parked:    []string{large + ": invalid_order", "{: invalid_order"},
	}
	if diff := cmp.Diff(w.outcome(), want); diff != "" {
		t.Errorf("mismatch (-got +want):\n%s", diff)
	}
	if got := w.messageIDs(w.orders); len(got) > 0 {
		t.Errorf("order queue: got %q, want none", got)
	}
}

// A body that can never become an order must not come back for want of time.
func TestAPoisonMessageIsParkedWithTooLittleTimeForAnOrder(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first, timeout time.Duration
		want           string
	}{
		"less than an order's budget is left":   {30*time.Second - answerTime - 1, 30 * time.Second, "invalid_order"},
		"the timeout is too short for an order": {0, answerTime + 1, "invalid_order"},
		"no time is left for calls to SQS":      {30*time.Second - answerTime, 30 * time.Second, "not_started"},
		"the timeout leaves no time for calls":  {0, answerTime, "misconfigured"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Parallel = 1
			w.processFor(tt.first)
			w.send(orderWithID("A"))
			poison := w.send("{")[0]
			w.deliverWithin(tt.timeout, w.receive())
			if got := w.line("message_id", poison)["reason"]; got != tt.want {
				t.Errorf("reason = %v, want %s", got, tt.want)
			}
		})
	}
}

// large returns an order with a body that is decoded in its lane.
func large(id string) string { return orderWithID(id) + strings.Repeat(" ", 20<<10) }

func TestALargeBodyDelaysNoOtherOrder(t *testing.T) {
	t.Parallel()
	for name, fifo := range map[string]bool{"on a standard queue": false, "in another FIFO group": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if fifo {
				w = newFIFOWorld(t)
			}
			w.sendGrouped("1", large("LARGE"))
			w.sendGrouped("2", orderWithID("A"), orderWithID("B"))
			e := w.receive()
			synctest.Test(t, func(t *testing.T) {
				gate := make(chan struct{})
				w.Decode = func(body string) (sqs.Task, error) {
					if strings.Contains(body, "LARGE") {
						<-gate
					}
					return w.Task(body)
				}
				go func() { _, _ = w.Handle(t.Context(), e) }()
				synctest.Wait()
				if diff := cmp.Diff(processedIDs(w), []string{"A", "B"}); diff != "" {
					t.Errorf("processed while a large body is decoded (-got +want):\n%s", diff)
				}
				close(gate)
				synctest.Wait()
				if diff := cmp.Diff(processedIDs(w), []string{"A", "B", "LARGE"}); diff != "" {
					t.Errorf("processed (-got +want):\n%s", diff)
				}
			})
		})
	}
}

func TestAPanicFailsOnlyItsRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.failsFor("BAD", func() { panic("boom " + canary) })
	ids := w.send(orderWithID("A"), orderWithID("BAD"), orderWithID("C"))
	want := outcome{Failed: []string{"BAD"}, Processed: []string{"A", "C"}}
	if diff := cmp.Diff(w.outcome(), want); diff != "" {
		t.Errorf("mismatch (-got +want):\n%s", diff)
	}
	line := w.line("order_id", "BAD")
	if line["reason"] != "panic" || !strings.Contains(fmt.Sprint(line["error"]), "panic of type string at") {
		t.Errorf("got the line %v", line)
	}
	if strings.Contains(w.log.String(), canary) {
		t.Error("the log contains the value of the panic")
	}
	if got, want := w.untilVisible(ids[1]), 3*time.Second; got != want {
		t.Errorf("message becomes visible after %v, want %v", got, want)
	}
}

// brokenError panics when it is read, such as an error whose pointer is nil.
type brokenError struct{}

func (brokenError) Error() string { panic("boom " + canary) }

// A panic in any step redelivers its message, unless the message is settled or parked
// already. runtime.Goexit ends a goroutine without a panic, so recover does not see it;
// it has the same effect.
func TestACrashInAnyStepFailsOnlyItsRecord(t *testing.T) {
	t.Parallel()
	const panics, exits = "panic of type ", "worker goroutine exited"
	boom := func() { panic("boom " + canary) }
	poison := []string{"no order", orderWithID("BAD"), "no order either"}
	lane := []string{good, good, good}
	unprintable := func(r order.Result) order.Result {
		r.Err = brokenError{}
		return r
	}
	for _, tt := range []struct {
		name    string
		bodies  []string
		breaks  func(*world)
		failed  []int  // which of the three messages
		wantLog string // of the second message
		wantErr string
	}{
		{"decoding", poison, func(w *world) {
			w.Decode = func(body string) (sqs.Task, error) {
				if strings.Contains(body, "BAD") {
					boom()
				}
				return w.Task(body)
			}
		}, []int{1}, "WARN panic", panics},
		{"creating an owner", poison, func(w *world) {
			w.NewOwner = func() string { boom(); return "" }
		}, []int{1}, "WARN panic", panics},
		{"choosing the delay", poison, func(w *world) {
			w.Jitter = func() float64 { boom(); return 0 }
		}, []int{0, 1, 2}, "WARN panic", panics},
		{"parking", poison, func(w *world) { w.script["BAD"] = refused(brokenError{}) }, []int{1}, "WARN panic", panics},
		{"reporting a redelivered message", poison, func(w *world) {
			w.script["BAD"] = unprintable(outage())
		}, []int{1}, "ERROR <nil>", panics},
		{"reporting a settled message", poison, func(w *world) {
			w.script["BAD"] = unprintable(paid())
		}, nil, "ERROR <nil>", panics},

		{"exits while processing the order", lane, func(w *world) {
			calls := 0
			w.failsFor("ORD12345", func() {
				if calls++; calls == 2 {
					runtime.Goexit()
				}
			})
		}, []int{1}, "WARN panic", exits},
		{"exits while creating an owner", lane, func(w *world) {
			w.NewOwner = func() string {
				if len(w.processed()) > 0 {
					runtime.Goexit()
				}
				return "owner"
			}
		}, []int{1, 2}, "WARN panic", exits},
		{"exits while reading the clock", lane, func(w *world) {
			first := sync.OnceValue(w.Handler.Now)
			calls := 0
			w.Handler.Now = func() time.Time {
				if calls++; calls > 1 {
					runtime.Goexit()
				}
				return first()
			}
		}, []int{0, 1, 2}, "ERROR <nil>", exits}, // its age cannot be reported either
		{"exits while choosing the delay", lane, func(w *world) {
			w.Jitter = func() float64 { runtime.Goexit(); return 0 }
		}, []int{0, 1, 2}, "WARN panic", exits},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.breaks(w)
			ids := w.send(tt.bodies...)
			var want []string
			for _, i := range tt.failed {
				want = append(want, ids[i])
			}
			if diff := cmp.Diff(w.deliverVisible(), want); diff != "" {
				t.Errorf("batch item failures (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(w.messageIDs(w.orders), want); diff != "" {
				t.Errorf("order queue (-got +want):\n%s", diff)
			}
			line := w.line("message_id", ids[1])
			got := fmt.Sprint(line["level"], " ", line["reason"])
			if text := fmt.Sprint(line["error"]); got != tt.wantLog || !strings.Contains(text, tt.wantErr) {
				t.Errorf("log of the second message = %q with the error %q, want %q with %q", got, text, tt.wantLog, tt.wantErr)
			}
			if strings.Contains(w.log.String(), canary) {
				t.Error("the log contains the value of the panic")
			}
			if got := w.counted("Received"); got != 3 {
				t.Errorf("Received = %d, want 3", got)
			}
		})
	}
}

func TestLanesRunInParallelUpToTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 6 {
		w.send(orderWithID(fmt.Sprintf("ORD%d", i)))
	}
	e := w.receive()
	synctest.Test(t, func(t *testing.T) {
		w.Parallel = 2
		started, gate := gated(w)
		go func() { _, _ = w.Handle(t.Context(), e) }()
		for finished := range 6 {
			synctest.Wait()
			if got, want := len(*started), min(finished+2, 6); got != want {
				t.Errorf("%d orders started after %d have finished, want %d", got, finished, want)
			}
			gate <- struct{}{}
		}
		synctest.Wait()
	})
}

func TestMessagesOfOneOrderRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(orderWithID("A"), large("A"), orderWithID("B"), orderWithID("A"))
	e := w.receive()
	synctest.Test(t, func(t *testing.T) {
		started, gate := gated(w)
		go func() { _, _ = w.Handle(t.Context(), e) }()
		for _, want := range [][]string{{"A", "B"}, {"A", "A", "B"}, {"A", "A", "A", "B"}} {
			synctest.Wait()
			if diff := cmp.Diff(slices.Sorted(slices.Values(*started)), want); diff != "" {
				t.Errorf("started orders (-got +want):\n%s", diff)
			}
			if len(want) == 2 {
				gate <- struct{}{} // of B
			}
			gate <- struct{}{}
		}
	})
}

// gated replaces Process: each order starts, and ends when it receives from gate. Read
// started only after synctest.Wait.
func gated(w *world) (started *[]string, gate chan struct{}) {
	var mu sync.Mutex
	started, gate = new([]string), make(chan struct{})
	w.Process = func(_ context.Context, o order.Order, _ time.Time, _ order.Lease) order.Result {
		mu.Lock()
		*started = append(*started, string(o.ID()))
		mu.Unlock()
		<-gate
		return paid()
	}
	return started, gate
}

// A group keeps its order for whatever reason its head is redelivered: the messages
// behind it are not processed and not parked, and are redelivered with the head.
func TestNothingOvertakesTheHeadOfItsFIFOGroup(t *testing.T) {
	t.Parallel()
	unavailable := func(w *world) { w.server.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable) }
	for name, tt := range map[string]struct {
		breaks func(*world)
		result order.Result  // of the head, if it is an order
		body   string        // of the head, if it is not an order
		delay  time.Duration // 0 means 3 s
	}{
		"the store is unavailable":                {result: outage()},
		"the order failed by itself":              {result: unconfirmed(1)},
		"another attempt holds the order":         {result: held(time.Minute), delay: 61 * time.Second},
		"its result has no verdict":               {},
		"it cannot be parked":                     {result: conflict(), breaks: unavailable},
		"it is not an order and cannot be parked": {body: "no order", breaks: unavailable},
		"the response to parking it is lost": {
			result: conflict(), breaks: func(w *world) { w.server.Lose("SendMessage", 1) },
		},
		"parking it panics":                 {result: refused(brokenError{}), delay: 5 * time.Second},
		"it panics":                         {breaks: func(w *world) { w.failsFor("HEAD", func() { panic("boom") }) }},
		"its worker exits":                  {breaks: func(w *world) { w.failsFor("HEAD", runtime.Goexit) }},
		"the function timeout is too short": {breaks: func(w *world) { w.OrderBudget = order.MaxLease }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFIFOWorld(t)
			w.script["HEAD"] = tt.result
			if tt.breaks != nil {
				tt.breaks(w)
			}
			head, delay := orderWithID("HEAD"), 3*time.Second
			if tt.body != "" {
				head = tt.body
			}
			if tt.delay > 0 {
				delay = tt.delay
			}
			ids := w.sendGrouped("g", head, orderWithID("NEXT"), "no order")
			if diff := cmp.Diff(w.deliverVisible(), ids); diff != "" {
				t.Errorf("batch item failures (-got +want):\n%s", diff)
			}
			if got := processedIDs(w); slices.Contains(got, "NEXT") {
				t.Errorf("orders %q were processed, want none behind the head", got)
			}
			for _, m := range w.messages(w.dead) {
				if got := m.Attributes[sqs.AttrFirstMessageID].Text; got != ids[0] {
					t.Errorf("message %s was parked, want none behind the head", got)
				}
			}
			for _, id := range ids[1:] {
				if got := w.line("message_id", id)["reason"]; got != "behind_in_group" {
					t.Errorf("message %s is redelivered for %q, want behind_in_group", id, got)
				}
			}
			w.advance(delay - time.Second)
			if got := w.visible(); len(got) > 0 {
				t.Errorf("messages %q are visible before the head's delay of %v ends", got, delay)
			}
			w.advance(time.Second)
			if diff := cmp.Diff(w.visible(), ids); diff != "" {
				t.Errorf("visible after the head's delay (-got +want):\n%s", diff)
			}
		})
	}
}

// In every batch, the redelivered messages of a FIFO group are its last ones: the first
// that fails, and all behind it, none of which was processed.
func TestAFIFOGroupIsProcessedInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newFIFOWorld(t)
		w.Parallel = rapid.IntRange(1, 4).Draw(t, "parallel")
		w.Process = func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result {
			r := w.process(ctx, o, sent, l)
			if r.Reason == "exits" {
				runtime.Goexit()
			}
			return r
		}
		exits := order.Result{Reason: "exits"}
		for n := range rapid.IntRange(1, 12).Draw(t, "messages") {
			id := fmt.Sprintf("ORD%d", n)
			w.script[order.ID(id)] = rapid.OneOf(results(), rapid.Just(exits)).Draw(t, "result")
			body := rapid.SampledFrom([]string{orderWithID(id), orderWithID(id), "no order"}).Draw(t, "body")
			w.sendGrouped(rapid.SampledFrom([]string{"g", "h"}).Draw(t, "group"), body)
		}
		fails := rapid.IntRange(0, 2).Draw(t, "times that parking fails")
		w.server.Fail("SendMessage", fails, sqstest.CodeServiceUnavailable)

		e := w.receive()
		failed := w.deliver(t.Context(), e)
		heads := map[string]string{} // the first message of each group that fails
		for _, m := range e.Records {
			group, id := m.Attributes["MessageGroupId"], m.MessageId
			head, stopped := heads[group]
			reason := w.line("message_id", id)["reason"]
			switch {
			case stopped && !slices.Contains(failed, id):
				t.Fatalf("message %s is acknowledged, although %s of its group is redelivered", id, head)
			case stopped && reason != "behind_in_group":
				t.Fatalf("message %s is redelivered for %s, want behind_in_group after %s", id, reason, head)
			case !stopped && slices.Contains(failed, id):
				heads[group] = id
			}
		}
	})
}

// A message is received as often as those before it in its group, but only its own
// attempts count.
func TestAMessageIsNotParkedForTheFailuresOfItsGroupsHead(t *testing.T) {
	t.Parallel()
	w := newFIFOWorld(t)
	tried := map[order.ID]int{}
	w.Process = func(_ context.Context, o order.Order, _ time.Time, _ order.Lease) order.Result {
		tried[o.ID()]++
		return unconfirmed(tried[o.ID()])
	}
	ids := w.sendGrouped("g", orderWithID("HEAD"), orderWithID("NEXT"))
	for range 19 {
		if diff := cmp.Diff(w.deliverVisible(), ids); diff != "" {
			t.Errorf("batch item failures (-got +want):\n%s", diff)
		}
		w.advance(15 * time.Minute)
	}
	for tries := 1; tries < 20; tries++ {
		if diff := cmp.Diff(w.deliverVisible(), []string{ids[1]}); diff != "" {
			t.Errorf("batch item failures once the head is parked (-got +want):\n%s", diff)
		}
		if diff := cmp.Diff(tried, map[order.ID]int{"HEAD": 20, "NEXT": tries}); diff != "" {
			t.Fatalf("attempts (-got +want):\n%s", diff)
		}
		w.advance(15 * time.Minute)
	}
	if got := w.deliverVisible(); len(got) > 0 {
		t.Errorf("batch item failures at the twentieth attempt: got %q, want none", got)
	}
	if got := len(w.messageIDs(w.dead)); got != 2 {
		t.Errorf("got %d dead letters, want 2", got)
	}
}

// Messages of a standard queue may have group ids, for fairness (SQS developer guide,
// "Amazon SQS fair queues").
func TestAGroupOfAFairQueueHasNoOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["A1"] = outage()
	w.sendGrouped("tenant", orderWithID("A1"), orderWithID("A2"))
	want := outcome{Failed: []string{"A1"}, Processed: []string{"A1", "A2"}}
	if diff := cmp.Diff(w.outcome(), want); diff != "" {
		t.Errorf("mismatch (-got +want):\n%s", diff)
	}
}

func TestNoOrderStartsWithoutTimeToFinish(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		first  time.Duration // of the invocation's 30 s
		starts bool
	}{
		{"the second order starts with one budget left", 30*time.Second - answerTime - orderBudget, true},
		{"the second order does not start with less", 30*time.Second - answerTime - orderBudget + 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Parallel = 1
			w.processFor(tt.first)
			ids := w.send(orderWithID("A"), orderWithID("B"))
			failed := w.deliverWithin(30*time.Second, w.receive())
			line := w.line("order_id", "B")
			got := fmt.Sprint(line["level"], " ", line["reason"], " ", failed, " ", w.visible())
			want := "INFO settled [] []"
			if !tt.starts { // and is visible at once
				want = fmt.Sprint("INFO not_started ", ids[1:], " ", ids[1:])
			}
			if got != want {
				t.Errorf("level, reason, batch item failures and visible messages: got %q, want %q", got, want)
			}
		})
	}
}

// If a new batch has less time than one order needs, every batch has.
func TestAFunctionWithoutTimeForOneOrderIsMisconfigured(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		starts  bool
	}{
		{"the shortest timeout with which one order starts", answerTime + orderBudget, true},
		{"a nanosecond less", answerTime + orderBudget - time.Nanosecond, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.send(orderWithID("A"))[0]
			failed := w.deliverWithin(tt.timeout, w.receive())
			if started := len(w.processed()) > 0; started != tt.starts || (len(failed) == 0) != tt.starts {
				t.Fatalf("started = %t, batch item failures = %q, want started %t", started, failed, tt.starts)
			}
			if tt.starts {
				return
			}
			line := w.line("order_id", "A")
			got := []any{line["level"], line["reason"], line["error"], w.untilVisible(id)}
			want := []any{
				"WARN", "misconfigured", "function timeout too short: 4.999999999s left for orders, ORDER_BUDGET is 5s",
				3 * time.Second,
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("level, reason, error and delay (-got +want):\n%s", diff)
			}
		})
	}
}

// queueOf returns queues behind an HTTP client.
func queueOf(client aws.HTTPClient) *sqs.Queue {
	return sqs.NewQueue(aws.Config{
		Region: sqstest.Region, Credentials: aws.AnonymousCredentials{}, HTTPClient: client,
		Retryer: func() aws.Retryer { return aws.NopRetryer{} },
	}, "http://queue.test/orders", "http://queue.test/dead")
}

// silentQueue is a queue that never responds.
type silentQueue struct{}

func (silentQueue) Do(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// Lambda redelivers the whole batch if it kills the function before the response.
func TestAQueueThatNeverRespondsDoesNotUseUpTheFunctionTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["WAITS"] = outage()
	ids := w.send(orderWithID("PAID"), orderWithID("WAITS"))
	e := w.receive()
	synctest.Test(t, func(t *testing.T) {
		w.Handler.Now = time.Now //nolint:forbidigo // the clock of the bubble, which also ends contexts
		w.Queue = queueOf(silentQueue{})
		deadline := w.Handler.Now().Add(30 * time.Second)
		ctx, cancel := context.WithDeadline(t.Context(), deadline)
		defer cancel()
		response, err := w.Handle(ctx, e)
		if left := deadline.Sub(w.Handler.Now()); left != answerTime/4 {
			t.Errorf("%v of the function timeout left for the response, want %v", left, answerTime/4)
		}
		if want := []events.SQSBatchItemFailure{{ItemIdentifier: ids[1]}}; err != nil ||
			!slices.Equal(response.BatchItemFailures, want) {
			t.Errorf("got %v, %v, want %v", response, err, want)
		}
	})
}

// Lambda may freeze a worker after its invocation has ended, and resume it much later.
func TestAnEndedInvocationDoesNotCallSQS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["CLASHES"], w.script["WAITS"] = conflict(), outage()
	ids := w.send(orderWithID("CLASHES"), orderWithID("WAITS"), orderWithID("PAID"))
	e := w.receive()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if diff := cmp.Diff(w.deliver(ctx, e), ids[:2]); diff != "" {
		t.Errorf("batch item failures (-got +want):\n%s", diff)
	}
	if len(w.calls) > 0 {
		t.Errorf("%d calls to SQS, want none", len(w.calls))
	}
}

func TestALeaseEndsWithTheFunction(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		deadline, leased time.Duration // from now
	}{
		{"the lease ends at the deadline", 30 * time.Second, 30 * time.Second},
		{"the lease is at most as long as a function can run", time.Hour, 15 * time.Minute},
		{"without a deadline it is as long as a function can run", 0, 15 * time.Minute},
		{"after the deadline it is one second", -time.Minute, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.OrderBudget, w.AnswerTime = 0, 100*time.Millisecond
			ctx := t.Context()
			if tt.deadline != 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithDeadline(ctx, start().Add(tt.deadline))
				defer cancel()
			}
			w.send(good)
			if got := w.deliver(ctx, w.receive()); len(got) > 0 {
				t.Errorf("batch item failures: got %q, want none", got)
			}
			until := start().Add(tt.leased)
			contextEnds := until.Add(-w.AnswerTime)
			if tt.deadline < 0 {
				contextEnds = start().Add(tt.deadline) // a context ends with its parent
			}
			lease := order.Lease{Owner: "owner-0", From: start(), Until: until}
			want := []work{{ID: "ORD12345", Sent: start(), Lease: lease, Deadline: contextEnds}}
			if diff := cmp.Diff(w.processed(), want); diff != "" {
				t.Errorf("mismatch (-got +want):\n%s", diff)
			}
		})
	}
}

func TestEveryRecordHasItsOwnOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Parallel = 1 // the owners are numbers of what was worked on
	w.send(orderWithID("A"), orderWithID("A"), orderWithID("B"))
	w.deliverVisible()
	owners := map[string]bool{}
	for _, d := range w.processed() {
		owners[d.Lease.Owner] = true
	}
	if len(owners) != 3 {
		t.Errorf("owners = %v, want one for each of three records", owners)
	}
}

// Messages that failed together must not be redelivered together, also those of one batch
// and those that cannot be parked.
func TestEachMessageHasItsOwnJitter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Parallel = 1
	draws := 0.0
	w.Jitter = func() float64 { draws += 0.1; return draws }
	w.script = map[order.ID]order.Result{"A": outage(), "B": outage(), "C": conflict(), "D": conflict()}
	w.send(orderWithID("A"), orderWithID("B"), orderWithID("C"), orderWithID("D"))
	w.server.Fail("SendMessage", 2, sqstest.CodeServiceUnavailable)
	w.deliver(t.Context(), w.receivedTimes(9)) // 10 to 15 minutes
	got := map[string]any{}
	for _, line := range w.lines() {
		got[fmt.Sprint(line["order_id"])] = line["retry_after_s"]
	}
	// a message that cannot be parked uses jitter twice
	want := map[string]any{"A": 630.0, "B": 660.0, "C": 720.0, "D": 780.0}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("delays in seconds (-got +want):\n%s", diff)
	}
}

func TestAnOutageParksNoMessageBeforeItsLastDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["ORD12345"] = outage()
	id := w.send(good)[0]
	for range 30 {
		if diff := cmp.Diff(w.deliverVisible(), []string{id}); diff != "" {
			t.Errorf("batch item failures (-got +want):\n%s", diff)
		}
		w.advance(15 * time.Minute)
	}
	w.advance(6*day - 30*15*time.Minute - time.Second)
	if diff := cmp.Diff(w.deliverVisible(), []string{id}); diff != "" {
		t.Errorf("batch item failures before its last day (-got +want):\n%s", diff)
	}
	w.advance(15 * time.Minute)
	if got := w.deliverVisible(); len(got) > 0 {
		t.Errorf("batch item failures on its last day: got %q, want none", got)
	}
	if got := w.messages(w.dead)[0].Attributes[sqs.AttrReason].Text; got != "store_unavailable" {
		t.Errorf("parked for %q, want the reason of its redeliveries", got)
	}
}

func TestAVisibilityChangeThatFailsIsOnlyAWarning(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		messages int
		breaks   func(w *world, e events.SQSEvent)
		warning  string // how it begins
		calls    int
		delayed  int // messages that become visible after their delay of 3 s, the others after 3 min
	}{
		"after a failed call the queue's visibility timeout applies": {
			2, func(w *world, _ events.SQSEvent) {
				w.server.Fail("ChangeMessageVisibilityBatch", 1, sqstest.CodeServiceUnavailable)
			}, "change the visibility of 2 messages: ", 1, 0,
		},
		"the warning names an entry that fails, and the others are delayed": {
			2, func(_ *world, e events.SQSEvent) {
				e.Records[1].MessageId, e.Records[1].ReceiptHandle = "the second", "not a handle"
			}, "change the visibility of message the second: ReceiptHandleIsInvalid", 1, 1,
		},
		"more than ten messages take several calls, of which one may fail": {
			23, func(w *world, _ events.SQSEvent) {
				w.server.Fail("ChangeMessageVisibilityBatch", 1, sqstest.CodeServiceUnavailable)
			}, "change the visibility of 10 messages: ", 3, 13,
		},
		"a lost response is only a warning": {
			1, func(w *world, _ events.SQSEvent) {
				w.server.Lose("ChangeMessageVisibilityBatch", 1)
			}, "change the visibility of 1 messages: ", 1, 1,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for i := range tt.messages {
				id := fmt.Sprintf("ORD%d", i)
				w.script[order.ID(id)] = outage()
				w.send(orderWithID(id))
			}
			e := w.receive()
			tt.breaks(w, e)
			if got := len(w.deliver(t.Context(), e)); got != tt.messages || len(w.calls) != tt.calls {
				t.Errorf("%d batch item failures in %d calls, want %d in %d", got, len(w.calls), tt.messages, tt.calls)
			}
			line := w.line("msg", "visibility not changed: the queue's visibility timeout applies")
			got := fmt.Sprint(line["level"], " ", line["request_id"], " ", line["error"])
			if want := "WARN request-1 " + tt.warning; !strings.HasPrefix(got, want) {
				t.Errorf("warning = %q, want %q", got, want)
			}
			w.advance(3 * time.Second)
			if got := len(w.visible()); got != tt.delayed {
				t.Errorf("%d messages are visible after their delay, want %d", got, tt.delayed)
			}
			w.advance(3*time.Minute - 3*time.Second)
			if got := len(w.visible()); got != tt.messages {
				t.Errorf("%d messages are visible after the queue's timeout, want %d", got, tt.messages)
			}
		})
	}
}

// results generates results that the domain returns.
func results() *rapid.Generator[order.Result] {
	return rapid.SampledFrom([]order.Result{
		paid(), conflict(), outage(), held(0),
		{Verdict: order.Done, Reason: order.ReasonDuplicate, Status: order.Declined},
		{Verdict: order.Redeliver, Reason: order.ReasonUnconfirmed, Attempt: 2, Takeover: true},
		{Verdict: order.Redeliver, Reason: order.ReasonClaimLost, Transient: true},
		{Verdict: order.Redeliver, Reason: order.ReasonUnknown, Transient: true, RequestID: "req_1"},
	})
}

// received = acknowledged + redelivered + parked, in the metrics and in the queues.
func TestEveryDeliveryIsCountedOnceByItsVerdict(t *testing.T) {
	t.Parallel()
	for name, newWorld := range map[string]func(tester) *world{"standard": newWorld, "FIFO": newFIFOWorld} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { countEveryDelivery(t, newWorld(t)) })
		})
	}
}

func countEveryDelivery(t *rapid.T, w *world) {
	t.Helper()
	var sent, delivered, failed int
	for range rapid.IntRange(1, 4).Draw(t, "rounds") {
		sent += sendAnything(t, w)
		e := w.receive()
		delivered += len(e.Records)
		failed += len(w.deliver(t.Context(), e))
		w.advance(20 * time.Minute)

		received, redelivered, parked := w.counted("Received"), w.counted("Redelivered"), w.counted("Parked")
		acked := w.counted("Settled") + w.counted("Duplicates")
		if received != delivered || redelivered != failed || received != acked+redelivered+parked {
			t.Fatalf("got %d received, %d acked, %d redelivered, %d parked; want %d delivered, %d failed",
				received, acked, redelivered, parked, delivered, failed)
		}
		if ages := len(w.waitingAges()); ages != redelivered {
			t.Fatalf("%d values of WaitingAge for %d redelivered messages", ages, redelivered)
		}
		waiting, dead := len(w.messageIDs(w.orders)), len(w.messageIDs(w.dead))
		if dead != parked || sent != acked+parked+waiting {
			t.Fatalf("%d sent, %d acked, %d parked; got %d waiting and %d dead", sent, acked, parked, waiting, dead)
		}
		if lines := len(w.lines()); lines != received {
			t.Fatalf("got %d lines for %d deliveries", lines, received)
		}
	}
}

// sendAnything sends orders with random results and bodies that are not orders, and
// sometimes lets the dead-letter queue fail.
func sendAnything(t *rapid.T, w *world) (sent int) {
	t.Helper()
	for id, r := range rapid.MapOf(rapid.StringMatching("[A-F]"), results()).Draw(t, "script") {
		w.script[order.ID(id)] = r
	}
	bodies := rapid.SliceOfN(rapid.Map(rapid.StringMatching("[A-F]|no order"), func(id string) string {
		if id == "no order" {
			return id
		}
		return orderWithID(id)
	}), 0, 8).Draw(t, "bodies")
	if rapid.IntRange(0, 3).Draw(t, "the dead-letter queue fails") == 0 {
		w.server.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable)
	}
	for _, body := range bodies {
		w.sendGrouped(rapid.SampledFrom([]string{"g", "h", "i"}).Draw(t, "group"), body)
	}
	return len(bodies)
}

// One handler serves all invocations of a process; run with -race.
func TestFiftyBatchesInParallelKeepApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var batches []events.SQSEvent
	for b := range 50 {
		for i := range 5 {
			id := fmt.Sprintf("B%d-%d", b, i)
			w.send(orderWithID(id))
			w.script[order.ID(id)] = []order.Result{paid(), outage(), conflict(), paid(), paid()}[i]
		}
		batches = append(batches, w.receive())
	}
	var all sync.WaitGroup
	for b, e := range batches {
		all.Go(func() {
			response, err := w.Handle(t.Context(), e)
			if err != nil || len(response.BatchItemFailures) != 1 ||
				response.BatchItemFailures[0].ItemIdentifier != e.Records[1].MessageId {
				t.Errorf("batch %d: got %v, %v; want its second message alone", b, response, err)
			}
		})
	}
	all.Wait()
	if got := w.counted("Received"); got != 250 || len(w.messageIDs(w.dead)) != 50 {
		t.Errorf("got %d received and %d dead letters, want 250 and 50", got, len(w.messageIDs(w.dead)))
	}
}

// A task without the optional functions is run, logged with its attributes, and parked.
func TestATaskNeedsNoMoreThanRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Decode = func(body string) (sqs.Task, error) {
		return sqs.Task{
			ID: order.ID(body), Attrs: []slog.Attr{slog.String("label_id", "L-"+body)},
			Run: func(_ context.Context, d sqs.Delivery, l order.Lease) order.Result {
				if d.Count != 1 || l.Owner == "" || !l.Until.After(l.From) {
					t.Errorf("%s: delivery %d, lease %+v", body, d.Count, l)
				}
				if body == "A" {
					return order.Result{Verdict: order.Done, Reason: order.ReasonSettled}
				}
				return order.Result{Verdict: order.Park, Reason: order.ReasonRefused}
			},
		}, nil
	}
	w.send("A", "B")
	if failed := w.deliverVisible(); len(failed) > 0 {
		t.Errorf("failed: %q, want none", failed)
	}
	if got := w.line("order_id", "A")["label_id"]; got != "L-A" {
		t.Errorf("label_id = %v, want L-A", got)
	}
	if got := w.messages(w.dead); len(got) != 1 || got[0].Body != "B" {
		t.Errorf("dead letters: got %+v, want B alone", got)
	}
}
