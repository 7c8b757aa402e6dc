package sqs_test

import (
	"context"
	"encoding/json"
	"fmt"
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

// only compares two lists of ids, where nil and empty are the same.
func only(t rapid.TB, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))); diff != "" {
		t.Errorf("%s: got - want +\n%s", what, diff)
	}
}

func TestOnlyWhatHasToComeBackIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["WAITS"], w.script["CLASHES"] = outage(), conflict()
	ids := w.send(named("PAID"), named("WAITS"), named("CLASHES"), "no order")
	only(t, "failed", w.round(), ids[1])
	only(t, "on the queue", w.holds(w.orders), ids[1])
	if got := len(w.holds(w.dead)); got != 2 {
		t.Errorf("got %d dead letters, want 2", got)
	}
	if got := w.counted("flush"); got != 1 {
		t.Errorf("got %d flushes of the meter, want 1", got)
	}
}

// Lambda takes null for an empty list, but a reader of the answer need not.
func TestTheListOfFailuresIsNeverNull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(good)
	for _, e := range []events.SQSEvent{{}, w.receive()} {
		answer, err := w.Handle(t.Context(), e)
		w.must(err)
		got, err := json.Marshal(answer)
		w.must(err)
		if want := `{"batchItemFailures":[]}`; string(got) != want {
			t.Errorf("got %s for %d records, want %s", got, len(e.Records), want)
		}
	}
}

func TestAPoisonRecordIsParkedAtOnceAndDelaysNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.send(named("A"), "{", named("B"), strings.Repeat("x", sqs.MaxBody+1), named("C"))
	only(t, "failed", w.round())
	only(t, "on the queue", w.holds(w.orders))
	only(t, "worked on", workedIDs(w), "A", "B", "C")
	for _, m := range w.messages(w.dead) {
		got := m.Attributes[sqs.AttrReason].Text
		if first := m.Attributes[sqs.AttrFirstMessageID].Text; got != "invalid_order" || first != ids[1] && first != ids[3] {
			t.Errorf("message %s was parked for %q", first, got)
		}
	}
}

func workedIDs(w *world) (ids []string) {
	for _, d := range w.worked() {
		ids = append(ids, string(d.ID))
	}
	return ids
}

func TestAPanicFailsOnlyItsRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Process = func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result {
		if o.ID() == "BAD" {
			panic("boom " + canary)
		}
		return w.process(ctx, o, sent, l)
	}
	ids := w.send(named("A"), named("BAD"), named("C"))
	only(t, "failed", w.round(), ids[1])
	only(t, "worked on", workedIDs(w), "A", "C")
	line := w.lineOf("BAD")
	if line["reason"] != "panic" || !strings.Contains(fmt.Sprint(line["error"]), "panic of type string at") {
		t.Errorf("got the line %v", line)
	}
	if strings.Contains(w.log.String(), canary) {
		t.Error("the log repeats what was thrown")
	}
	w.hiddenFor(ids[1], 3*time.Second)
}

// brokenError is an error that nobody can read, such as a nil pointer that became one.
type brokenError struct{}

func (brokenError) Error() string { panic("boom " + canary) }

