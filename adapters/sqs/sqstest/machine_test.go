package sqstest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/sqstest"
)

const day = 24 * time.Hour

func start() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// world is a machine with a clock, a queue "orders" and its dead-letter queue "dead", and
// the same as FIFO queues.
type world struct {
	*sqstest.Machine

	t   *testing.T
	now time.Time
}

// newWorld sets maxReceiveCount to 2, and the retention of dead-letter queues to five
// days, of others to four.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Machine: sqstest.New(1), t: t, now: start()}
	dead := sqstest.DefaultSettings()
	dead.Retention = 5 * day
	w.must(w.Create(w.now, "dead", dead))
	orders := sqstest.DefaultSettings()
	orders.DeadLetters, orders.MaxReceives = "dead", 2
	w.must(w.Create(w.now, "orders", orders))
	dead.FIFO, orders.FIFO, orders.ContentDeduplication = true, true, true
	orders.DeadLetters = "dead.fifo"
	w.must(w.Create(w.now, "dead.fifo", dead))
	w.must(w.Create(w.now, "orders.fifo", orders))
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) send(body string) sqstest.Message {
	w.t.Helper()
	return w.sendTo("orders", sqstest.Draft{Body: body})
}

func (w *world) sendTo(queue string, d sqstest.Draft) sqstest.Message {
	w.t.Helper()
	m, err := w.Send(w.now, queue, d)
	w.must(err)
	return m
}

// receive receives up to ten messages.
func (w *world) receive(queue string) []sqstest.Message {
	w.t.Helper()
	got, err := w.Receive(w.now, queue, 10, nil)
	w.must(err)
	return got
}

func (w *world) one(queue string) sqstest.Message {
	w.t.Helper()
	got := w.receive(queue)
	if len(got) != 1 {
		w.t.Fatalf("got %d messages from %s, want 1", len(got), queue)
	}
	return got[0]
}

func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

func (w *world) counts(queue string) sqstest.Counts {
	w.t.Helper()
	c, err := w.Counts(w.now, queue)
	w.must(err)
	return c
}

// code returns the code of an Error, or "".
func code(err error) string {
	if e, ok := errors.AsType[*sqstest.Error](err); ok {
		return e.Code
	}
	return ""
}

// API reference, ReceiveMessage: a received message is hidden for the visibility timeout,
// by default 30 seconds.
func TestAReceivedMessageIsHiddenUntilItsTimeoutEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sent := w.send("a")
	first := w.one("orders")
	w.pass(30*time.Second - 1)
	if got := w.receive("orders"); len(got) > 0 {
		t.Errorf("received %d messages, want none", len(got))
	}
	w.pass(1)
	second := w.one("orders")
	want := sqstest.Message{
		ID: sent.ID, Body: "a", Sent: start(), FirstReceived: start(), Receives: 2, Receipt: second.Receipt, State: sqstest.InFlight,
	}
	if diff := cmp.Diff(second, want); diff != "" {
		t.Errorf("mismatch (-got +want):\n%s", diff)
	}
	if first.Receipt == second.Receipt {
		t.Error("two receives gave the same handle") // "you will get a different ReceiptHandle each time"
	}
}

// API reference, ReceiveMessage: a request may have a visibility timeout; with zero the
// message stays visible.
func TestReceiveTakesAVisibilityTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("a")
	got, err := w.Receive(w.now, "orders", 10, new(time.Duration(0)))
	w.must(err)
	if len(got) != 1 {
		t.Fatalf("got %d deliveries in one receive, want 1", len(got))
	}
	w.one("orders")
}

// API reference, SendMessage: DelaySeconds of the message, else of the queue.
func TestADelayedMessageIsNotDeliveredBeforeItsDelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sendTo("orders", sqstest.Draft{Body: "a", Delay: new(time.Minute)})
	if got := w.receive("orders"); len(got) > 0 {
		t.Errorf("received %d messages, want none", len(got))
	}
	if got := w.counts("orders").Delayed; got != 1 {
		t.Errorf("got %d delayed, want 1", got)
	}
	w.pass(time.Minute)
	w.one("orders")
}

