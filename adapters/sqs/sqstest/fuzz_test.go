package sqstest_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/sqs/sqstest"
)

// ledger records where each message was seen last, and which messages were deleted or
// redriven.
type ledger struct {
	*world

	seen   map[string]string // message id -> queue
	stored map[string]time.Time
	gone   map[string]bool

	receipts []receipt
}

type receipt struct{ queue, id, handle string }

// FuzzMachine runs any schedule and checks that every message is exactly one of visible,
// in flight, deleted, expired, dead-lettered and redriven.
func FuzzMachine(f *testing.F) {
	f.Add([]byte{0, 0, 2, 2, 5, 40, 2, 2, 3, 0, 5, 40, 2, 7, 1, 6, 0})
	f.Add([]byte{0, 0, 0, 0, 1, 9, 2, 0, 4, 0, 4, 200, 5, 255, 2, 0, 2, 1, 3, 2, 1, 0, 6, 0, 6, 1})
	f.Add([]byte{
		0, 2, 0, 18, 0, 34, 0, 6, 2, 2, 4, 0, 2, 6, 5, 40, 2, 2, 3, 0, 5, 40, 2, 2, 2, 3, 6, 2, 2, 2,
	})
	f.Fuzz(func(t *testing.T, schedule []byte) {
		l := &ledger{
			world: newWorld(t, false), seen: map[string]string{}, stored: map[string]time.Time{}, gone: map[string]bool{},
		}
		schedule = schedule[:min(len(schedule), 400)] // each step looks at every message
		for ; len(schedule) > 1; schedule = schedule[2:] {
			l.step(schedule[0]%8, schedule[1])
			l.check()
		}
	})
}

func (l *ledger) step(op, arg byte) {
	queue := []string{"orders", "dead", "orders.fifo", "dead.fifo"}[arg%4]
	switch op {
	case 0:
		d := sqstest.Draft{Body: "a"}
		if isFIFO(queue) {
			l.sent++
			d.Group, d.DeduplicationID = fmt.Sprint(arg>>2%3), fmt.Sprint(l.sent)
		}
		m, err := l.Send(l.now, queue, d)
		l.must(err)
		l.stored[m.ID] = m.Sent
	case 1:
		l.pass(time.Duration(arg) * time.Millisecond)
	case 2:
		l.pull(queue, arg)
	case 3:
		l.discard(arg)
	case 4:
		if len(l.receipts) > 0 {
			h := l.receipts[int(arg)%len(l.receipts)]
			_ = l.ChangeVisibility(l.now, h.queue, h.handle, time.Duration(arg)*time.Second) // may fail
		}
	case 5:
		l.pass(time.Duration(arg) * time.Second)
	case 6:
		l.redrive(queue)
	case 7:
		l.pass(time.Duration(arg) * time.Hour)
	}
}

func isFIFO(queue string) bool { return strings.HasSuffix(queue, ".fifo") }

func (l *ledger) pull(queue string, arg byte) {
	l.Pick = func(n int) int { return int(arg) % n }
	got, err := l.Receive(l.now, queue, 1+int(arg>>2)%10, nil)
	l.must(err)
	for _, m := range got {
		l.receipts = append(l.receipts, receipt{queue, m.ID, m.Receipt})
		if strings.HasPrefix(queue, "orders") && m.Receives > 2 {
			l.t.Fatalf("message %s was received %d times, at most 2 are allowed", m.ID, m.Receives)
		}
	}
}

// delete uses any handle. Only the latest one of a message has an effect.
func (l *ledger) discard(arg byte) {
	if len(l.receipts) == 0 {
		return
	}
	h := l.receipts[int(arg)%len(l.receipts)]
	for _, m := range l.list(h.queue) {
		if m.ID == h.id && m.Receipt == h.handle && (m.State == sqstest.InFlight || !isFIFO(h.queue)) {
			l.gone[h.id] = true
		}
	}
	if err := l.Delete(l.now, h.queue, h.handle); !isFIFO(h.queue) { // an expired handle fails on a FIFO queue
		l.must(err)
	}
}

// redrive gives every visible dead letter a new id.
func (l *ledger) redrive(to string) {
	orders, dead := "orders", "dead"
	if isFIFO(to) {
		orders, dead = "orders.fifo", "dead.fifo"
	}
	if to == dead { // which fails
		to = orders
	}
	before := l.list(dead)
	known, flying := map[string]bool{}, map[string]bool{}
	for _, m := range append(l.list(orders), before...) {
		known[m.ID] = true
	}
	for _, m := range before {
		flying[m.Group] = flying[m.Group] || isFIFO(dead) && m.State == sqstest.InFlight
	}
	_, err := l.Redrive(l.now, dead, to)
	l.must(err)
	for _, m := range before {
		if m.State == sqstest.Visible && !flying[m.Group] {
			l.gone[m.ID] = true
		}
	}
	for _, m := range append(l.list(orders), l.list(dead)...) {
		if !known[m.ID] {
			l.stored[m.ID] = l.now
		}
	}
}

func (l *ledger) list(queue string) []sqstest.Message {
	got, err := l.Messages(l.now, queue)
	l.must(err)
	return got
}

func (l *ledger) check() {
	l.t.Helper()
	retention := map[string]time.Duration{"orders": 4 * 24 * time.Hour, "dead": 5 * 24 * time.Hour}
	retention["orders.fifo"], retention["dead.fifo"] = retention["orders"], retention["dead"]
	here := map[string]string{}
	for _, queue := range slices.Sorted(maps.Keys(retention)) {
		for _, m := range l.list(queue) {
			if other, twice := here[m.ID]; twice {
				l.t.Fatalf("message %s is in %s and in %s", m.ID, other, queue)
			}
			here[m.ID], l.seen[m.ID] = queue, queue
			if l.gone[m.ID] || l.now.Sub(m.Sent) >= retention[queue] {
				l.t.Fatalf("message %s is still in %s: %+v", m.ID, queue, m)
			}
		}
		c, err := l.Counts(l.now, queue)
		l.must(err)
		if in, out := c.Sent+c.Arrived, c.Visible+c.InFlight+c.Deleted+c.Expired+c.DeadLettered+c.Redriven; in != out {
			l.t.Fatalf("%s: %d came in, %d are accounted for: %+v", queue, in, out, c)
		}
	}
	for id, at := range l.stored {
		if here[id] == "" && !l.gone[id] && l.now.Sub(at) < retention["orders"] {
			l.t.Fatalf("message %s, last seen in %q, is lost", id, l.seen[id])
		}
	}
}
