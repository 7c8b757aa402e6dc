package sqs_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

// park sends a message whose order is parked, and returns its id and the dead letter.
func (w *world) park(d sqstest.Draft) (id string, dead sqstest.Message) {
	w.t.Helper()
	id = w.sendDraft(d)
	failed, all := w.deliverVisible(), w.messages(w.dead)
	if len(failed) > 0 || len(all) == 0 {
		w.t.Fatalf("batch item failures %q and %d dead letters, want the message parked", failed, len(all))
	}
	return id, all[len(all)-1]
}

// texts returns a message's attributes without their types.
func texts(m sqstest.Message) map[string]string {
	out := map[string]string{}
	for name, a := range m.Attributes {
		out[name] = a.Text + string(a.Binary)
	}
	return out
}

func TestAParkedMessageCarriesItsReasonAndOrigin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, body string
		want       map[string]string
	}{
		{"a conflict", good, map[string]string{
			sqs.AttrReason: "conflict", sqs.AttrOrderID: "ORD12345", sqs.AttrDetail: "order id already used with different content",
		}},
		{"a body that is not an order", "\t{ \"ünïcode\": 1 }\n", map[string]string{
			sqs.AttrReason: "invalid_order",
			sqs.AttrDetail: `message body: unknown field [withheld: length 7, with '\u00fc']`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.script["ORD12345"] = conflict()
			id, dead := w.park(sqstest.Draft{Body: tt.body})
			want := maps.Clone(tt.want)
			want[sqs.AttrFirstMessageID], want[sqs.AttrFirstSent] = id, "2100-01-02T03:04:05Z"
			if diff := cmp.Diff(texts(dead), want); diff != "" {
				t.Errorf("attributes (-got +want):\n%s", diff)
			}
			if dead.Body != tt.body {
				t.Errorf("body = %q, want it unchanged", dead.Body)
			}
		})
	}
}

func TestAParkedMessageKeepsTheProducersAttributes(t *testing.T) {
	t.Parallel()
	theirs := func(n int) map[string]sqstest.Attribute {
		all := map[string]sqstest.Attribute{"bytes": {Type: "Binary.png", Binary: []byte{0, 1, 0xff}}}
		for i := range n - 1 {
			all[fmt.Sprintf("trace-%d", i)] = sqstest.Attribute{Type: "Number.int", Text: fmt.Sprint(i)}
		}
		return all
	}
	for _, tt := range []struct {
		sent, kept int
		dropped    string
	}{
		{sent: 1, kept: 1},
		{sent: 5, kept: 5}, // five are ours
		{6, 4, "trace-3 trace-4"},
		{10, 4, "trace-3 trace-4 trace-5 trace-6 trace-7 trace-8"},
	} {
		t.Run(fmt.Sprintf("%d of %d", tt.kept, tt.sent), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.script["ORD12345"] = conflict()
			_, dead := w.park(sqstest.Draft{Body: good, Attributes: theirs(tt.sent)})
			if got := dead.Attributes[sqs.AttrDropped].Text; got != tt.dropped {
				t.Errorf("dropped attributes = %q, want %q", got, tt.dropped)
			}
			maps.DeleteFunc(
				dead.Attributes,
				func(name string, _ sqstest.Attribute) bool { return strings.HasPrefix(name, "orderonce-") },
			)
			if diff := cmp.Diff(dead.Attributes, theirs(tt.kept)); diff != "" {
				t.Errorf("mismatch (-got +want):\n%s", diff)
			}
		})
	}
}

// Attributes count toward the message size, so the list of dropped names is bounded.
func TestTheNamesOfDroppedAttributesAreTruncated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["ORD12345"] = conflict()
	attributes := map[string]sqstest.Attribute{}
	for i := range 10 {
		attributes[fmt.Sprint(i, strings.Repeat("x", 200))] = sqstest.Text("1")
	}
	_, dead := w.park(sqstest.Draft{Body: good, Attributes: attributes})
	if got := dead.Attributes[sqs.AttrDropped].Text; len(got) != 1024 || !strings.HasPrefix(got, "4xxx") {
		t.Errorf("%s has %d bytes and starts with %.4q, want 1024 and 4xxx", sqs.AttrDropped, len(got), got)
	}
}