// Whatever panics, and wherever: the message comes back unless it was done with, and its neighbors are untouched.
func TestAPanicOutsideTheOrderFailsOnlyItsRecord(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		breaks func(*world)
		failed []int  // which of the three messages
		says   string // in the log, of the second one
	}{
		{"decoding", func(w *world) { w.Decode = new(sqs.Decoder).Decode }, []int{1}, "WARN panic"},
		{"drawing an owner", func(w *world) { w.NewOwner = func() string { panic("boom " + canary) } }, []int{1}, "WARN panic"},
		{"answering anybody", func(w *world) {
			w.script["BAD"], w.Jitter = outage(), func() float64 { panic("boom " + canary) }
		}, []int{0, 1, 2}, "WARN panic"},
		{"parking", func(w *world) {
			w.script["BAD"] = order.Result{Verdict: order.Park, Reason: order.ReasonRefused, Err: brokenError{}}
		}, []int{1}, "WARN panic"},
		{"reporting what comes back", func(w *world) {
			w.script["BAD"] = order.Result{Verdict: order.Redeliver, Reason: order.ReasonStore, Transient: true, Err: brokenError{}}
		}, []int{1}, "ERROR <nil>"},
		{"reporting what is done", func(w *world) {
			w.script["BAD"] = order.Result{Verdict: order.Done, Reason: order.ReasonSettled, Err: brokenError{}}
		}, nil, "ERROR <nil>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.breaks(w)
			ids := w.send("no order", named("BAD"), "no order either")
			var want []string
			for _, i := range tt.failed {
				want = append(want, ids[i])
			}
			only(t, "failed", w.round(), want...)
			said := ""
			for _, line := range w.lines() {
				if line["message_id"] == ids[1] {
					said += fmt.Sprint(line["level"], " ", line["reason"])
					if !strings.Contains(fmt.Sprint(line["error"]), "panic of type ") {
						t.Errorf("got the line %v, want one that says what was thrown where", line)
					}
				}
			}
			if said != tt.says || strings.Contains(w.log.String(), canary) {
				t.Errorf("got the lines %q, want %q and nothing of what was thrown", said, tt.says)
			}
		})
	}
}

// runtime.Goexit ends a goroutine without a panic, so recover does not see it. A worker that ends this way settled
// nothing: its message comes back, and the rest of its lane is processed.
func TestAWorkerThatExitsFailsOnlyItsRecord(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		breaks func(*world)
		failed []int  // which of the three messages
		says   string // in the log, of the second message
	}{
		{"processing the order", func(w *world) {
			w.Process = func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result {
				if len(w.worked()) == 1 {
					_ = w.process(ctx, o, sent, l)
					runtime.Goexit()
				}
				return w.process(ctx, o, sent, l)
			}
		}, []int{1}, "WARN panic"},
		{"creating an owner", func(w *world) {
			w.NewOwner = func() string {
				if len(w.worked()) > 0 {
					runtime.Goexit()
				}
				return "owner"
			}
		}, []int{1, 2}, "WARN panic"},
		{"reading the clock", func(w *world) {
			first := sync.OnceValue(w.Handler.Now)
			calls := 0
			w.Handler.Now = func() time.Time {
				if calls++; calls > 1 {
					runtime.Goexit()
				}
				return first()
			}
		}, []int{0, 1, 2}, "ERROR <nil>"}, // its age cannot be reported either
		{"choosing the delay", func(w *world) { w.Jitter = func() float64 { runtime.Goexit(); return 0 } }, []int{0, 1, 2}, "WARN panic"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Parallel = 1
			tt.breaks(w)
			ids := w.send(good, good, good) // one lane
			var want []string
			for _, i := range tt.failed {
				want = append(want, ids[i])
			}
			got := w.round()
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("failed: got - want +\n%s", diff)
			}
			if diff := cmp.Diff(w.holds(w.orders), want); diff != "" {
				t.Errorf("on the queue: got - want +\n%s", diff)
			}
			says := ""
			for _, line := range w.lines() {
				if line["message_id"] == ids[1] {
					says += fmt.Sprint(line["level"], " ", line["reason"])
					if text := fmt.Sprint(line["error"]); !strings.Contains(text, "worker goroutine exited") {
						t.Errorf("error = %q, want it to name the exit", text)
					}
				}
			}
			if says != tt.says {
				t.Errorf("log of the second message = %q, want %q", says, tt.says)
			}
			if received := w.counted("Received"); received != 3 {
				t.Errorf("Received = %d, want 3", received)
			}
		})
	}
}

func TestOrdersOfABatchRunSideBySideUpToTheBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 6 {
		w.send(named(fmt.Sprintf("ORD%d", i)))
	}
	e := w.receive()
	synctest.Test(t, func(t *testing.T) {
		w.Parallel = 2
		started, gate := gated(w)
		go func() { _, _ = w.Handle(t.Context(), e) }()
		for finished := range 6 {
			synctest.Wait()
			if got, want := len(*started), min(finished+2, 6); got != want {
				t.Errorf("got %d orders started when %d have finished, want %d", got, finished, want)
			}
			gate <- struct{}{}
		}
		synctest.Wait()
	})
}

func TestMessagesOfOneOrderRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(named("A"), named("A"), named("B"), named("A"))
	e := w.receive()
	synctest.Test(t, func(t *testing.T) {
		started, gate := gated(w)
		go func() { _, _ = w.Handle(t.Context(), e) }()
		synctest.Wait()
		only(t, "started", *started, "A", "B")
		gate <- struct{}{}
		gate <- struct{}{}
		synctest.Wait()
		only(t, "started", *started, "A", "B", "A")
		gate <- struct{}{}
		synctest.Wait()
		only(t, "started", *started, "A", "B", "A", "A")
		gate <- struct{}{}
	})
}

func TestWithoutAGroupAFailureStopsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Parallel = 1
	w.Process = func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result {
		if r := w.process(ctx, o, sent, l); len(w.worked()) > 1 {
			return r
		}
		return outage()
	}
	ids := w.send(named("A"), named("A"), named("B"))
	only(t, "failed", w.round(), ids[0])
	only(t, "worked on", workedIDs(w), "A", "A", "B")
}

// gated lets each order start, and end only when the gate gives it a turn. It touches no queue. Read started only when
// synctest says that nothing runs.
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

func TestAFIFOGroupStopsAtItsFirstFailure(t *testing.T) {
	t.Parallel()
	w := newFIFOWorld(t)
	w.script["A2"] = order.Result{Verdict: order.Redeliver, Reason: order.ReasonInProgress, NotBefore: start().Add(time.Minute), Transient: true}
	w.script["C1"] = conflict()
	var ids []string
	for _, m := range [][2]string{
		{"a", named("A1")},
		{"a", named("A2")},
		{"b", named("B1")},
		{"a", named("A3")},
		{"a", "no order"},
		{"c", named("C1")},
		{"c", named("C2")},
		{"a", named("A4")},
	} {
		ids = append(ids, w.sendGrouped(m[0], m[1]))
	}
	failed := w.round()
	only(t, "failed", failed, ids[1], ids[3], ids[4], ids[7])
	only(t, "worked on", workedIDs(w), "A1", "A2", "B1", "C1", "C2")
	if got := len(w.holds(w.dead)); got != 1 {
		t.Errorf("got %d dead letters, want the conflict alone: what is behind in its group waits", got)
	}
	if got := w.counted("Redelivered behind_in_group"); got != 3 {
		t.Errorf("got %d messages behind in their group, want 3", got)
	}
	w.pass(60 * time.Second)
	only(t, "visible too early", w.visible())
	w.pass(time.Second)
	only(t, "visible with the head of the group", w.visible(), ids[1], ids[3], ids[4], ids[7])
}

