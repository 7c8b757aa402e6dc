package sqs_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/refund"
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
			maps.DeleteFunc(dead.Attributes, func(name string, _ sqstest.Attribute) bool {
				return strings.HasPrefix(name, "orderonce-")
			})
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
	w.redrive()
	w.script["ORD12345"] = refused(nil)
	if got := w.deliverVisible(); len(got) > 0 {
		t.Errorf("batch item failures: got %q, want none", got)
	}
	dead := w.messages(w.dead)
	if len(dead) != 1 {
		t.Fatalf("got %d dead letters, want 1", len(dead))
	}
	want := map[string]string{
		sqs.AttrReason: "refused", sqs.AttrOrderID: "ORD12345", sqs.AttrFirstMessageID: first,
		sqs.AttrFirstSent: "2100-01-02T03:04:05Z", sqs.AttrTimesParked: "2", "trace": "1",
	}
	if diff := cmp.Diff(texts(dead[0]), want); diff != "" {
		t.Errorf("mismatch (-got +want):\n%s", diff)
	}
}

// What a producer writes into our attributes, or into its trace, reaches a person's
// terminal through the dead-letter queue.
func TestAParkedMessageKeepsNoAttributeThatDoesNotParse(t *testing.T) {
	t.Parallel()
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	w := newWorld(t)
	w.script["ORD12345"] = conflict()
	attributes := map[string]sqstest.Attribute{}
	for name, value := range map[string]string{
		sqs.AttrTrace: trace + "\ninjected", sqs.AttrFirstMessageID: "<b>canary", sqs.AttrFirstSent: "canary",
		sqs.AttrReason: "refused\ncanary", sqs.AttrTimesParked: "canary", sqs.AttrDropped: "canary",
	} {
		attributes[name] = sqstest.Text(value)
	}
	id, dead := w.park(sqstest.Draft{Body: good, Attributes: attributes})
	want := map[string]string{
		sqs.AttrReason: "conflict", sqs.AttrOrderID: "ORD12345", sqs.AttrDetail: "order id already used with different content",
		sqs.AttrFirstMessageID: id, sqs.AttrFirstSent: "2100-01-02T03:04:05Z",
	}
	if diff := cmp.Diff(texts(dead), want); diff != "" {
		t.Errorf("attributes (-got +want):\n%s", diff)
	}
	_, dead = w.park(sqstest.Draft{
		Body: good, Attributes: map[string]sqstest.Attribute{sqs.AttrTrace: sqstest.Text(trace)},
	})
	if got := texts(dead)[sqs.AttrTrace]; got != trace {
		t.Errorf("%s = %q, want the producer's %q", sqs.AttrTrace, got, trace)
	}
}

func TestAttributesOfSQSAndOfParkParse(t *testing.T) {
	t.Parallel()
	const id = "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324"
	for value, want := range map[string]string{
		id: id, "": "own", id + "0": "own", id[1:]: "own", strings.ToUpper(id): "own",
		strings.ReplaceAll(id, "-", "0"): "own", "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf32\n": "own",
	} {
		if got := sqs.FirstMessageID(value, "own"); got != want {
			t.Errorf("FirstMessageID(%q) = %q, want %q", value, got, want)
		}
	}
	for _, r := range slices.Concat(order.Reasons(), sqs.Reasons(), refund.Reasons(), receipt.Reasons()) {
		if got := sqs.ParseReason(string(r)); got != r {
			t.Errorf("ParseReason(%q) = %q, want the reason", r, got)
		}
	}
	for _, value := range []string{"refused\n", "Refused", "=cmd()", "refused 4242", strings.Repeat("a", 41)} {
		if got := sqs.ParseReason(value); got != "" {
			t.Errorf("ParseReason(%q) = %q, want none", value, got)
		}
	}
}