func TestASecondParkKeepsTheOrigin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["ORD12345"] = conflict()
	first, _ := w.park(sqstest.Draft{
		Body: good, Attributes: map[string]sqstest.Attribute{"trace": sqstest.Text("1")},
	})
	w.advance(3 * day)
	w.server.Machine(func(m *sqstest.Machine, now time.Time) {
		_, err := m.Redrive(now, w.dead, w.orders)
		w.must(err)
	})
	w.script["ORD12345"] = order.Result{Verdict: order.Park, Reason: order.ReasonRefused}
	if got := w.deliverVisible(); len(got) > 0 {
		t.Errorf("batch item failures: got %q, want none", got)
	}
	dead := w.messages(w.dead)
	if len(dead) != 1 {
		t.Fatalf("got %d dead letters, want 1", len(dead))
	}
	want := map[string]string{
		sqs.AttrReason: "refused", sqs.AttrOrderID: "ORD12345", sqs.AttrFirstMessageID: first,
		sqs.AttrFirstSent: "2100-01-02T03:04:05Z", "trace": "1",
	}
	if diff := cmp.Diff(texts(dead[0]), want); diff != "" {
		t.Errorf("mismatch (-got +want):\n%s", diff)
	}
}

func TestAMessageThatCannotBeParkedIsRedelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.send("no order")[0]
	w.server.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable)
	if diff := cmp.Diff(w.deliverVisible(), []string{id}); diff != "" {
		t.Errorf("batch item failures (-got +want):\n%s", diff)
	}
	if got := w.messageIDs(w.dead); len(got) > 0 {
		t.Errorf("dead-letter queue: got %q, want none", got)
	}
	line := w.lines()[0]
	if got := fmt.Sprint(line["verdict"], " ", line["reason"], " ", line["level"]); got != "redeliver park_failed WARN" {
		t.Errorf("got %q", got)
	}
	if got, want := w.untilVisible(id), 3*time.Second; got != want {
		t.Errorf("message becomes visible after %v, want %v", got, want)
	}
	if got := w.deliverVisible(); len(got) > 0 {
		t.Errorf("batch item failures the second time: got %q, want none", got)
	}
	if got := len(w.messageIDs(w.dead)); got != 1 {
		t.Errorf("got %d dead letters, want 1", got)
	}
}

// SQS deletes a message at the end of its retention, and the order would be lost. SQS has
// to dead-letter it before that.
func TestAMessageThatCanNeverBeParkedIsDeadLetteredBeforeItIsDeleted(t *testing.T) {
	t.Parallel()
	const (
		delay = 30 * time.Second
		works = 30 * time.Second // what each delivery may take, as infra/terraform has it
		rest  = 20               // receives that this test makes by delivering; the others only count
	)
	w := newWorld(t)
	if all := time.Duration(w.Policy.MaxReceives) * (delay + works); all > day {
		t.Errorf("%d receives take %v, want at most the last day", w.Policy.MaxReceives, all)
	}
	w.script["ORD12345"] = outage()
	id := w.send(good)[0]
	w.advance(6 * day)
	w.server.Machine(func(m *sqstest.Machine, now time.Time) {
		for range w.Policy.MaxReceives - rest {
			got, err := m.Receive(now, w.orders, 1, nil)
			w.must(err)
			w.must(m.ChangeVisibility(now, w.orders, got[0].Receipt, 0))
		}
	})
	w.server.Fail("SendMessage", rest, sqstest.CodeServiceUnavailable)
	for range rest {
		if diff := cmp.Diff(w.deliverVisible(), []string{id}); diff != "" {
			t.Errorf("batch item failures (-got +want):\n%s", diff)
		}
		if got, want := w.untilVisible(id), delay; got != want {
			t.Errorf("message becomes visible after %v, want %v", got, want)
		}
	}
	if got := w.deliverVisible(); len(got) > 0 {
		t.Errorf("batch item failures once its receives are used up: got %q, want none", got)
	}
	dead := w.messages(w.dead)
	if len(dead) != 1 || dead[0].ID != id || dead[0].Attributes[sqs.AttrReason].Text != "" {
		t.Errorf("dead letters = %+v, want the message without a reason", dead)
	}
	if got := w.counted("Redelivered park_failed"); got != rest {
		t.Errorf("Redelivered for park_failed = %d, want %d", got, rest)
	}
}