// The order of a group holds whatever the reason is for which its head comes back: what follows is
// not processed, not parked, and comes back with the head.
func TestNothingOvertakesTheHeadOfItsFIFOGroup(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		head   string // its body
		breaks func(*world)
		delay  time.Duration
	}{
		"it waits for the store": {named("HEAD"), func(w *world) { w.script["HEAD"] = outage() }, 3 * time.Second},
		"it failed by itself": {named("HEAD"), func(w *world) {
			w.script["HEAD"] = order.Result{Verdict: order.Redeliver, Reason: order.ReasonUnconfirmed, Attempt: 1}
		}, 3 * time.Second},
		"another attempt holds it": {named("HEAD"), func(w *world) {
			w.script["HEAD"] = order.Result{
				Verdict: order.Redeliver, Reason: order.ReasonInProgress, NotBefore: start().Add(time.Minute), Transient: true,
			}
		}, 61 * time.Second},
		"it could not be parked": {named("HEAD"), func(w *world) {
			w.script["HEAD"] = conflict()
			w.server.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable)
		}, 3 * time.Second},
		"it is no order and could not be parked": {"no order", func(w *world) {
			w.server.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable)
		}, 3 * time.Second},
		"the answer to its parking was lost": {named("HEAD"), func(w *world) {
			w.script["HEAD"] = conflict()
			w.server.Lose("SendMessage", 1)
		}, 3 * time.Second},
		"it panicked":       {named("HEAD"), func(w *world) { w.failsFor("HEAD", func() { panic("boom") }) }, 3 * time.Second},
		"its worker exited": {named("HEAD"), func(w *world) { w.failsFor("HEAD", runtime.Goexit) }, 3 * time.Second},
		"parking it panicked": {named("HEAD"), func(w *world) {
			w.script["HEAD"] = order.Result{Verdict: order.Park, Reason: order.ReasonRefused, Err: brokenError{}}
		}, 5 * time.Second},
		"nobody gave a verdict": {named("HEAD"), func(w *world) { w.script["HEAD"] = order.Result{} }, 3 * time.Second},
		"the batch has no time": {named("HEAD"), func(w *world) { w.OrderBudget = order.MaxLease }, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFIFOWorld(t)
			tt.breaks(w)
			ids := []string{w.sendGrouped("g", tt.head), w.sendGrouped("g", named("NEXT")), w.sendGrouped("g", "no order")}
			if diff := cmp.Diff(w.round(), ids); diff != "" {
				t.Errorf("batch item failures: got - want +\n%s", diff)
			}
			if worked := workedIDs(w); slices.Contains(worked, "NEXT") {
				t.Errorf("orders %q were processed, want none behind the head", worked)
			}
			for _, m := range w.messages(w.dead) {
				if got := m.Attributes[sqs.AttrFirstMessageID].Text; got != ids[0] {
					t.Errorf("message %s was parked, want none behind the head", got)
				}
			}
			for _, id := range ids[1:] {
				if got := w.reasonOf(id); got != "behind_in_group" {
					t.Errorf("message %s comes back for %q, want behind_in_group", id, got)
				}
			}
			w.pass(tt.delay - time.Second)
			if got := w.visible(); len(got) > 0 {
				t.Errorf("messages %q are visible before the head's delay of %v is over", got, tt.delay)
			}
			w.pass(time.Second)
			if diff := cmp.Diff(w.visible(), ids); diff != "" {
				t.Errorf("visible after the head's delay: got - want +\n%s", diff)
			}
		})
	}
}

// failsFor makes the work on one order end in f.
func (w *world) failsFor(id order.ID, f func()) {
	w.Process = func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result {
		if o.ID() == id {
			f()
		}
		return w.process(ctx, o, sent, l)
	}
}

// reasonOf is the reason in the log line of a message.
func (w *world) reasonOf(messageID string) string {
	w.t.Helper()
	for _, line := range w.lines() {
		if line["message_id"] == messageID {
			return fmt.Sprint(line["reason"])
		}
	}
	return ""
}

// In every batch, what comes back of a FIFO group is the end of it: the first message that fails,
// and all behind it, of which none was processed.
func TestAFIFOGroupIsWorkedOffInItsOrder(t *testing.T) {
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
			body := rapid.SampledFrom([]string{named(id), named(id), "no order"}).Draw(t, "body")
			w.sendGrouped(rapid.SampledFrom([]string{"g", "h"}).Draw(t, "group"), body)
		}
		w.server.Fail("SendMessage", rapid.IntRange(0, 2).Draw(t, "times that parking fails"), sqstest.CodeServiceUnavailable)

		e := w.receive()
		failed := w.deliver(t.Context(), e)
		heads := map[string]string{} // the first message of each group that fails
		for _, m := range e.Records {
			group, id := m.Attributes["MessageGroupId"], m.MessageId
			head, stopped := heads[group]
			switch {
			case stopped && !slices.Contains(failed, id):
				t.Fatalf("message %s is done, although %s of its group comes back", id, head)
			case stopped && w.reasonOf(id) != "behind_in_group":
				t.Fatalf("message %s comes back for %s, want behind_in_group after %s", id, w.reasonOf(id), head)
			case !stopped && slices.Contains(failed, id):
				heads[group] = id
			}
		}
	})
}

