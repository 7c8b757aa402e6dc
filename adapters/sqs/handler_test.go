package sqs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

func TestOnlyRedeliveredMessagesAreBatchItemFailures(t *testing.T) {
	w := newWorld(t, standard)
	w.script["WAITS"], w.script["CLASHES"] = outage(), conflict()
	ids := w.send(orderWithID("PAID"), orderWithID("WAITS"), orderWithID("CLASHES"), "no order")
	if diff := cmp.Diff(w.deliver(), ids[1:2]); diff != "" {
		t.Errorf("batch item failures (-got +want):\n%s", diff)
	}
	got := [][]string{w.bodies(w.orders), w.bodies(w.dead), w.ids(), w.notes}
	want := [][]string{
		{"WAITS"}, {"CLASHES conflict", "no order invalid_order"}, {"CLASHES", "PAID", "WAITS"}, {"CLASHES conflict"},
	}
	if diff := cmp.Diff(got, want); diff != "" || w.meter["flush"] != 1 {
		t.Errorf("%d flushes; queue, dead letters, processed and notes (-got +want):\n%s", w.meter["flush"], diff)
	}
}

// Lambda accepts null as an empty list, but other readers of the response may not.
func TestBatchItemFailuresIsNeverNull(t *testing.T) {
	w := newWorld(t, standard)
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

// large returns an order with a body that is decoded in its lane.
func large(id string) string { return orderWithID(id) + strings.Repeat(" ", 20<<10) }

func TestALargeBodyDelaysNoOtherOrder(t *testing.T) {
	for name, kind := range map[string]string{"on a standard queue": standard, "in another FIFO group": fifo} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, kind)
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
				if diff := cmp.Diff(w.ids(), []string{"A", "B"}); diff != "" {
					t.Errorf("processed while a large body is decoded (-got +want):\n%s", diff)
				}
				close(gate)
				synctest.Wait()
				if diff := cmp.Diff(w.ids(), []string{"A", "B", "LARGE"}); diff != "" {
					t.Errorf("processed (-got +want):\n%s", diff)
				}
			})
		})
	}
}

// brokenError panics when it is read, such as an error whose pointer is nil.
type brokenError struct{}

func (brokenError) Error() string { panic("boom " + canary) }

// A panic in any step redelivers its message, unless the message is settled or parked
// already. runtime.Goexit ends a goroutine without a panic, so recover does not see it;
// it has the same effect.
func TestACrashInAnyStepFailsOnlyItsRecord(t *testing.T) {
	const panics, exits = "panic of type ", "worker goroutine exited"
	const boom = "boom " + canary
	broken := func(r order.Result) order.Result {
		r.Err = brokenError{}
		return r
	}
	for name, tt := range map[string]struct {
		breaks  func(*world)
		failed  []int  // which of the three messages, of which the second is an order
		wantLog string // of the second message
		wantErr string
	}{
		"decoding": {func(w *world) {
			w.Decode = func(body string) (sqs.Task, error) {
				if strings.Contains(body, "BAD") {
					panic(boom)
				}
				return w.Task(body)
			}
		}, []int{1}, "WARN panic", panics},
		"processing":         {func(w *world) { w.duringOrder("BAD", func() { panic(boom) }) }, []int{1}, "WARN panic", panics},
		"exits, processing":  {func(w *world) { w.duringOrder("BAD", runtime.Goexit) }, []int{1}, "WARN panic", exits},
		"creating an owner":  {func(w *world) { w.NewOwner = func() string { panic(boom) } }, []int{1}, "WARN panic", panics},
		"choosing the delay": {func(w *world) { w.Jitter = func() float64 { panic(boom) } }, []int{0, 1, 2}, "WARN panic", panics},
		"exits, reading the clock": {func(w *world) {
			first := sync.OnceValue(w.Handler.Now)
			calls := 0
			w.Parallel, w.Handler.Now = 1, func() time.Time {
				if calls++; calls > 1 {
					runtime.Goexit()
				}
				return first()
			}
		}, []int{0, 1, 2}, "ERROR <nil>", exits}, // its age cannot be reported either
		"parking": {func(w *world) { w.script["BAD"] = broken(conflict()) }, []int{1}, "WARN panic", panics},
		"reporting a redelivered message": {func(w *world) {
			w.script["BAD"] = broken(outage())
		}, []int{1}, "ERROR <nil>", panics},
		"reporting a settled message": {func(w *world) { w.script["BAD"] = broken(paid()) }, nil, "ERROR <nil>", panics},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, standard)
			tt.breaks(w)
			ids := w.send("no order", orderWithID("BAD"), "no order either")
			var want []string
			for _, i := range tt.failed {
				want = append(want, ids[i])
			}
			if diff := cmp.Diff(w.deliver(), want); diff != "" || len(w.messages(w.orders)) != len(want) {
				t.Errorf("%d messages left; batch item failures (-got +want):\n%s", len(w.messages(w.orders)), diff)
			}
			line := w.line("message_id", ids[1])
			got := fmt.Sprint(line["level"], " ", line["reason"])
			if text := fmt.Sprint(line["error"]); got != tt.wantLog || !strings.Contains(text, tt.wantErr) {
				t.Errorf("log of the second message = %q with the error %q, want %q with %q", got, text, tt.wantLog, tt.wantErr)
			}
			if strings.Contains(w.log.String(), canary) {
				t.Error("the log contains the value of the panic")
			}
			if got := w.meter["Received"]; got != 3 {
				t.Errorf("Received = %d, want 3", got)
			}
		})
	}
}