func TestHowOftenAMessageWasParkedIsCountedWhereThereIsRoom(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		producers int
		counts    []string
	}{
		"with room":                             {4, []string{"", "2", "3", "4"}},
		"the producer's attributes take it all": {5, []string{"", "", ""}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.script["ORD12345"] = conflict()
			attributes := map[string]sqstest.Attribute{}
			for i := range tt.producers {
				attributes[fmt.Sprint("mine-", i)] = sqstest.Text("1")
			}
			_, dead := w.park(sqstest.Draft{Body: good, Attributes: attributes})
			for n, want := range tt.counts {
				if n > 0 {
					w.redrive()
					w.deliverVisible()
					dead = w.messages(w.dead)[0]
				}
				if got := dead.Attributes[sqs.AttrTimesParked].Text; got != want || len(dead.Attributes) < tt.producers {
					t.Errorf("parked %d times: got count %q and %d attributes, want %q", n+1, got, len(dead.Attributes), want)
				}
			}
		})
	}
}

// After a lost response the message is parked twice, which is better than never.
func TestAMessageThatCannotBeParkedIsRedelivered(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		breaks       func(*world)
		parked, then int // dead letters after the first delivery and after the second
	}{
		"the call fails": {
			func(w *world) { w.server.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable) }, 0, 1,
		},
		"the response is lost": {func(w *world) { w.server.Lose("SendMessage", 1) }, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.send("no order")[0]
			tt.breaks(w)
			first := w.deliverVisible()
			if got := len(w.messageIDs(w.dead)); !slices.Equal(first, []string{id}) || got != tt.parked {
				t.Errorf("batch item failures = %q, %d dead letters, want %q and %d", first, got, id, tt.parked)
			}
			if got, want := w.untilVisible(id), 3*time.Second; got != want {
				t.Errorf("message becomes visible after %v, want %v", got, want)
			}
			second, dead := w.deliverVisible(), w.messages(w.dead)
			if len(second) > 0 || len(dead) != tt.then {
				t.Errorf("the second time: batch item failures = %q, %d dead letters, want none and %d",
					second, len(dead), tt.then)
			}
			for _, m := range dead {
				if got := m.Attributes[sqs.AttrFirstMessageID].Text; got != id {
					t.Errorf("first message id = %s, want %s", got, id)
				}
			}
		})
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

// Printable ASCII is unchanged, so that operators can search for the error.
func TestADetailIsTruncatedAndPrintable(t *testing.T) {
	t.Parallel()
	printable := ""
	for c := ' '; c <= '~'; c++ {
		printable += string(c)
	}
	for detail, want := range map[string]string{
		"line one\nünï\x00" + strings.Repeat("x", 5000): "line one??n??" + strings.Repeat("x", 1024-13),
		printable + "\x7f\x1f":                          printable + "??",
	} {
		w := newWorld(t)
		w.script["ORD12345"] = refused(errors.New(detail))
		_, dead := w.park(sqstest.Draft{Body: good})
		if diff := cmp.Diff(dead.Attributes[sqs.AttrDetail].Text, want); diff != "" {
			t.Errorf("detail (-got +want):\n%s", diff)
		}
	}
}

// A FIFO dead-letter queue requires a group, and a deduplication id that is the same for
// the same message. A standard queue rejects a deduplication id, so a message with a
// group for fairness is parked without one.
func TestAParkedMessageKeepsItsGroup(t *testing.T) {
	t.Parallel()
	for name, newWorld := range map[string]func(tester) *world{"standard": newWorld, "FIFO": newFIFOWorld} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.script["ORD12345"] = conflict()
			id := w.sendGrouped("g", good)[0]
			w.deliverVisible()
			wantID := ""
			if name == "FIFO" {
				wantID = id
			}
			dead := w.messages(w.dead)
			if len(dead) != 1 || dead[0].Group != "g" || dead[0].DeduplicationID != wantID {
				t.Errorf("got %+v, want one of group g with the deduplication id %q", dead, wantID)
			}
		})
	}
}

func TestADeliveryWithoutAttributesCountsAsTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["ORD12345"] = unconfirmed(0)
	for _, attributes := range []map[string]string{
		nil,
		{"ApproximateReceiveCount": "many", "SentTimestamp": "today"},
		{"ApproximateReceiveCount": "-1"},
		{"ApproximateReceiveCount": "0"},
	} {
		record := events.SQSMessage{MessageId: "1", ReceiptHandle: "1", Body: good, Attributes: attributes}
		response, err := w.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{record}})
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
