package sqs_test

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

func TestOnlyRedeliveredMessagesAreBatchItemFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["WAITS"], w.script["CLASHES"] = outage(), conflict()
	ids := w.send(orderWithID("PAID"), orderWithID("WAITS"), orderWithID("CLASHES"), "no order")
	if diff := cmp.Diff(w.deliverVisible(), []string{ids[1]}); diff != "" {
		t.Errorf("batch item failures (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(w.messageIDs(w.orders), []string{ids[1]}); diff != "" {
		t.Errorf("order queue (-got +want):\n%s", diff)
	}
	if got := len(w.messageIDs(w.dead)); got != 2 {
		t.Errorf("got %d dead letters, want 2", got)
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
	ids := w.send(orderWithID("A"), "{", orderWithID("B"), strings.Repeat("x", sqs.MaxBody+1), orderWithID("C"))
	if got := w.deliverVisible(); len(got) > 0 {
		t.Errorf("batch item failures: got %q, want none", got)
	}
	if got := w.messageIDs(w.orders); len(got) > 0 {
		t.Errorf("order queue: got %q, want none", got)
	}
	if diff := cmp.Diff(processedIDs(w), []string{"A", "B", "C"}); diff != "" {
		t.Errorf("processed orders (-got +want):\n%s", diff)
	}
	for _, m := range w.messages(w.dead) {
		got := m.Attributes[sqs.AttrReason].Text
		if first := m.Attributes[sqs.AttrFirstMessageID].Text; got != "invalid_order" ||
			first != ids[1] && first != ids[3] {
			t.Errorf("message %s was parked for %q", first, got)
		}
	}
}

// A queue with another message format needs another Decode, and nothing else.
func TestDecodeMayReadAnotherFormat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Decode = func(body string) (order.Order, error) {
		id, found := strings.CutPrefix(body, "order:")
		if !found {
			return order.Order{}, errors.New("missing prefix")
		}
		return sqs.NewDecoder().Decode(orderWithID(id))
	}
	w.send("order:A", "B")
	if got := w.deliverVisible(); len(got) > 0 {
		t.Errorf("batch item failures: got %q, want none", got)
	}
	if diff := cmp.Diff(processedIDs(w), []string{"A"}); diff != "" {
		t.Errorf("processed orders (-got +want):\n%s", diff)
	}
	var parked []string
	for _, m := range w.messages(w.dead) {
		parked = append(parked, m.Attributes[sqs.AttrReason].Text+": "+m.Attributes[sqs.AttrDetail].Text)
	}
	if diff := cmp.Diff(parked, []string{"invalid_order: missing prefix"}); diff != "" {
		t.Errorf("parked messages (-got +want):\n%s", diff)
	}
}

// processedIDs returns the ids of the processed orders, sorted.
func processedIDs(w *world) (ids []string) {
	for _, d := range w.processed() {
		ids = append(ids, string(d.ID))
	}
	slices.Sort(ids)
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
	ids := w.send(orderWithID("A"), orderWithID("BAD"), orderWithID("C"))
	if diff := cmp.Diff(w.deliverVisible(), []string{ids[1]}); diff != "" {
		t.Errorf("batch item failures (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(processedIDs(w), []string{"A", "C"}); diff != "" {
		t.Errorf("processed orders (-got +want):\n%s", diff)
	}
	line := w.lineOf("BAD")
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
// already.
func TestAPanicInAnyStepFailsOnlyItsRecord(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		breaks  func(*world)
		failed  []int  // which of the three messages
		wantLog string // in the log, of the second one
	}{
		{"decoding", func(w *world) { w.Decode = new(sqs.Decoder).Decode }, []int{1}, "WARN panic"},
		{
			"creating an owner", func(w *world) { w.NewOwner = func() string { panic("boom " + canary) } },
			[]int{1},
			"WARN panic",
		},
		{"choosing the delay", func(w *world) {
			w.script["BAD"], w.Jitter = outage(), func() float64 { panic("boom " + canary) }
		}, []int{0, 1, 2}, "WARN panic"},
		{"parking", func(w *world) {
			w.script["BAD"] = order.Result{Verdict: order.Park, Reason: order.ReasonRefused, Err: brokenError{}}
		}, []int{1}, "WARN panic"},
		{"reporting a redelivered message", func(w *world) {
			w.script["BAD"] = order.Result{
				Verdict: order.Redeliver, Reason: order.ReasonStore, Transient: true, Err: brokenError{},
			}
		}, []int{1}, "ERROR <nil>"},
		{"reporting a settled message", func(w *world) {
			w.script["BAD"] = order.Result{Verdict: order.Done, Reason: order.ReasonSettled, Err: brokenError{}}
		}, nil, "ERROR <nil>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.breaks(w)
			ids := w.send("no order", orderWithID("BAD"), "no order either")
			var want []string
			for _, i := range tt.failed {
				want = append(want, ids[i])
			}
			if diff := cmp.Diff(w.deliverVisible(), want); diff != "" {
				t.Errorf("batch item failures (-got +want):\n%s", diff)
			}
			got := ""
			for _, line := range w.lines() {
				if line["message_id"] == ids[1] {
					got += fmt.Sprint(line["level"], " ", line["reason"])
					if !strings.Contains(fmt.Sprint(line["error"]), "panic of type ") {
						t.Errorf("got the line %v, want the type of the panic and its stack", line)
					}
				}
			}
			if got != tt.wantLog || strings.Contains(w.log.String(), canary) {
				t.Errorf("log of the second message = %q, want %q without the value of the panic", got, tt.wantLog)
			}
		})
	}
}