func TestLanesRunInParallelUpToTheLimit(t *testing.T) {
	w := newWorld(t, standard)
	for i := range 6 {
		w.send(orderWithID(fmt.Sprintf("ORD%d", i)))
	}
	e := w.receive()
	synctest.Test(t, func(t *testing.T) {
		w.Parallel = 2
		gate := w.gate()
		go func() { _, _ = w.Handle(t.Context(), e) }()
		for finished := range 6 {
			synctest.Wait()
			if got, want := len(w.processed), min(finished+2, 6); got != want {
				t.Errorf("%d orders started after %d have finished, want %d", got, finished, want)
			}
			gate <- struct{}{}
		}
		synctest.Wait()
	})
}

func TestMessagesOfOneOrderRunOneAfterTheOther(t *testing.T) {
	w := newWorld(t, standard)
	w.send(orderWithID("A"), large("A"), orderWithID("B"), orderWithID("A"))
	e := w.receive()
	synctest.Test(t, func(t *testing.T) {
		gate := w.gate()
		go func() { _, _ = w.Handle(t.Context(), e) }()
		for _, want := range [][]string{{"A", "B"}, {"A", "A", "B"}, {"A", "A", "A", "B"}} {
			synctest.Wait()
			if diff := cmp.Diff(w.ids(), want); diff != "" {
				t.Errorf("started orders (-got +want):\n%s", diff)
			}
			if len(want) == 2 {
				gate <- struct{}{} // of B
			}
			gate <- struct{}{}
		}
	})
}

// A group keeps its order for whatever reason its head is redelivered: the messages
// behind it are not processed and not parked, and are redelivered with the head.
func TestNothingOvertakesTheHeadOfItsFIFOGroup(t *testing.T) {
	unavailable := func(w *world) { w.server.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable) }
	for name, tt := range map[string]struct {
		breaks func(*world)
		result order.Result // of the head, if it is an order
		head   string
		delay  time.Duration // 0 means 3 s
	}{
		"the store is unavailable":                {result: outage()},
		"another attempt holds the order":         {result: inProgress(time.Minute), delay: 61 * time.Second},
		"it cannot be parked":                     {result: conflict(), breaks: unavailable},
		"it is not an order and cannot be parked": {head: "no order", breaks: unavailable},
		"the response to parking it is lost": {
			result: conflict(), breaks: func(w *world) { w.server.Lose("SendMessage", 1) },
		},
		"parking it panics":                 {result: order.Result{Verdict: order.Park, Err: brokenError{}}, delay: 5 * time.Second},
		"its worker exits":                  {breaks: func(w *world) { w.duringOrder("HEAD", runtime.Goexit) }},
		"the function timeout is too short": {breaks: func(w *world) { w.OrderBudget = order.MaxLease }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fifo)
			w.script["HEAD"] = tt.result
			if tt.breaks != nil {
				tt.breaks(w)
			}
			if tt.head == "" {
				tt.head = orderWithID("HEAD")
			}
			delay := max(tt.delay, 3*time.Second)
			ids := w.sendGrouped("g", tt.head, orderWithID("NEXT"), "no order")
			if diff := cmp.Diff(w.deliver(), ids); diff != "" {
				t.Errorf("batch item failures (-got +want):\n%s", diff)
			}
			if slices.Contains(w.ids(), "NEXT") || len(w.messages(w.dead)) > 1 {
				t.Errorf("processed %q and parked %q, want nothing behind the head", w.ids(), w.bodies(w.dead))
			}
			for _, id := range ids[1:] {
				if got := w.line("message_id", id)["reason"]; got != "behind_in_group" {
					t.Errorf("message %s is redelivered for %q, want behind_in_group", id, got)
				}
			}
			w.advance(delay - time.Second)
			early := w.visible()
			w.advance(time.Second)
			if diff := cmp.Diff(w.visible(), ids); diff != "" || len(early) > 0 {
				t.Errorf("visible before the head's delay %q, and after it (-got +want):\n%s", early, diff)
			}
		})
	}
}