// API reference, DeleteMessage: "you must use the ReceiptHandle from the most recent time
// you received the message. If you use an old one, the request will succeed, but the
// message might not be deleted".
func TestOnlyTheLatestHandleDeletes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("a")
	old := w.one("orders")
	w.pass(30 * time.Second)
	latest := w.one("orders")

	w.must(w.Delete(w.now, "orders", old.Receipt))
	if got := w.counts("orders").InFlight; got != 1 {
		t.Errorf("got %d in flight after deleting with an old handle, want 1", got)
	}
	w.pass(30 * time.Second) // visible again, not received again
	w.must(w.Delete(w.now, "orders", latest.Receipt))
	if got := w.counts("orders"); !got.Empty() {
		t.Errorf("got %+v after deleting with the latest handle, want an empty queue", got)
	}
	w.must(w.Delete(w.now, "orders", latest.Receipt)) // deleting twice succeeds
	if got, want := code(w.Delete(w.now, "dead", latest.Receipt)), sqstest.CodeReceiptHandleIsInvalid; got != want {
		t.Errorf("got %q for another queue's handle, want %q", got, want)
	}
}

// SQS developer guide, "Amazon SQS visibility timeout": 12 hours at most, counted from
// the receive; the timeout starts again with the call, and applies to this receive only.
func TestChangingVisibility(t *testing.T) {
	t.Parallel()
	const invalid = sqstest.CodeInvalidParameterValue
	tests := map[string]struct {
		after, timeout time.Duration
		want           string
	}{
		"counts from the call":                    {after: 20 * time.Second, timeout: 50 * time.Second},
		"may be zero":                             {timeout: 0},
		"may last until 12 h after the receive":   {after: 10 * time.Second, timeout: 12*time.Hour - 10*time.Second},
		"may not last longer":                     {10 * time.Second, 12*time.Hour - 9*time.Second, invalid},
		"may not be negative":                     {timeout: -time.Second, want: invalid},
		"may not exceed 12 h by itself":           {timeout: 12*time.Hour + time.Second, want: invalid},
		"is rejected once the message is deleted": {4 * day, time.Minute, invalid},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.send("a")
			got := w.one("orders")
			w.pass(tt.after)
			if got := code(w.ChangeVisibility(w.now, "orders", got.Receipt, tt.timeout)); got != tt.want {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			if tt.want != "" {
				return
			}
			if tt.timeout > 0 {
				w.pass(tt.timeout - 1)
				if got := w.receive("orders"); len(got) > 0 {
					t.Errorf("received %d messages, want none", len(got))
				}
				w.pass(1)
			}
			w.one("orders")
			w.pass(30 * time.Second) // the queue's own timeout again
			if got := w.counts("orders").Visible; got != 1 {
				t.Errorf("got %d visible after the next timeout, want 1", got)
			}
		})
	}
}

// API reference, ChangeMessageVisibility: after the visibility timeout, "any attempt to
// change the visibility timeout or to delete that message [...] might result in an
// error". AWS was seen to respond OK and to do nothing: LocalStack's suite, recorded
// against AWS, test_change_message_visibility_after_visibility_timeout_expiration
// (github.com/localstack/localstack/pull/9632).
func TestChangingTheVisibilityOfAVisibleMessageSucceedsAndDoesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("a")
	expired := w.one("orders")
	w.pass(30 * time.Second)
	w.must(w.ChangeVisibility(w.now, "orders", expired.Receipt, time.Hour))
	if got := w.counts("orders").Visible; got != 1 {
		t.Errorf("got %d visible, want 1: a back-off that came too late is lost", got)
	}
}

// The documents do not mention the handle of an older receive while the message is in
// flight again. moto's suite says that "this is allowed in AWS" and takes effect
// (test_change_message_visibility_on_old_message). It is also the harder case for a
// function: the message of another attempt becomes visible, or is hidden for longer.
func TestAnOldHandleChangesTheVisibilityOfALaterReceive(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{0, time.Minute} {
		w := newWorld(t)
		w.send("a")
		old := w.one("orders")
		w.pass(30 * time.Second)
		w.one("orders")
		w.must(w.ChangeVisibility(w.now, "orders", old.Receipt, timeout))
		if timeout > 0 {
			w.pass(timeout - 1)
			if got := w.counts("orders").InFlight; got != 1 {
				t.Errorf("timeout %v: got %d in flight just before its end, want 1", timeout, got)
			}
			w.pass(1)
		}
		if got := w.counts("orders").Visible; got != 1 {
			t.Errorf("timeout %v: got %d visible after it, want 1", timeout, got)
		}
	}
}