// runtime.Goexit ends a goroutine without a panic, so recover does not see it. The
// message of such a worker is redelivered, and the rest of its lane is processed.
func TestAWorkerThatExitsFailsOnlyItsRecord(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		breaks  func(*world)
		failed  []int  // which of the three messages
		wantLog string // in the log, of the second message
	}{
		{"processing the order", func(w *world) {
			w.Process = func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result {
				if len(w.processed()) == 1 {
					_ = w.process(ctx, o, sent, l)
					runtime.Goexit()
				}
				return w.process(ctx, o, sent, l)
			}
		}, []int{1}, "WARN panic"},
		{"creating an owner", func(w *world) {
			w.NewOwner = func() string {
				if len(w.processed()) > 0 {
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
		{
			"choosing the delay", func(w *world) { w.Jitter = func() float64 { runtime.Goexit(); return 0 } },
			[]int{0, 1, 2},
			"WARN panic",
		},
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
			got := w.deliverVisible()
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("batch item failures (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(w.messageIDs(w.orders), want); diff != "" {
				t.Errorf("order queue (-got +want):\n%s", diff)
			}
			gotLog := ""
			for _, line := range w.lines() {
				if line["message_id"] == ids[1] {
					gotLog += fmt.Sprint(line["level"], " ", line["reason"])
					if text := fmt.Sprint(line["error"]); !strings.Contains(text, "worker goroutine exited") {
						t.Errorf("error = %q, want it to name the exit", text)
					}
				}
			}
			if gotLog != tt.wantLog {
				t.Errorf("log of the second message = %q, want %q", gotLog, tt.wantLog)
			}
			if received := w.counted("Received"); received != 3 {
				t.Errorf("Received = %d, want 3", received)
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
	w.send(orderWithID("A"), orderWithID("A"), orderWithID("B"), orderWithID("A"))
	e := w.receive()
	synctest.Test(t, func(t *testing.T) {
		started, gate := gated(w)
		go func() { _, _ = w.Handle(t.Context(), e) }()
		synctest.Wait()
		if diff := cmp.Diff(*started, []string{"A", "B"}, cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Errorf("started orders (-got +want):\n%s", diff)
		}
		gate <- struct{}{}
		gate <- struct{}{}
		synctest.Wait()
		if diff := cmp.Diff(*started, []string{"A", "B", "A"}, cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Errorf("started orders (-got +want):\n%s", diff)
		}
		gate <- struct{}{}
		synctest.Wait()
		if diff := cmp.Diff(*started, []string{"A", "B", "A", "A"}, cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Errorf("started orders (-got +want):\n%s", diff)
		}
		gate <- struct{}{}
	})
}

func TestOnAStandardQueueAFailureStopsNoOtherMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Parallel = 1
	w.Process = func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result {
		if r := w.process(ctx, o, sent, l); len(w.processed()) > 1 {
			return r
		}
		return outage()
	}
	ids := w.send(orderWithID("A"), orderWithID("A"), orderWithID("B"))
	if diff := cmp.Diff(w.deliverVisible(), []string{ids[0]}); diff != "" {
		t.Errorf("batch item failures (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(processedIDs(w), []string{"A", "A", "B"}); diff != "" {
		t.Errorf("processed orders (-got +want):\n%s", diff)
	}
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

func TestAFIFOGroupStopsAtItsFirstFailure(t *testing.T) {
	t.Parallel()
	w := newFIFOWorld(t)
	w.script["A2"] = order.Result{
		Verdict: order.Redeliver, Reason: order.ReasonInProgress, NotBefore: start().Add(time.Minute),
		Transient: true,
	}
	w.script["C1"] = conflict()
	var ids []string
	for _, m := range [][2]string{
		{"a", orderWithID("A1")},
		{"a", orderWithID("A2")},
		{"b", orderWithID("B1")},
		{"a", orderWithID("A3")},
		{"a", "no order"},
		{"c", orderWithID("C1")},
		{"c", orderWithID("C2")},
		{"a", orderWithID("A4")},
	} {
		ids = append(ids, w.sendGrouped(m[0], m[1]))
	}
	failed := w.deliverVisible()
	if diff := cmp.Diff(failed, []string{ids[1], ids[3], ids[4], ids[7]}); diff != "" {
		t.Errorf("batch item failures (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(processedIDs(w), []string{"A1", "A2", "B1", "C1", "C2"}); diff != "" {
		t.Errorf("processed orders (-got +want):\n%s", diff)
	}
	if got := len(w.messageIDs(w.dead)); got != 1 {
		t.Errorf("%d dead letters, want 1: messages behind the head of a group are not parked", got)
	}
	if got := w.counted("Redelivered behind_in_group"); got != 3 {
		t.Errorf("Redelivered for behind_in_group = %d, want 3", got)
	}
	w.advance(60 * time.Second)
	if got := w.visible(); len(got) > 0 {
		t.Errorf("visible before the lease ends: got %q, want none", got)
	}
	w.advance(time.Second)
	if diff := cmp.Diff(w.visible(), []string{ids[1], ids[3], ids[4], ids[7]}); diff != "" {
		t.Errorf("visible after the lease (-got +want):\n%s", diff)
	}
}

// A group keeps its order for whatever reason its head is redelivered: the messages
// behind it are not processed and not parked, and are redelivered with the head.
func TestNothingOvertakesTheHeadOfItsFIFOGroup(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		head   string // its body
		breaks func(*world)
		delay  time.Duration
	}{
		"the store is unavailable": {orderWithID("HEAD"), func(w *world) { w.script["HEAD"] = outage() }, 3 * time.Second},
		"the order failed by itself": {orderWithID("HEAD"), func(w *world) {
			w.script["HEAD"] = order.Result{Verdict: order.Redeliver, Reason: order.ReasonUnconfirmed, Attempt: 1}
		}, 3 * time.Second},
		"another attempt holds the order": {orderWithID("HEAD"), func(w *world) {
			w.script["HEAD"] = order.Result{
				Verdict: order.Redeliver, Reason: order.ReasonInProgress, NotBefore: start().Add(time.Minute), Transient: true,
			}
		}, 61 * time.Second},
		"it cannot be parked": {orderWithID("HEAD"), func(w *world) {
			w.script["HEAD"] = conflict()
			w.server.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable)
		}, 3 * time.Second},
		"it is not an order and cannot be parked": {"no order", func(w *world) {
			w.server.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable)
		}, 3 * time.Second},
		"the response to parking it is lost": {orderWithID("HEAD"), func(w *world) {
			w.script["HEAD"] = conflict()
			w.server.Lose("SendMessage", 1)
		}, 3 * time.Second},
		"it panics":        {orderWithID("HEAD"), func(w *world) { w.failsFor("HEAD", func() { panic("boom") }) }, 3 * time.Second},
		"its worker exits": {orderWithID("HEAD"), func(w *world) { w.failsFor("HEAD", runtime.Goexit) }, 3 * time.Second},
		"parking it panics": {orderWithID("HEAD"), func(w *world) {
			w.script["HEAD"] = order.Result{Verdict: order.Park, Reason: order.ReasonRefused, Err: brokenError{}}
		}, 5 * time.Second},
		"its result has no verdict":         {orderWithID("HEAD"), func(w *world) { w.script["HEAD"] = order.Result{} }, 3 * time.Second},
		"the function timeout is too short": {orderWithID("HEAD"), func(w *world) { w.OrderBudget = order.MaxLease }, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFIFOWorld(t)
			tt.breaks(w)
			ids := []string{
				w.sendGrouped("g", tt.head), w.sendGrouped("g", orderWithID("NEXT")), w.sendGrouped("g", "no order"),
			}
			if diff := cmp.Diff(w.deliverVisible(), ids); diff != "" {
				t.Errorf("batch item failures (-got +want):\n%s", diff)
			}
			if worked := processedIDs(w); slices.Contains(worked, "NEXT") {
				t.Errorf("orders %q were processed, want none behind the head", worked)
			}
			for _, m := range w.messages(w.dead) {
				if got := m.Attributes[sqs.AttrFirstMessageID].Text; got != ids[0] {
					t.Errorf("message %s was parked, want none behind the head", got)
				}
			}
			for _, id := range ids[1:] {
				if got := w.reasonOf(id); got != "behind_in_group" {
					t.Errorf("message %s is redelivered for %q, want behind_in_group", id, got)
				}
			}
			w.advance(tt.delay - time.Second)
			if got := w.visible(); len(got) > 0 {
				t.Errorf("messages %q are visible before the head's delay of %v ends", got, tt.delay)
			}
			w.advance(time.Second)
			if diff := cmp.Diff(w.visible(), ids); diff != "" {
				t.Errorf("visible after the head's delay (-got +want):\n%s", diff)
			}
		})
	}
}

// failsFor makes Process call f for one order.
func (w *world) failsFor(id order.ID, f func()) {
	w.Process = func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result {
		if o.ID() == id {
			f()
		}
		return w.process(ctx, o, sent, l)
	}
}

// reasonOf returns the reason in the log line of a message.
func (w *world) reasonOf(messageID string) string {
	w.t.Helper()
	for _, line := range w.lines() {
		if line["message_id"] == messageID {
			return fmt.Sprint(line["reason"])
		}
	}
	return ""
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
		w.server.Fail(
			"SendMessage", rapid.IntRange(0, 2).Draw(t, "times that parking fails"), sqstest.CodeServiceUnavailable,
		)

		e := w.receive()
		failed := w.deliver(t.Context(), e)
		heads := map[string]string{} // the first message of each group that fails
		for _, m := range e.Records {
			group, id := m.Attributes["MessageGroupId"], m.MessageId
			head, stopped := heads[group]
			switch {
			case stopped && !slices.Contains(failed, id):
				t.Fatalf("message %s is acknowledged, although %s of its group is redelivered", id, head)
			case stopped && w.reasonOf(id) != "behind_in_group":
				t.Fatalf("message %s is redelivered for %s, want behind_in_group after %s", id, w.reasonOf(id), head)
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
		return order.Result{Verdict: order.Redeliver, Reason: order.ReasonUnconfirmed, Attempt: tried[o.ID()]}
	}
	ids := []string{w.sendGrouped("g", orderWithID("HEAD")), w.sendGrouped("g", orderWithID("NEXT"))}
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
	ids := []string{
		w.sendDraft(sqstest.Draft{Body: orderWithID("A1"), Group: "tenant"}),
		w.sendDraft(sqstest.Draft{Body: orderWithID("A2"), Group: "tenant"}),
	}
	if diff := cmp.Diff(w.deliverVisible(), []string{ids[0]}); diff != "" {
		t.Errorf("batch item failures (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(processedIDs(w), []string{"A1", "A2"}); diff != "" {
		t.Errorf("processed orders (-got +want):\n%s", diff)
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
		{
			"the second order does not start with less", 30*time.Second - answerTime - orderBudget + time.Nanosecond,
			false,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Parallel = 1
			w.Process = func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result {
				defer w.advance(tt.first)
				return w.process(ctx, o, sent, l)
			}
			ids := w.send(orderWithID("A"), orderWithID("B"))
			ctx, cancel := context.WithDeadline(t.Context(), start().Add(30*time.Second))
			defer cancel()
			failed := w.deliver(ctx, w.receive())
			if tt.starts {
				if got := failed; len(got) > 0 {
					t.Errorf("batch item failures: got %q, want none", got)
				}
				return
			}
			if diff := cmp.Diff(failed, []string{ids[1]}); diff != "" {
				t.Errorf("batch item failures (-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(w.visible(), []string{ids[1]}); diff != "" {
				t.Errorf("visible at once (-got +want):\n%s", diff)
			}
			if got := w.lineOf("B"); got["reason"] != "not_started" || got["level"] != "INFO" {
				t.Errorf("got the line %v", got)
			}
		})
	}
}

func TestAMessageThatIsNotStartedAFourthTimeIsDelayed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Parallel = 1
	w.Process = func(context.Context, order.Order, time.Time, order.Lease) order.Result {
		w.advance(30*time.Second - answerTime)
		return paid()
	}
	late := w.send(orderWithID("LATE"))[0]
	for delivery, want := range []time.Duration{0, 0, 0, 20 * time.Second, 40 * time.Second} {
		w.send(orderWithID("FIRST"))
		e := w.receive()
		if e.Records[0].MessageId == late {
			slices.Reverse(e.Records)
		}
		ctx, cancel := context.WithDeadline(t.Context(), w.Now().Add(30*time.Second))
		if diff := cmp.Diff(w.deliver(ctx, e), []string{late}); diff != "" {
			t.Errorf("batch item failures of delivery %d (-got +want):\n%s", delivery+1, diff)
		}
		cancel()
		if got := w.untilVisible(late); got != want {
			t.Errorf("message becomes visible after %v, want %v", got, want)
		}
	}
	if got := w.counted("Redelivered not_started"); got != 5 {
		t.Errorf("Redelivered for not_started = %d, want 5", got)
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
			ctx, cancel := context.WithDeadline(t.Context(), start().Add(tt.timeout))
			defer cancel()
			failed := w.deliver(ctx, w.receive())
			if tt.starts {
				if got := failed; len(got) > 0 {
					t.Errorf("batch item failures: got %q, want none", got)
				}
				return
			}
			if diff := cmp.Diff(failed, []string{id}); diff != "" {
				t.Errorf("batch item failures (-got +want):\n%s", diff)
			}
			if got := processedIDs(w); len(got) > 0 {
				t.Errorf("processed orders: got %q, want none", got)
			}
			line := w.lineOf("A")
			got := []any{line["level"], line["reason"], line["error"]}
			want := []any{
				"WARN", "misconfigured", "function timeout too short: 4.999999999s left for orders, ORDER_BUDGET is 5s",
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("mismatch (-got +want):\n%s", diff)
			}
			if got, want := w.untilVisible(id), 3*time.Second; got != want {
				t.Errorf("message becomes visible after %v, want %v", got, want)
			}
		})
	}
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
		w.Queue = sqs.NewQueue(aws.Config{
			Region: sqstest.Region, HTTPClient: silentQueue{}, Credentials: aws.AnonymousCredentials{},
		}, "http://queue.test/orders", "http://queue.test/dead")
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
			want := []work{{"ORD12345", order.Lease{Owner: "owner-0", From: start(), Until: until}, contextEnds}}
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
	e := w.receive()
	for i := range e.Records {
		e.Records[i].Attributes["ApproximateReceiveCount"] = "9" // 10 to 15 minutes
	}
	w.deliver(t.Context(), e)
	got := map[string]any{}
	for _, line := range w.lines() {
		got[fmt.Sprint(line["order_id"])] = line["retry_after_s"]
	}
	want := map[string]any{
		"A": 630.0,
		"B": 660.0,
		"C": 720.0,
		"D": 780.0,
	} // a message that cannot be parked uses jitter twice
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("delays in seconds (-got +want):\n%s", diff)
	}
}

func TestAMessageIsRedeliveredAfterItsDelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["ORD12345"] = order.Result{Verdict: order.Redeliver, Reason: order.ReasonUnconfirmed}
	id := w.send(good)[0]
	delays := []int{3, 5, 10, 20, 40, 80, 160, 340, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600, 600}
	for _, seconds := range delays {
		if diff := cmp.Diff(w.deliverVisible(), []string{id}); diff != "" {
			t.Errorf("batch item failures (-got +want):\n%s", diff)
		}
		if got, want := w.untilVisible(id), time.Duration(seconds)*time.Second; got != want {
			t.Errorf("message becomes visible after %v, want %v", got, want)
		}
	}
	if got := w.deliverVisible(); len(got) > 0 {
		t.Errorf("batch item failures at the twentieth delivery: got %q, want none", got)
	}
	if got := w.messages(w.dead)[0].Attributes[sqs.AttrReason].Text; got != "unconfirmed" {
		t.Errorf("parked for %q, want its own reason", got)
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
	warnings := func(w *world) (all []string) {
		for _, line := range w.lines() {
			if _, ofOrder := line["order_id"]; !ofOrder {
				all = append(all, fmt.Sprint(line["level"], " ", line["request_id"], " ", line["error"]))
			}
		}
		return all
	}
	t.Run("after a failed call the queue's visibility timeout applies", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.script["A"], w.script["B"] = outage(), outage()
		ids := w.send(orderWithID("A"), orderWithID("B"))
		w.server.Fail("ChangeMessageVisibilityBatch", 1, sqstest.CodeServiceUnavailable)
		if diff := cmp.Diff(w.deliverVisible(), ids); diff != "" {
			t.Errorf("batch item failures (-got +want):\n%s", diff)
		}
		got := warnings(w)
		if len(got) != 1 || !strings.HasPrefix(got[0], "WARN request-1 change the visibility of 2 messages: ") {
			t.Errorf("got %q, want one warning", got)
		}
		if got, want := w.untilVisible(ids[0]), 3*time.Minute; got != want {
			t.Errorf("message becomes visible after %v, want %v", got, want)
		}
	})
	t.Run("the warning names an entry that fails, and the others are delayed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.script["A"], w.script["B"] = outage(), outage()
		ids := w.send(orderWithID("A"), orderWithID("B"))
		e := w.receive()
		e.Records[1].ReceiptHandle = "not a handle"
		if diff := cmp.Diff(w.deliver(t.Context(), e), ids); diff != "" {
			t.Errorf("batch item failures (-got +want):\n%s", diff)
		}
		want := []string{"WARN request-1 change the visibility of message " + ids[1] + ": ReceiptHandleIsInvalid"}
		if diff := cmp.Diff(warnings(w), want); diff != "" {
			t.Errorf("mismatch (-got +want):\n%s", diff)
		}
		if got, want := w.untilVisible(ids[0]), 3*time.Second; got != want {
			t.Errorf("message becomes visible after %v, want %v", got, want)
		}
	})
	t.Run("more than ten messages take several calls, of which one may fail", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		var ids []string
		for i := range 23 {
			id := fmt.Sprintf("ORD%d", i)
			w.script[order.ID(id)] = outage()
			ids = append(ids, w.send(orderWithID(id))...)
		}
		w.server.Fail("ChangeMessageVisibilityBatch", 1, sqstest.CodeServiceUnavailable)
		if diff := cmp.Diff(w.deliverVisible(), ids); diff != "" {
			t.Errorf("batch item failures (-got +want):\n%s", diff)
		}
		w.advance(3 * time.Second)
		if got := len(w.visible()); len(w.calls) != 3 || got != 13 {
			t.Errorf("got %d calls and %d messages visible, want 3 and 13", len(w.calls), got)
		}
	})
	t.Run("a lost response is only a warning", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.script["ORD12345"] = outage()
		id := w.send(good)[0]
		w.server.Lose("ChangeMessageVisibilityBatch", 1)
		if diff := cmp.Diff(w.deliverVisible(), []string{id}); diff != "" {
			t.Errorf("batch item failures (-got +want):\n%s", diff)
		}
		if got := warnings(w); len(got) != 1 {
			t.Errorf("got %q, want one warning", got)
		}
		if got, want := w.untilVisible(id), 3*time.Second; got != want {
			t.Errorf("message becomes visible after %v, want %v", got, want)
		}
	})
}

// results generates results that the domain returns.
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
		w.sendInto(rapid.SampledFrom([]string{"g", "h", "i"}).Draw(t, "group"), body)
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