// Messages of a standard queue may have group ids, for fairness (SQS developer guide,
// "Amazon SQS fair queues").
func TestAGroupOfAFairQueueIsNotOneOfFIFO(t *testing.T) {
	w := newWorld(t, standard)
	w.script["A1"] = outage()
	ids := w.sendGrouped("tenant", orderWithID("A1"), orderWithID("A2"))
	if diff := cmp.Diff(w.deliver(), ids[:1]); diff != "" {
		t.Errorf("batch item failures (-got +want):\n%s", diff)
	}
}

// A panic is its order's own failure, and counts toward parking.
func TestTheTwentiethPanicParks(t *testing.T) {
	w := newWorld(t, standard)
	w.deliveries = 20
	w.duringOrder("PANICS", runtime.Goexit)
	w.send(orderWithID("PANICS"))
	if failed, dead := w.deliver(), w.bodies(w.dead); len(failed) > 0 || !slices.Equal(dead, []string{"PANICS panic"}) {
		t.Errorf("batch item failures %q and dead letters %q, want the message parked", failed, dead)
	}
}

// No order starts without time to finish. If a new batch has less time than one order
// needs, every batch has. A body that can never become an order does not come back for
// want of time, and want of time parks no message, however often it was received.
func TestTheTimeThatIsLeft(t *testing.T) {
	const whole = 30 * time.Second
	for name, tt := range map[string]struct {
		first, timeout time.Duration // what the first order takes, of what
		poison         bool
		want           string // level, reason and delay of the second message
	}{
		"one budget is left":                   {whole - answerTime - orderBudget, whole, false, "INFO settled <nil>"},
		"less is left":                         {whole - answerTime - orderBudget + 1, whole, false, "INFO not_started 600"},
		"the shortest timeout":                 {0, answerTime + orderBudget, false, "INFO settled <nil>"},
		"a shorter timeout":                    {0, answerTime + orderBudget - 1, false, "WARN misconfigured 600"},
		"an invalid body with little time":     {whole - answerTime - 1, whole, true, "ERROR invalid_order <nil>"},
		"an invalid body with a short timeout": {0, answerTime + 1, true, "ERROR invalid_order <nil>"},
		"no time for calls to SQS":             {whole - answerTime, whole, true, "INFO not_started 600"},
		"a timeout without time for calls":     {0, answerTime, true, "WARN misconfigured 600"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, standard)
			w.Parallel, w.deliveries = 1, 500
			w.during = func(order.ID) { w.advance(tt.first) }
			second := orderWithID("B")
			if tt.poison {
				second = "{"
			}
			ids := w.send(orderWithID("A"), second)
			w.deliverWithin(tt.timeout, w.receive())
			line := w.line("message_id", ids[1])
			if got := fmt.Sprint(line["level"], " ", line["reason"], " ", line["retry_after_s"]); got != tt.want {
				t.Errorf("level, reason and delay: got %q, want %q", got, tt.want)
			}
			wantErr := "function timeout too short: 4.999999999s left for orders, ORDER_BUDGET is 5s"
			if name == "a shorter timeout" && line["error"] != wantErr {
				t.Errorf("error = %v, want %s", line["error"], wantErr)
			}
		})
	}
}