// SQS developer guide, "Using dead-letter queues" and "Setting-up dead-letter queue
// retention": moved when the receive count exceeds maxReceiveCount; "the enqueue
// timestamp is unchanged".
func TestADeadLetterKeepsItsIDAndAge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sent := w.send("a")
	for range 2 {
		w.one("orders")
		w.pass(30 * time.Second)
	}
	if got := w.counts("dead").Visible; got != 0 {
		t.Fatalf("got %d dead letters before the receive that exceeds the count, want 0", got)
	}
	if got := w.receive("orders"); len(got) > 0 {
		t.Errorf("received %d messages, want none", len(got))
	}
	dead := w.one("dead")
	want := sqstest.Message{
		ID: sent.ID, Body: "a", Sent: start(), FirstReceived: start(), Receives: 3, Source: "orders", Receipt: dead.Receipt,
		State: sqstest.InFlight,
	}
	if diff := cmp.Diff(dead, want); diff != "" {
		t.Errorf("mismatch (-got +want):\n%s", diff)
	}
	w.now = start().Add(5*day - 1)
	w.one("dead")
	w.pass(1)
	if got := w.counts("dead"); got.Expired != 1 {
		t.Errorf("got %+v five days after the send, want it expired", got)
	}
}

// API reference, CreateQueue: MessageRetentionPeriod; SQS deletes older messages, and
// does not dead-letter them.
func TestAnExpiredMessageIsDeletedAndNotDeadLettered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("visible")
	for range 2 {
		w.one("orders")
		w.pass(30 * time.Second)
	}
	w.now = start().Add(4 * day)
	if got := w.receive("orders"); len(got) > 0 {
		t.Errorf("received %d messages, want none", len(got))
	}
	if got, want := w.counts("orders"), (sqstest.Counts{Sent: 1, Expired: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := w.counts("dead"); got != (sqstest.Counts{}) {
		t.Errorf("got %+v in the dead-letter queue, want nothing", got)
	}
}

// SQS developer guide, "Learn how to configure a dead-letter queue redrive": "The redrive
// task resets the retention period. All redriven messages are considered new messages
// with a new messageID and enqueueTime".
func TestARedrivenMessageIsANewMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sent := w.send("a")
	for range 3 {
		w.receive("orders")
		w.pass(30 * time.Second)
	}
	w.pass(4*day + 12*time.Hour)
	moved, err := w.Redrive(w.now, "dead", "")
	w.must(err)
	if moved != 1 {
		t.Fatalf("got %d moved, want 1", moved)
	}
	redriven := w.now
	w.pass(4*day - 1)
	got := w.one("orders")
	if got.ID == sent.ID || got.Receives != 1 || !got.Sent.Equal(redriven) || got.Source != "" {
		t.Errorf("got %+v, want a new id, one receive, sent %v", got, redriven)
	}
}

