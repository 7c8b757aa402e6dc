package sqstest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/sqstest"
)

// line sends bodies to the FIFO queue in their order. The first letter of a body is its
// group.
func (w *world) line(bodies ...string) (sent []sqstest.Message) {
	w.t.Helper()
	for _, body := range bodies {
		sent = append(sent, w.sendTo("orders.fifo", sqstest.Draft{Body: body, Group: body[:1]}))
	}
	return sent
}

func (w *world) configure(queue string, change func(*sqstest.Settings)) {
	w.t.Helper()
	s, err := w.Settings(queue)
	w.must(err)
	change(&s)
	w.must(w.Configure(w.now, queue, s))
}

func bodies(messages []sqstest.Message) string {
	var all []string
	for _, m := range messages {
		all = append(all, m.Body)
	}
	return strings.Join(all, " ")
}

// take receives up to limit messages of the FIFO queue.
func (w *world) take(limit int) []sqstest.Message {
	w.t.Helper()
	got, err := w.Receive(w.now, "orders.fifo", limit, nil)
	w.must(err)
	return got
}

// hide changes the visibility timeout of a message in the FIFO queue.
func (w *world) hide(receipt string, timeout time.Duration) {
	w.t.Helper()
	w.must(w.ChangeVisibility(w.now, "orders.fifo", receipt, timeout))
}

// SQS developer guide, "FIFO queue delivery logic": "attempts to return as many messages
// with the same message group ID as possible"; API reference, SendMessage:
// "SequenceNumber continues to increase for a particular MessageGroupId".
func TestAGroupIsDeliveredInTheOrderOfArrival(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.line("a1", "b1", "a2", "b2", "a3")
	all := w.take(10)
	w.pass(30 * time.Second)
	got := []string{bodies(all), bodies(w.take(2)), bodies(w.take(2))}
	if diff := cmp.Diff(got, []string{"a1 a2 a3 b1 b2", "a1 a2", "b1 b2"}); diff != "" {
		t.Fatalf("received (-got +want):\n%s", diff)
	}
	for i, m := range all[1:3] {
		if before := all[i]; len(m.Sequence) != 20 || m.Sequence <= before.Sequence {
			t.Errorf("got sequence number %q after %q", m.Sequence, before.Sequence)
		}
	}
}

// The same guide: groups "might arrive or be processed out of order" among one another.
func TestPickChoosesTheOrderOfGroups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Pick = func(n int) int { return n - 1 }
	w.line("a1", "a2", "b1", "b2")
	if got, want := bodies(w.take(10)), "b1 b2 a1 a2"; got != want {
		t.Errorf("received %q, want %q", got, want)
	}
}

// The same guide: "you can't receive additional messages from the same message group ID
// in subsequent requests until: the currently received messages are deleted, or they
// become visible again".
func TestAGroupInFlightIsBlockedUntilIts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(w *world, receipt string)
		want   string
	}{
		"message is deleted":           {func(w *world, r string) { w.must(w.Delete(w.now, "orders.fifo", r)) }, "a2 a3"},
		"message is visible again":     {func(w *world, _ string) { w.pass(30 * time.Second) }, "a1 a2 a3"},
		"message is shown by its user": {func(w *world, r string) { w.hide(r, 0) }, "a1 a2 a3"},
		"messages expire":              {func(w *world, _ string) { w.pass(4 * day); w.line("a5") }, "a5"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.line("a1", "b1", "a2", "a3")
			first, others := w.take(1), w.take(10)
			w.hide(others[0].Receipt, time.Hour)
			blocked := w.take(10)
			tt.change(w, first[0].Receipt)
			got := []string{bodies(first), bodies(others), bodies(blocked), bodies(w.take(10))}
			if diff := cmp.Diff(got, []string{"a1", "b1", "", tt.want}); diff != "" {
				t.Errorf("received (-got +want):\n%s", diff)
			}
		})
	}
}

func TestNothingOvertakesWithinAGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.line("a1", "a2", "a3")
	all := w.take(10)
	w.hide(all[0].Receipt, 0)
	twoInFlight := w.take(10)
	w.hide(all[1].Receipt, time.Hour)
	w.pass(30 * time.Second)
	secondInFlight := w.take(10)
	w.hide(all[1].Receipt, 0)
	got := []string{bodies(all), bodies(twoInFlight), bodies(secondInFlight), bodies(w.take(10))}
	if diff := cmp.Diff(got, []string{"a1 a2 a3", "", "", "a1 a2 a3"}); diff != "" {
		t.Errorf("received (-got +want):\n%s", diff)
	}
}