// Lambda redelivers the whole batch if it kills the function before the response.
func TestAQueueThatNeverRespondsDoesNotUseUpTheFunctionTimeout(t *testing.T) {
	w := newWorld(t, standard)
	w.script["WAITS"] = outage()
	ids := w.send(orderWithID("PAID"), orderWithID("WAITS"))
	e := w.receive()
	synctest.Test(t, func(t *testing.T) {
		w.Handler.Now = time.Now //nolint:forbidigo // the clock of the bubble, which also ends contexts
		w.through(doer(silent))
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
	w := newWorld(t, standard)
	w.script["CLASHES"], w.script["WAITS"] = conflict(), outage()
	w.send(orderWithID("CLASHES"), orderWithID("WAITS"), orderWithID("PAID"))
	e := w.receive()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	response, err := w.Handle(ctx, e)
	if len(response.BatchItemFailures) != 2 || err != nil || len(w.calls) > 0 {
		t.Errorf("got %v, %v and the calls %q, want two redelivered without a call", response, err, w.calls)
	}
}

// A lease ends with the function, and is never longer than a function can run.
func TestEveryRecordHasItsOwnLease(t *testing.T) {
	const answerTime, took = 100 * time.Millisecond, 100 * time.Millisecond
	for name, tt := range map[string]struct{ deadline, leased, ends time.Duration }{ // from now
		"at the deadline":           {30 * time.Second, 30 * time.Second, 30*time.Second - answerTime},
		"at most as a function":     {time.Hour, 15 * time.Minute, 15*time.Minute - answerTime},
		"without a deadline":        {0, 15 * time.Minute, 15*time.Minute - answerTime},
		"a second after a deadline": {-time.Minute, time.Second, -time.Minute}, // a context ends with its parent
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, standard)
			w.OrderBudget, w.AnswerTime = 0, answerTime
			w.during = func(order.ID) { w.advance(took) }
			ctx := t.Context()
			if tt.deadline != 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithDeadline(ctx, start().Add(tt.deadline))
				defer cancel()
			}
			w.send(good, good, good) // one lane
			response, err := w.Handle(ctx, w.receive())
			if err != nil || len(response.BatchItemFailures) > 0 {
				t.Errorf("got %v, %v, want no batch item failures", response, err)
			}
			var want []work
			for i := range 3 {
				lease := order.Lease{
					Owner: fmt.Sprint("owner-", i), From: start().Add(time.Duration(i) * took), Until: start().Add(tt.leased),
				}
				want = append(want, work{"ORD12345", start(), lease, start().Add(tt.ends)})
			}
			if diff := cmp.Diff(w.processed, want); diff != "" {
				t.Errorf("mismatch (-got +want):\n%s", diff)
			}
		})
	}
}

// Messages that failed together must not be redelivered together, also those of one batch
// and those that cannot be parked.
func TestEachMessageHasItsOwnJitter(t *testing.T) {
	w := newWorld(t, standard)
	jitter := 0.0
	w.Parallel, w.Jitter = 1, func() float64 { jitter += 0.1; return jitter }
	w.script = map[order.ID]order.Result{"A": outage(), "B": outage(), "C": conflict(), "D": conflict()}
	w.send(orderWithID("A"), orderWithID("B"), orderWithID("C"), orderWithID("D"))
	w.server.Fail("SendMessage", 2, sqstest.CodeServiceUnavailable)
	w.deliveries = 9 // 10 to 15 minutes
	w.deliver()
	got := map[string]any{}
	for _, line := range w.lines("msg", "order") {
		got[fmt.Sprint(line["order_id"])] = line["retry_after_s"]
	}
	// a message that cannot be parked uses jitter twice
	want := map[string]any{"A": 630.0, "B": 660.0, "C": 720.0, "D": 780.0}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("delays in seconds (-got +want):\n%s", diff)
	}
}