// API reference, SendMessage, and SQS developer guide, "Amazon SQS message quotas" and
// "Message attribute components".
func TestSendRejects(t *testing.T) {
	t.Parallel()
	const invalid, contents = sqstest.CodeInvalidParameterValue, sqstest.CodeInvalidMessageContents
	type draft = sqstest.Draft
	mebibyte := strings.Repeat("a", 1<<20)
	attributes := func(body, name string, a sqstest.Attribute) draft {
		return draft{Body: body, Attributes: map[string]sqstest.Attribute{name: a}}
	}
	number := func(text string) draft { return attributes("a", "a", sqstest.Attribute{Type: "Number", Text: text}) }
	eleven := map[string]sqstest.Attribute{}
	for i := range 11 {
		eleven[fmt.Sprint("a", i)] = sqstest.Text("x")
	}
	body := func(text string) draft { return draft{Body: text} }
	tests := map[string]struct {
		draft draft
		want  string
	}{
		"nothing at 1 MiB":             {body(mebibyte), ""},
		"above 1 MiB":                  {body(mebibyte + "a"), invalid},
		"1 MiB with an attribute":      {attributes(mebibyte, "a", sqstest.Text("x")), invalid},
		"no body":                      {body(""), sqstest.CodeMissingParameter},
		"nothing about tab and line":   {body("\t\r\n\U0001F600"), ""},
		"a control character":          {body("a\x01"), contents},
		"U+FFFE":                       {body("a\uFFFE"), contents},
		"eleven attributes":            {draft{Body: "a", Attributes: eleven}, invalid},
		"an attribute without a value": {attributes("a", "a", sqstest.Text("")), invalid},
		"an attribute of another type": {attributes("a", "a", sqstest.Attribute{Type: "Bool", Text: "x"}), invalid},
		"nothing about a labeled type": {attributes("a", "a.b-c_d", sqstest.Attribute{Type: "Number.int", Text: "1"}), ""},
		"nothing about a long number":  {number("-0.12345678901234567890123456789012345678e126"), ""},
		"nothing about zero":           {number("0"), ""},
		"a number that is none":        {number("abc"), invalid},
		"a number in hexadecimal":      {number("0x1p4"), invalid},
		"a number above 10^126":        {number("2E126"), invalid},
		"a number below 10^-128":       {number("9e-129"), invalid},
		"a number of 39 digits":        {number("123456789012345678901234567890123456789"), invalid},
		// LocalStack's suite, recorded against AWS:
		// test_invalid_string_attributes_cause_invalid_parameter_value_error
		"a control character in an attribute": {attributes("a", "a", sqstest.Text("a\x08")), invalid},
		"a reserved name":                     {attributes("a", "aws.a", sqstest.Text("x")), invalid},
		"a name with two dots":                {attributes("a", "a..b", sqstest.Text("x")), invalid},
		"a delay above 15 min":                {draft{Body: "a", Delay: new(15*time.Minute + time.Second)}, invalid},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, err := w.Send(w.now, "orders", tt.draft)
			if got := code(err); got != tt.want {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
		})
	}
}

