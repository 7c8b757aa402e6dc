package sqs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
)

func TestAParkedMessageIsNotedInItsOrdersRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["WAITS"], w.script["CLASHES"] = outage(), conflict()
	w.send(orderWithID("PAID"), orderWithID("WAITS"), orderWithID("CLASHES"), "no order")
	w.deliverVisible()
	if diff := cmp.Diff(w.notes, []string{"CLASHES conflict"}); diff != "" {
		t.Errorf("notes (-got +want):\n%s", diff)
	}
}

// The message is in the dead-letter queue already: redelivering it would park it twice.
func TestAParkedMessageThatCannotBeNotedIsAcknowledged(t *testing.T) {
	t.Parallel()
	for name, note := range map[string]func() error{
		"an error": func() error { return errors.New("the table is gone") },
		"a panic":  func() error { panic("a bug") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.script["CLASHES"] = conflict()
			w.NoteParked = func(context.Context, order.Order, order.Reason, time.Time) error { return note() }
			w.send(orderWithID("CLASHES"))
			if got := w.deliverVisible(); len(got) > 0 {
				t.Errorf("batch item failures: got %q, want none", got)
			}
			if got := len(w.messageIDs(w.dead)); got != 1 {
				t.Errorf("got %d dead letters, want 1", got)
			}
			if got := w.line("msg", "message parked, but its record does not say so")["level"]; got != "WARN" {
				t.Errorf("log level = %v, want WARN", got)
			}
		})
	}
}
