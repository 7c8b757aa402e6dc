package sqs_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

// A FIFO dead-letter queue requires a group, and a deduplication id that is the same for
// the same message. A standard queue rejects a deduplication id, so a message with a
// group for fairness is parked without one.
func TestAParkedMessageKeepsItsGroup(t *testing.T) {
	for name, kind := range map[string]string{"standard": standard, "FIFO": fifo} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, kind)
			w.script["ORD12345"] = conflict()
			id := w.sendGrouped("g", good)[0]
			w.deliver()
			wantID := ""
			if kind == fifo {
				wantID = id
			}
			dead := w.messages(w.dead)
			if len(dead) != 1 || dead[0].Group != "g" || dead[0].DeduplicationID != wantID {
				t.Errorf("got %+v, want one of group g with the deduplication id %q", dead, wantID)
			}
		})
	}
}

// A body reaches the dead-letter queue as it was sent, also one that is not an order.
func TestASecondParkKeepsTheOrigin(t *testing.T) {
	const body = "\t{ \"ünïcode\": 1 }\n"
	w := newWorld(t, standard)
	theirs := map[string]sqstest.Attribute{"bytes": {Type: "Binary.png", Binary: []byte{0, 1, 0xff}}}
	first := w.sendDraft(sqstest.Draft{Body: body, Attributes: theirs})
	w.deliver()
	w.advance(3 * day)
	w.redrive()
	w.deliver()
	want := map[string]sqstest.Attribute{
		"bytes": theirs["bytes"], sqs.AttrReason: sqstest.Text("invalid_order"), sqs.AttrFirstMessageID: sqstest.Text(first),
		sqs.AttrFirstSent: sqstest.Text("2100-01-02T03:04:05Z"), sqs.AttrTimesParked: sqstest.Text("2"),
		sqs.AttrDetail: sqstest.Text(`message body: unknown field [withheld: length 7, with '\u00fc']`),
	}
	dead := w.messages(w.dead)
	if len(dead) != 1 || dead[0].Body != body {
		t.Fatalf("got dead letters %+v, want one with the body unchanged", dead)
	}
	if diff := cmp.Diff(dead[0].Attributes, want); diff != "" {
		t.Errorf("attributes (-got +want):\n%s", diff)
	}
}

// After a lost response the message is parked twice, which is better than never.
func TestAMessageThatCannotBeParkedIsRedelivered(t *testing.T) {
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
			w := newWorld(t, standard)
			id := w.send("no order")[0]
			tt.breaks(w)
			failed, parked := w.deliver(), len(w.messages(w.dead))
			w.advance(3 * time.Second)
			again, dead := w.deliver(), w.messages(w.dead)
			if !slices.Equal(failed, []string{id}) || parked != tt.parked || len(again) > 0 || len(dead) != tt.then {
				t.Errorf("batch item failures %q, then %q; dead letters %d, then %d; want %q, none, %d and %d",
					failed, again, parked, len(dead), id, tt.parked, tt.then)
			}
			for _, m := range dead {
				if got := m.Attributes[sqs.AttrFirstMessageID].Text; got != id {
					t.Errorf("first message id = %s, want %s", got, id)
				}
			}
		})
	}
}

// The message is in the dead-letter queue already: redelivering it would park it twice.
func TestAParkedMessageThatCannotBeNotedIsAcknowledged(t *testing.T) {
	for name, note := range map[string]func() error{
		"an error": func() error { return errors.New("the table is gone") },
		"a panic":  func() error { panic("a bug") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, standard)
			w.script["CLASHES"] = conflict()
			w.NoteParked = func(context.Context, order.Order, order.Reason, time.Time) error { return note() }
			w.send(orderWithID("CLASHES"))
			if failed, dead := w.deliver(), w.bodies(w.dead); len(failed) > 0 || len(dead) != 1 {
				t.Errorf("got batch item failures %q and dead letters %q, want the message parked", failed, dead)
			}
			if got := w.line("msg", "message parked, but its record does not say so")["level"]; got != "WARN" {
				t.Errorf("log level = %v, want WARN", got)
			}
		})
	}
}