// After a lost response the message is parked twice, which is better than never.
func TestAParkWithALostResponseIsRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.send("no order")[0]
	w.server.Lose("SendMessage", 1)
	if diff := cmp.Diff(w.deliverVisible(), []string{id}); diff != "" {
		t.Errorf("batch item failures (-got +want):\n%s", diff)
	}
	if got, want := w.untilVisible(id), 3*time.Second; got != want {
		t.Errorf("message becomes visible after %v, want %v", got, want)
	}
	if got := w.deliverVisible(); len(got) > 0 {
		t.Errorf("batch item failures the second time: got %q, want none", got)
	}
	for _, m := range w.messages(w.dead) {
		if got := m.Attributes[sqs.AttrFirstMessageID].Text; got != id {
			t.Errorf("first message id = %s, want %s", got, id)
		}
	}
	if got := len(w.messageIDs(w.dead)); got != 2 {
		t.Errorf("got %d dead letters, want 2", got)
	}
}

func TestADetailIsTruncatedAndPrintable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["ORD12345"] = order.Result{
		Verdict: order.Park, Reason: order.ReasonRefused,
		Err: fmt.Errorf("line one\nünï\x00%s", strings.Repeat("x", 5000)),
	}
	_, dead := w.park(sqstest.Draft{Body: good})
	if got, want := dead.Attributes[sqs.AttrDetail].Text, "line one??n??"+strings.Repeat("x", 1024-13); got != want {
		t.Errorf("detail has %d bytes and starts with %.20q, want %d", len(got), got, len(want))
	}
}

// Printable ASCII is unchanged, so that operators can search for the error.
func TestADetailKeepsEveryPrintableCharacter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	printable := ""
	for c := ' '; c <= '~'; c++ {
		printable += string(c)
	}
	w.script["ORD12345"] = order.Result{
		Verdict: order.Park, Reason: order.ReasonRefused, Err: errors.New(printable + "\x7f\x1f"),
	}
	_, dead := w.park(sqstest.Draft{Body: good})
	if got, want := dead.Attributes[sqs.AttrDetail].Text, printable+"??"; got != want {
		t.Errorf("detail = %q, want %q", got, want)
	}
}

// A FIFO dead-letter queue requires a group, and a deduplication id that is the same for
// the same message.
func TestAParkedFIFOMessageKeepsItsGroup(t *testing.T) {
	t.Parallel()
	w := newFIFOWorld(t)
	w.script["ORD12345"] = conflict()
	id := w.sendGrouped("g", good)
	w.deliverVisible()
	dead := w.messages(w.dead)
	if len(dead) != 1 || dead[0].Group != "g" || dead[0].DeduplicationID != id {
		t.Errorf("got %+v, want one of group g with the deduplication id %s", dead, id)
	}
}

// A standard queue rejects a deduplication id, so a message with a group for fairness is
// parked without one.
func TestAParkedMessageOfAFairQueueKeepsItsGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["ORD12345"] = conflict()
	w.sendDraft(sqstest.Draft{Body: good, Group: "tenant"})
	w.deliverVisible()
	if dead := w.messages(w.dead); len(dead) != 1 || dead[0].Group != "tenant" {
		t.Errorf("got %+v, want one of group tenant", dead)
	}
}

func TestADeliveryWithoutAttributesCountsAsTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["ORD12345"] = order.Result{Verdict: order.Redeliver, Reason: order.ReasonUnconfirmed}
	for _, attributes := range []map[string]string{
		nil,
		{"ApproximateReceiveCount": "many", "SentTimestamp": "today"},
		{"ApproximateReceiveCount": "-1"},
		{"ApproximateReceiveCount": "0"},
	} {
		e := events.SQSEvent{
			Records: []events.SQSMessage{{MessageId: "1", ReceiptHandle: "1", Body: good, Attributes: attributes}},
		}
		response, err := w.Handle(t.Context(), e)
		w.must(err)
		if len(response.BatchItemFailures) != 1 {
			t.Errorf("got %v for the attributes %v, want it redelivered", response, attributes)
		}
	}
	for _, line := range w.lines() {
		if line["msg"] == "order" && (line["delivery"] != 1.0 || line["retry_after_s"] != 3.0) {
			t.Errorf("log line = %v, want a first delivery", line)
		}
	}
}