// API reference, SendMessage, MessageDeduplicationId: "any messages sent with the same
// MessageDeduplicationId are accepted successfully but aren't delivered during the
// 5-minute deduplication interval".
func TestADuplicate(t *testing.T) {
	t.Parallel()
	const hash = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" // of "a"
	type draft = sqstest.Draft
	tests := map[string]struct {
		first, second draft
		after         time.Duration
		want          bool
	}{
		"is one by its id, whatever the body": {
			first: draft{DeduplicationID: "x"}, second: draft{Body: "b", DeduplicationID: "x"}, want: true,
		},
		"is none by its body if the ids differ": {
			first: draft{DeduplicationID: "x"}, second: draft{DeduplicationID: "y"},
		},
		"is one by its body, whatever the metadata": {
			second: draft{Attributes: map[string]sqstest.Attribute{"n": sqstest.Text("x")}}, want: true,
		},
		"is one by the id that the body gave": {second: draft{Body: "b", DeduplicationID: hash}, want: true},
		"is one just before 5 minutes":        {after: 5*time.Minute - 1, want: true},
		"is none after 5 minutes":             {after: 5 * time.Minute},
		"is one in another group":             {second: draft{Group: "other"}, want: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			send := func(d draft) sqstest.Message {
				if d.Body == "" {
					d.Body = "a"
				}
				if d.Group == "" {
					d.Group = "g"
				}
				return w.sendTo("orders.fifo", d)
			}
			first := send(tt.first)
			// "even after the message is received and deleted"
			w.must(w.Delete(w.now, "orders.fifo", w.one("orders.fifo").Receipt))
			w.pass(tt.after)
			second := send(tt.second)
			if got := second.ID == first.ID && second.Sequence == first.Sequence; got != tt.want {
				t.Errorf("got %+v after %+v, a duplicate: %v, want %v", second, first, got, tt.want)
			}
			if got, want := w.counts("orders.fifo").Sent == 1, tt.want; got != want {
				t.Errorf("got one message stored: %v, want %v", got, want)
			}
		})
	}
}

// API reference, SendMessage: MessageGroupId, MessageDeduplicationId, DelaySeconds. SQS
// users report that a delay of zero is accepted.
func TestSendRejectsForTheTypeOfQueue(t *testing.T) {
	t.Parallel()
	const invalid = sqstest.CodeInvalidParameterValue
	type draft = sqstest.Draft
	tests := map[string]struct {
		queue string
		draft draft
		want  string
	}{
		"FIFO: no group":             {"orders.fifo", draft{}, sqstest.CodeMissingParameter},
		"FIFO: no way to an id":      {"dead.fifo", draft{Group: "g"}, invalid},
		"FIFO: a delay":              {"orders.fifo", draft{Group: "g", Delay: new(time.Second)}, invalid},
		"FIFO: nothing at no delay":  {"orders.fifo", draft{Group: "g", Delay: new(time.Duration(0))}, ""},
		"FIFO: a group with a space": {"orders.fifo", draft{Group: "a b"}, invalid},
		"FIFO: an id of 129":         {"orders.fifo", draft{Group: "g", DeduplicationID: strings.Repeat("!", 129)}, invalid},
		"FIFO: nothing at 128":       {"orders.fifo", draft{Group: "g", DeduplicationID: strings.Repeat("~", 128)}, ""},
		"standard: an id":            {"orders", draft{DeduplicationID: "x"}, invalid},
		"standard: no group at all":  {"orders", draft{Group: "fair"}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.draft.Body = "a"
			_, err := w.Send(w.now, tt.queue, tt.draft)
			if got := code(err); got != tt.want {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
		})
	}
}

// SQS developer guide, "Amazon SQS delay queues": "For FIFO queues, the per-queue delay
// setting is retroactive".
func TestANewDelayAppliesToMessagesInAFIFOQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	delay := func(d time.Duration) {
		for _, queue := range []string{"orders", "orders.fifo"} {
			w.configure(queue, func(s *sqstest.Settings) { s.Delay = d })
		}
	}
	delay(time.Minute)
	w.send("a1")
	w.line("a1", "a2")
	w.pass(10 * time.Second)
	delay(20 * time.Second)
	w.pass(10*time.Second - 1)
	before := w.take(10)
	w.pass(1)
	got := []string{bodies(before), bodies(w.take(10)), bodies(w.receive("orders"))}
	if diff := cmp.Diff(got, []string{"", "a1 a2", ""}); diff != "" {
		t.Errorf("received before and after the delay, and from the standard queue (-got +want):\n%s", diff)
	}
}