// API reference, CreateQueue: creating a queue again is an error if the attributes
// differ; and the ranges of values.
func TestCreateRejects(t *testing.T) {
	t.Parallel()
	const value, invalid = sqstest.CodeInvalidAttributeValue, sqstest.CodeInvalidParameterValue
	type settings = sqstest.Settings
	nothing := func(*settings) {}
	fifo := func(s *settings) { s.FIFO = true }
	tests := map[string]struct {
		queue  string // "q" exists, with the default settings
		change func(*settings)
		want   string
	}{
		"nothing new":                {"q", nothing, ""},
		"other settings":             {"q", func(s *settings) { s.Delay = 1e9 }, sqstest.CodeQueueNameExists},
		"a bad name":                 {"q.q", nothing, invalid},
		"a standard queue .fifo":     {"q.fifo", nothing, invalid},
		"a FIFO queue without .fifo": {"r", fifo, invalid},
		"a name of 81 with .fifo":    {strings.Repeat("a", 76) + ".fifo", fifo, invalid},
		"nothing at 80 with .fifo":   {strings.Repeat("a", 75) + ".fifo", fifo, ""},
		"standard dead letters of FIFO": {
			"r.fifo", func(s *settings) { s.FIFO, s.DeadLetters, s.MaxReceives = true, "q", 1 }, invalid,
		},
		"FIFO deduplication": {
			"r", func(s *settings) { s.ContentDeduplication = true }, sqstest.CodeInvalidAttributeName,
		},
		"an unknown dead-letter queue": {"r", func(s *settings) { s.DeadLetters = "x" }, invalid},
		"no receives":                  {"r", func(s *settings) { s.DeadLetters = "q" }, value},
		"15 days":                      {"r", func(s *settings) { s.Retention = 15 * day }, value},
		"59 seconds":                   {"r", func(s *settings) { s.Retention = 59 * time.Second }, value},
		"13 hours of visibility":       {"r", func(s *settings) { s.Visibility = 13 * time.Hour }, value},
		"21 seconds of wait":           {"r", func(s *settings) { s.Wait = 21 * time.Second }, value},
		"messages of 2 MiB":            {"r", func(s *settings) { s.MaxSize = 2 << 20 }, value},
		"a day's delay":                {"r", func(s *settings) { s.Delay = day }, value},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := sqstest.New(1)
			if err := m.Create(start(), "q", sqstest.DefaultSettings()); err != nil {
				t.Fatal(err)
			}
			changed := sqstest.DefaultSettings()
			tt.change(&changed)
			if got := code(m.Create(start(), tt.queue, changed)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// API reference, ChangeMessageVisibility: "a maximum of approximately 120,000 in flight
// messages ... OverLimit".
func TestReceiveFailsAtTheInFlightLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range sqstest.InFlightLimit + 5 {
		w.send("a")
	}
	for range sqstest.InFlightLimit / 10 {
		w.receive("orders")
	}
	_, err := w.Receive(w.now, "orders", 1, nil)
	if got, want := code(err), sqstest.CodeOverLimit; got != want {
		t.Fatalf("got %q with 120,000 in flight, want %q", got, want)
	}
	w.pass(30 * time.Second)
	if got := len(w.receive("orders")); got != 10 {
		t.Errorf("got %d after the timeout, want 10", got)
	}
}

// SQS developer guide, "Amazon SQS standard queues": best-effort ordering. Pick chooses,
// by default the longest visible.
func TestPickChoosesTheOrderOfMessages(t *testing.T) {
	t.Parallel()
	bodies := func(pick func(int) int) (got []string) {
		w := newWorld(t)
		w.Pick = pick
		for _, body := range []string{"a", "b", "c"} {
			w.send(body)
			w.pass(time.Second)
		}
		for _, m := range w.receive("orders") {
			got = append(got, m.Body)
		}
		return got
	}
	if diff := cmp.Diff(bodies(nil), []string{"a", "b", "c"}); diff != "" {
		t.Errorf("by default (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(bodies(func(n int) int { return n - 1 }), []string{"c", "b", "a"}); diff != "" {
		t.Errorf("last first (-got +want):\n%s", diff)
	}
}

func TestIDsAreUUIDsAndTheSameForTheSameSeed(t *testing.T) {
	t.Parallel()
	a, b := newWorld(t).send("a"), newWorld(t).send("a")
	if a.ID != b.ID || len(a.ID) != 36 || a.ID[14] != '4' || a.ID[19] != '8' {
		t.Errorf("got %q and %q, want one version 4 UUID", a.ID, b.ID)
	}
}

func TestACloneIsIndependent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send("a")
	first := w.one("orders")
	twin := &world{Machine: w.Clone(), t: t, now: w.now}
	before := string(w.AppendState(nil))
	if string(twin.AppendState(nil)) != before {
		t.Error("a clone's state differs")
	}
	twin.must(twin.Delete(twin.now, "orders", first.Receipt))
	if string(w.AppendState(nil)) != before {
		t.Error("deleting from a clone changed the original")
	}
	if string(twin.AppendState(nil)) == before {
		t.Error("deleting left the clone's state as it was")
	}
}

func TestACloneDeduplicatesIndependently(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	twin, other := &world{Machine: w.Clone(), t: t, now: w.now}, &world{Machine: w.Clone(), t: t, now: w.now}
	twin.line("a1")
	w.line("a1")
	other.line("a2")
	for _, each := range []*world{w, twin, other} {
		if got := each.counts("orders.fifo").Sent; got != 1 {
			t.Errorf("got %d messages stored, want 1", got)
		}
		each.must(each.Delete(each.now, "orders.fifo", each.one("orders.fifo").Receipt))
	}
	if string(w.AppendState(nil)) == string(other.AppendState(nil)) {
		t.Error("the state is the same whatever would be a duplicate")
	}
}

func TestNextIsTheNextVisibilityOrExpiry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, ok := w.Next(w.now); ok {
		t.Error("an empty machine has a next moment")
	}
	w.send("a")
	w.one("orders")
	if got, _ := w.Next(w.now); !got.Equal(start().Add(30 * time.Second)) {
		t.Errorf("got %v, want the end of the visibility timeout", got)
	}
	w.pass(30 * time.Second)
	if got, _ := w.Next(w.now); !got.Equal(start().Add(4 * day)) {
		t.Errorf("got %v, want the end of retention", got)
	}
}