// A message is received as often as those before it in its group, but only its own tries count.
func TestAFollowerIsNotParkedForItsHeadsTries(t *testing.T) {
	t.Parallel()
	w := newFIFOWorld(t)
	tried := map[order.ID]int{}
	w.Process = func(_ context.Context, o order.Order, _ time.Time, _ order.Lease) order.Result {
		tried[o.ID()]++
		return order.Result{Verdict: order.Redeliver, Reason: order.ReasonUnconfirmed, Attempt: tried[o.ID()]}
	}
	ids := []string{w.sendGrouped("g", named("HEAD")), w.sendGrouped("g", named("NEXT"))}
	for range 19 {
		only(t, "failed", w.round(), ids...)
		w.pass(15 * time.Minute)
	}
	for tries := 1; tries < 20; tries++ {
		only(t, "failed once the head is parked", w.round(), ids[1])
		if diff := cmp.Diff(tried, map[order.ID]int{"HEAD": 20, "NEXT": tries}); diff != "" {
			t.Fatalf("tries: got - want +\n%s", diff)
		}
		w.pass(15 * time.Minute)
	}
	only(t, "failed at the twentieth try", w.round())
	if got := len(w.holds(w.dead)); got != 2 {
		t.Errorf("got %d dead letters, want 2", got)
	}
}

// A standard queue may carry group ids, for fairness among tenants (SQS developer guide, "Amazon SQS fair queues").
func TestAGroupOfAFairQueueHasNoOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["A1"] = outage()
	ids := []string{
		w.sendDraft(sqstest.Draft{Body: named("A1"), Group: "tenant"}),
		w.sendDraft(sqstest.Draft{Body: named("A2"), Group: "tenant"}),
	}
	only(t, "failed", w.round(), ids[0])
	only(t, "worked on", workedIDs(w), "A1", "A2")
}

func TestNothingStartsThatCouldNotEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		first  time.Duration // of the invocation's 30 s
		starts bool
	}{
		{"a second order starts when one budget is left", 30*time.Second - answerTime - orderBudget, true},
		{"a second order does not start with less", 30*time.Second - answerTime - orderBudget + time.Nanosecond, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Parallel = 1
			w.Process = func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result {
				defer w.pass(tt.first)
				return w.process(ctx, o, sent, l)
			}
			ids := w.send(named("A"), named("B"))
			ctx, cancel := context.WithDeadline(t.Context(), start().Add(30*time.Second))
			defer cancel()
			failed := w.deliver(ctx, w.receive())
			if tt.starts {
				only(t, "failed", failed)
				return
			}
			only(t, "failed", failed, ids[1])
			only(t, "visible at once", w.visible(), ids[1])
			if got := w.lineOf("B"); got["reason"] != "not_started" || got["level"] != "INFO" {
				t.Errorf("got the line %v", got)
			}
		})
	}
}

func TestWhatFindsNoTimeAgainAndAgainWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Parallel = 1
	w.Process = func(context.Context, order.Order, time.Time, order.Lease) order.Result {
		w.pass(30*time.Second - answerTime)
		return paid()
	}
	late := w.send(named("LATE"))[0]
	for delivery, want := range []time.Duration{0, 0, 0, 20 * time.Second, 40 * time.Second} {
		w.send(named("FIRST"))
		e := w.receive()
		if e.Records[0].MessageId == late {
			slices.Reverse(e.Records)
		}
		ctx, cancel := context.WithDeadline(t.Context(), w.Now().Add(30*time.Second))
		only(t, fmt.Sprintf("failed in delivery %d", delivery+1), w.deliver(ctx, e), late)
		cancel()
		w.hiddenFor(late, want)
	}
	if got := w.counted("Redelivered not_started"); got != 5 {
		t.Errorf("got %d deliveries that could not start, want 5", got)
	}
}

// Less time than one order needs, when a batch begins, is what every batch will have.
func TestAFunctionWithoutTimeForOneOrderIsMisconfigured(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		starts  bool
	}{
		{"the shortest time-out lets one order start", answerTime + orderBudget, true},
		{"less lets none start", answerTime + orderBudget - time.Nanosecond, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.send(named("A"))[0]
			ctx, cancel := context.WithDeadline(t.Context(), start().Add(tt.timeout))
			defer cancel()
			failed := w.deliver(ctx, w.receive())
			if tt.starts {
				only(t, "failed", failed)
				return
			}
			only(t, "failed", failed, id)
			only(t, "worked on", workedIDs(w))
			line := w.lineOf("A")
			got := []any{line["level"], line["reason"], line["error"]}
			want := []any{
				"WARN", "misconfigured", "function timeout too short: 4.999999999s left for orders, ORDER_BUDGET is 5s",
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("got - want +\n%s", diff)
			}
			w.hiddenFor(id, 3*time.Second)
		})
	}
}