// API reference, ReceiveMessage: "if a consumer whose message processing time is longer
// than the visibility timeout tries to delete the processed messages, the action fails
// with an error". The documents do not say so of ChangeMessageVisibility. Chosen: it
// fails too, because its page says that it "might", and the function has to work without
// the delay.
func TestAnExpiredHandleOfAFIFOQueue(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(w *world, receipt string) error{
		"deletes nothing": func(w *world, receipt string) error {
			return w.Delete(w.now, "orders.fifo", receipt)
		},
		"changes no visibility": func(w *world, receipt string) error {
			return w.ChangeVisibility(w.now, "orders.fifo", receipt, time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.line("a1")
			old := w.take(1)[0].Receipt
			w.pass(30 * time.Second)
			for range 2 { // visible, then in flight for another consumer
				if got, want := code(call(w, old)), sqstest.CodeInvalidParameterValue; got != want {
					t.Errorf("got %q, want %q", got, want)
				}
				w.receive("orders.fifo")
			}
			if got := w.counts("orders.fifo").InFlight; got != 1 {
				t.Errorf("got %d in flight, want 1", got)
			}
			w.pass(30 * time.Second)
			if got := w.counts("orders.fifo").Visible; got != 1 {
				t.Errorf("got %d visible after the queue's own timeout, want 1", got)
			}
		})
	}
}

// SQS developer guide, "Learn how to configure a dead-letter queue redrive": "the
// original message's deduplication ID will be replaced with the original message's ID";
// "Setting-up dead-letter queue retention": "the enqueue timestamp resets".
func TestADeadLetterLeavesItsGroupToTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sent := w.line("a1", "a2")[0]
	for range 2 {
		if got, want := bodies(w.take(1)), "a1"; got != want {
			t.Errorf("received %q, want %q", got, want)
		}
		w.pass(30 * time.Second)
	}
	if got, want := bodies(w.take(10)), "a2"; got != want {
		t.Errorf("received %q, want %q", got, want)
	}
	dead := w.one("dead.fifo")
	want := sqstest.Message{
		ID: sent.ID, Body: "a1", Sent: w.now, FirstReceived: start(), Receives: 3, Source: "orders.fifo", Receipt: dead.Receipt,
		State: sqstest.InFlight, Group: "a", DeduplicationID: sent.ID, Sequence: dead.Sequence,
	}
	if diff := cmp.Diff(dead, want); diff != "" || dead.Sequence <= sent.Sequence {
		t.Errorf("got -, want +, and a sequence number above %s\n%s", sent.Sequence, diff)
	}
	w.pass(5*day - 1)
	w.one("dead.fifo")
}

// The same guide: "if the dead-letter queue is a FIFO queue, the redrive destination
// queue must be a FIFO queue as well"; redriven "starting with the oldest message".
func TestARedriveKeepsTheOrderOfAGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 3 {
		w.sendTo("dead.fifo", sqstest.Draft{Body: fmt.Sprint("a", i), Group: "a", DeduplicationID: fmt.Sprint(i)})
	}
	_, err := w.Redrive(w.now, "dead.fifo", "orders")
	if got, want := code(err), sqstest.CodeInvalidParameterValue; got != want {
		t.Errorf("got %q for a standard queue, want %q", got, want)
	}
	first, err := w.Receive(w.now, "dead.fifo", 1, nil)
	w.must(err)
	moved, err := w.Redrive(w.now, "dead.fifo", "orders.fifo")
	w.must(err)
	if moved != 0 {
		t.Errorf("got %d moved past a message in flight, want none", moved)
	}
	w.must(w.ChangeVisibility(w.now, "dead.fifo", first[0].Receipt, 0))
	_, err = w.Redrive(w.now, "dead.fifo", "orders.fifo")
	w.must(err)
	if got, want := bodies(w.take(10)), "a0 a1 a2"; got != want {
		t.Errorf("received %q, want %q", got, want)
	}
}

// SQS developer guide, "Amazon SQS FIFO queue quotas": "If this limit is reached, Amazon
// SQS does not return an error".
func TestAFIFOQueueAtTheInFlightLimitReturnsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range sqstest.InFlightLimit + 5 {
		w.sendTo("orders.fifo", sqstest.Draft{Body: "a", Group: fmt.Sprint(i), DeduplicationID: fmt.Sprint(i)})
	}
	for range sqstest.InFlightLimit / 10 {
		w.receive("orders.fifo")
	}
	if got, want := bodies(w.take(10)), ""; got != want {
		t.Errorf("received %q, want %q", got, want)
	}
	if got := w.counts("orders.fifo").Visible; got != 5 {
		t.Errorf("got %d visible, want 5", got)
	}
}