// A batch may take 15 minutes, so the action depends on the time at the end of
// processing, not on the start of the batch.
func TestTheHandlerAppliesItsPolicy(t *testing.T) {
	const took = 10 * time.Second
	for name, tt := range map[string]struct {
		retention time.Duration
		result    order.Result
		age       time.Duration
		fails     bool   // the dead-letter queue
		want      string // verdict and delay in seconds
	}{
		"a lease":                       {7 * day, inProgress(20 * time.Minute), 0, false, "redeliver 1191"},
		"its retention":                 {2 * day, outage(), day - took, false, "park <nil>"},
		"the last day has not begun":    {7 * day, outage(), 6*day - took - time.Second, false, "redeliver 600"},
		"the last day, without parking": {7 * day, conflict(), 6*day - took, true, "redeliver 30"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, standard)
			w.Policy.Retention, w.deliveries = tt.retention, 9
			w.during = func(order.ID) { w.advance(took) }
			w.script["ORD12345"] = tt.result
			if tt.fails {
				w.server.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable)
			}
			id := w.send(good)[0]
			w.advance(tt.age)
			w.deliver()
			line := w.line("message_id", id)
			if got := fmt.Sprint(line["verdict"], " ", line["retry_after_s"]); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAVisibilityChangeThatFailsIsOnlyAWarning(t *testing.T) {
	fails := func(w *world, _ events.SQSEvent) {
		w.server.Fail("ChangeMessageVisibilityBatch", 1, sqstest.CodeServiceUnavailable)
	}
	for claim, tt := range map[string]struct {
		messages int
		breaks   func(w *world, e events.SQSEvent)
		warning  string // how it begins
		calls    int
		delayed  int // messages that become visible after their delay of 3 s, the others after 3 min
	}{
		"the queue's visibility timeout applies": {2, fails, "change the visibility of 2 messages: ", 1, 0},
		"the others of an entry that fails are delayed": {2, func(_ *world, e events.SQSEvent) {
			e.Records[1].MessageId, e.Records[1].ReceiptHandle = "the second", "not a handle"
		}, "change the visibility of message the second: ReceiptHandleIsInvalid", 1, 1},
		"of several calls one may fail": {23, fails, "change the visibility of 10 messages: ", 3, 13},
		"a lost response": {1, func(w *world, _ events.SQSEvent) {
			w.server.Lose("ChangeMessageVisibilityBatch", 1)
		}, "change the visibility of 1 messages: ", 1, 1},
	} {
		t.Run(claim, func(t *testing.T) {
			w := newWorld(t, standard)
			for i := range tt.messages {
				id := fmt.Sprintf("ORD%d", i)
				w.script[order.ID(id)] = outage()
				w.send(orderWithID(id))
			}
			e := w.receive()
			tt.breaks(w, e)
			if got := len(w.deliverWithin(time.Minute, e)); got != tt.messages || len(w.calls) != tt.calls {
				t.Errorf("%d batch item failures in %d calls, want %d in %d", got, len(w.calls), tt.messages, tt.calls)
			}
			line := w.line("msg", "visibility not changed: the queue's visibility timeout applies")
			got := fmt.Sprint(line["level"], " ", line["request_id"], " ", line["error"])
			if want := "WARN request-1 " + tt.warning; !strings.HasPrefix(got, want) {
				t.Errorf("warning = %q, want %q", got, want)
			}
			w.advance(3 * time.Second)
			soon := len(w.visible())
			w.advance(3*time.Minute - 3*time.Second)
			if later := len(w.visible()); soon != tt.delayed || later != tt.messages {
				t.Errorf("%d messages are visible after their delay and %d after the queue's timeout, want %d and %d",
					soon, later, tt.delayed, tt.messages)
			}
		})
	}
}

// A task without the optional functions is run, logged with its attributes, and parked.
func TestATaskNeedsNoMoreThanRun(t *testing.T) {
	w := newWorld(t, standard)
	w.Decode = func(body string) (sqs.Task, error) {
		return sqs.Task{
			ID: order.ID(body), Attrs: []slog.Attr{slog.String("label_id", "L-"+body)},
			Run: func(context.Context, sqs.Delivery, order.Lease) order.Result { return conflict() },
		}, nil
	}
	w.send("A")
	if failed := w.deliver(); len(failed) > 0 || w.line("order_id", "A")["label_id"] != "L-A" ||
		!slices.Equal(w.bodies(w.dead), []string{"A conflict"}) {
		t.Errorf("failed %q, dead letters %q, log %v; want A parked", failed, w.bodies(w.dead), w.line("order_id", "A"))
	}
}