// silentQueue is a queue that accepts every call and never answers.
type silentQueue struct{}

func (silentQueue) Do(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// Lambda must hear which messages are done before it kills the function, or it brings them all back.
func TestAQueueThatNeverAnswersDoesNotUseUpTheFunctionsTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["WAITS"] = outage()
	ids := w.send(named("PAID"), named("WAITS"))
	e := w.receive()
	synctest.Test(t, func(t *testing.T) {
		w.Handler.Now = time.Now //nolint:forbidigo // the clock of the bubble, which also ends contexts
		w.Queue = sqs.NewQueue(aws.Config{
			Region: sqstest.Region, HTTPClient: silentQueue{}, Credentials: aws.AnonymousCredentials{},
		}, "http://queue.test/orders", "http://queue.test/dead")
		deadline := w.Handler.Now().Add(30 * time.Second)
		ctx, cancel := context.WithDeadline(t.Context(), deadline)
		defer cancel()
		answer, err := w.Handle(ctx, e)
		if left := deadline.Sub(w.Handler.Now()); left != answerTime/4 {
			t.Errorf("%v of the function's time are left for its answer, want %v", left, answerTime/4)
		}
		if want := []events.SQSBatchItemFailure{{ItemIdentifier: ids[1]}}; err != nil || !slices.Equal(answer.BatchItemFailures, want) {
			t.Errorf("got %v, %v, want %v", answer, err, want)
		}
	})
}

// The worker of an invocation that has ended may be frozen at any call, and act much later.
func TestAnInvocationThatHasEndedCallsSQSNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["CLASHES"], w.script["WAITS"] = conflict(), outage()
	ids := w.send(named("CLASHES"), named("WAITS"), named("PAID"))
	e := w.receive()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if diff := cmp.Diff(w.deliver(ctx, e), ids[:2]); diff != "" {
		t.Errorf("batch item failures: got - want +\n%s", diff)
	}
	if len(w.calls) > 0 {
		t.Errorf("%d calls of SQS, want none", len(w.calls))
	}
}

func TestALeaseEndsWithTheFunction(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		deadline, leased time.Duration // from now
	}{
		{"the lease ends at the deadline", 30 * time.Second, 30 * time.Second},
		{"the lease is never longer than a function can run", time.Hour, 15 * time.Minute},
		{"without a deadline it is that long", 0, 15 * time.Minute},
		{"a deadline that has passed leaves a second", -time.Minute, time.Second},
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
			only(t, "failed", w.deliver(ctx, w.receive()))
			until := start().Add(tt.leased)
			contextEnds := until.Add(-w.AnswerTime)
			if tt.deadline < 0 {
				contextEnds = start().Add(tt.deadline) // a context never outlives its parent
			}
			want := []work{{"ORD12345", order.Lease{Owner: "owner-0", From: start(), Until: until}, contextEnds}}
			if diff := cmp.Diff(w.worked(), want); diff != "" {
				t.Errorf("got - want +\n%s", diff)
			}
		})
	}
}

func TestEveryRecordHasAnOwnerOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Parallel = 1 // the owners are numbers of what was worked on
	w.send(named("A"), named("A"), named("B"))
	w.round()
	owners := map[string]bool{}
	for _, d := range w.worked() {
		owners[d.Lease.Owner] = true
	}
	if len(owners) != 3 {
		t.Errorf("got the owners %v for three records", owners)
	}
}

// Orders that fail together must not come back together, also those of one batch, and also those
// that could not be parked.
func TestEachMessageHasALuckOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Parallel = 1
	draws := 0.0
	w.Jitter = func() float64 { draws += 0.1; return draws }
	w.script = map[order.ID]order.Result{"A": outage(), "B": outage(), "C": conflict(), "D": conflict()}
	w.send(named("A"), named("B"), named("C"), named("D"))
	w.server.Fail("SendMessage", 2, sqstest.CodeServiceUnavailable)
	e := w.receive()
	for i := range e.Records {
		e.Records[i].Attributes["ApproximateReceiveCount"] = "9" // 10 to 15 minutes
	}
	w.deliver(t.Context(), e)
	got := map[string]any{}
	for _, line := range w.lines() {
		got[fmt.Sprint(line["order_id"])] = line["retry_after_s"]
	}
	want := map[string]any{"A": 630.0, "B": 660.0, "C": 720.0, "D": 780.0} // one that could not be parked drew twice
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("delays in seconds: got - want +\n%s", diff)
	}
}

func TestAMessageComesBackAfterItsDelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["ORD12345"] = order.Result{Verdict: order.Redeliver, Reason: order.ReasonUnconfirmed}
	id := w.send(good)[0]
	delays := []int{3, 5, 10, 20, 40, 80, 160, 340, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600}
	for _, seconds := range delays {
		only(t, "failed", w.round(), id)
		w.hiddenFor(id, time.Duration(seconds)*time.Second)
	}
	only(t, "failed at the twentieth delivery", w.round())
	if got := w.messages(w.dead)[0].Attributes[sqs.AttrReason].Text; got != "unconfirmed" {
		t.Errorf("got it parked for %q, want its own reason", got)
	}
}

func TestAnOutageParksNothingBeforeTheQueueWouldLoseIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["ORD12345"] = outage()
	id := w.send(good)[0]
	for range 30 {
		only(t, "failed", w.round(), id)
		w.pass(15 * time.Minute)
	}
	w.pass(6*day - 30*15*time.Minute - time.Second)
	only(t, "failed before its last day", w.round(), id)
	w.pass(15 * time.Minute)
	only(t, "failed on its last day", w.round())
	if got := w.messages(w.dead)[0].Attributes[sqs.AttrReason].Text; got != "store_unavailable" {
		t.Errorf("got it parked for %q, want the reason that it waited for", got)
	}
}

func TestVisibilityIsACourtesy(t *testing.T) {
	t.Parallel()
	warnings := func(w *world) (all []string) {
		for _, line := range w.lines() {
			if _, ofOrder := line["order_id"]; !ofOrder {
				all = append(all, fmt.Sprint(line["level"], " ", line["request_id"], " ", line["error"]))
			}
		}
		return all
	}
	t.Run("a call that fails is one warning, and the messages come back with the queue's own timeout", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.script["A"], w.script["B"] = outage(), outage()
		ids := w.send(named("A"), named("B"))
		w.server.Fail("ChangeMessageVisibilityBatch", 1, sqstest.CodeServiceUnavailable)
		only(t, "failed", w.round(), ids...)
		got := warnings(w)
		if len(got) != 1 || !strings.HasPrefix(got[0], "WARN request-1 change the visibility of 2 messages: ") {
			t.Errorf("got %q, want one warning", got)
		}
		w.hiddenFor(ids[0], 3*time.Minute)
	})
	t.Run("an entry that fails is named, and the others have their delay", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.script["A"], w.script["B"] = outage(), outage()
		ids := w.send(named("A"), named("B"))
		e := w.receive()
		e.Records[1].ReceiptHandle = "not a handle"
		only(t, "failed", w.deliver(t.Context(), e), ids...)
		want := []string{"WARN request-1 change the visibility of message " + ids[1] + ": ReceiptHandleIsInvalid"}
		if diff := cmp.Diff(warnings(w), want); diff != "" {
			t.Errorf("got - want +\n%s", diff)
		}
		w.hiddenFor(ids[0], 3*time.Second)
	})
	t.Run("more than ten messages take more than one call, and one call may fail alone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		var ids []string
		for i := range 23 {
			id := fmt.Sprintf("ORD%d", i)
			w.script[order.ID(id)] = outage()
			ids = append(ids, w.send(named(id))...)
		}
		w.server.Fail("ChangeMessageVisibilityBatch", 1, sqstest.CodeServiceUnavailable)
		only(t, "failed", w.round(), ids...)
		w.pass(3 * time.Second)
		if got := len(w.visible()); len(w.calls) != 3 || got != 13 {
			t.Errorf("got %d calls and %d messages visible, want 3 and 13", len(w.calls), got)
		}
	})
	t.Run("a lost answer changes nothing but the warning", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.script["ORD12345"] = outage()
		id := w.send(good)[0]
		w.server.Lose("ChangeMessageVisibilityBatch", 1)
		only(t, "failed", w.round(), id)
		if got := warnings(w); len(got) != 1 {
			t.Errorf("got %q, want one warning", got)
		}
		w.hiddenFor(id, 3*time.Second)
	})
}

// results is any result of an order; each is one that the domain gives.
func results() *rapid.Generator[order.Result] {
	return rapid.SampledFrom([]order.Result{
		paid(), conflict(), outage(),
		{Verdict: order.Done, Reason: order.ReasonDuplicate, Status: order.Declined},
		{Verdict: order.Redeliver, Reason: order.ReasonUnconfirmed, Attempt: 2, Takeover: true},
		{Verdict: order.Redeliver, Reason: order.ReasonClaimLost, Transient: true},
		{Verdict: order.Redeliver, Reason: order.ReasonUnknown, Transient: true, RequestID: "req_1"},
		{Verdict: order.Redeliver, Reason: order.ReasonInProgress, NotBefore: start(), Transient: true},
	})
}

// received = acked + redelivered + parked, in the metrics and in the queues.
func TestEveryDeliveryIsCountedOnceByWhatBecameOfIt(t *testing.T) {
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
		w.pass(20 * time.Minute)

		received, redelivered, parked := w.counted("Received"), w.counted("Redelivered"), w.counted("Parked")
		acked := w.counted("Settled") + w.counted("Duplicates")
		if received != delivered || redelivered != failed || received != acked+redelivered+parked {
			t.Fatalf("got %d received, %d acked, %d redelivered, %d parked; want %d delivered, %d failed",
				received, acked, redelivered, parked, delivered, failed)
		}
		if ages := len(w.waitingAges()); ages != redelivered {
			t.Fatalf("got %d values of WaitingAge for %d messages that come back", ages, redelivered)
		}
		waiting, dead := len(w.holds(w.orders)), len(w.holds(w.dead))
		if dead != parked || sent != acked+parked+waiting {
			t.Fatalf("%d sent, %d acked, %d parked; got %d waiting and %d dead", sent, acked, parked, waiting, dead)
		}
		if lines := len(w.lines()); lines != received {
			t.Fatalf("got %d lines for %d deliveries", lines, received)
		}
	}
}

// sendAnything sends orders whose results it draws, bodies that are none, and now and then a fault of the dead-letter queue.
func sendAnything(t *rapid.T, w *world) (sent int) {
	t.Helper()
	for id, r := range rapid.MapOf(rapid.StringMatching("[A-F]"), results()).Draw(t, "script") {
		w.script[order.ID(id)] = r
	}
	bodies := rapid.SliceOfN(rapid.Map(rapid.StringMatching("[A-F]|no order"), func(id string) string {
		if id == "no order" {
			return id
		}
		return named(id)
	}), 0, 8).Draw(t, "bodies")
	if rapid.IntRange(0, 3).Draw(t, "the dead-letter queue fails") == 0 {
		w.server.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable)
	}
	for _, body := range bodies {
		w.sendInto(rapid.SampledFrom([]string{"g", "h", "i"}).Draw(t, "group"), body)
	}
	return len(bodies)
}

// One handler serves a whole process; the race detector watches.
func TestFiftyBatchesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var batches []events.SQSEvent
	for b := range 50 {
		for i := range 5 {
			id := fmt.Sprintf("B%d-%d", b, i)
			w.send(named(id))
			w.script[order.ID(id)] = []order.Result{paid(), outage(), conflict(), paid(), paid()}[i]
		}
		batches = append(batches, w.receive())
	}
	var all sync.WaitGroup
	for b, e := range batches {
		all.Go(func() {
			answer, err := w.Handle(t.Context(), e)
			if err != nil || len(answer.BatchItemFailures) != 1 || answer.BatchItemFailures[0].ItemIdentifier != e.Records[1].MessageId {
				t.Errorf("batch %d: got %v, %v; want its second message alone", b, answer, err)
			}
		})
	}
	all.Wait()
	if got := w.counted("Received"); got != 250 || len(w.holds(w.dead)) != 50 {
		t.Errorf("got %d received and %d dead letters, want 250 and 50", got, len(w.holds(w.dead)))
	}
}
