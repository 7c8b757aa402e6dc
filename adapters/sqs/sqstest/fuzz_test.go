package sqstest_test

import (
	"testing"
	"time"

	"orderonce/adapters/sqs/sqstest"
)

// ledger is what an outsider knows of the messages sent: where each was seen last, and which were deleted or redriven.
type ledger struct {
	*world

	seen    map[string]string // message id -> queue
	sent    map[string]time.Time
	gone    map[string]bool
	handles []handle
}

type handle struct {
	queue, id, receipt string
}

// FuzzMachine plays any schedule: every message sent is in exactly one of visible, delayed, in flight, deleted, expired, dead-lettered.
func FuzzMachine(f *testing.F) {
	f.Add([]byte{0, 0, 2, 2, 5, 40, 2, 2, 3, 0, 5, 40, 2, 7, 1, 6, 0})
	f.Add([]byte{0, 0, 0, 0, 1, 9, 2, 0, 4, 0, 4, 200, 5, 255, 2, 0, 2, 1, 3, 2, 8, 0, 6, 0, 6, 1})
	f.Fuzz(func(t *testing.T, schedule []byte) {
		l := &ledger{world: newWorld(t), seen: map[string]string{}, sent: map[string]time.Time{}, gone: map[string]bool{}}
		schedule = schedule[:min(len(schedule), 400)] // each step looks at every message
		for ; len(schedule) > 1; schedule = schedule[2:] {
			before, twin := string(l.AppendState(nil)), l.Clone()
			l.step(schedule[0]%9, schedule[1])
			l.check()
			if string(twin.AppendState(nil)) != before {
				t.Fatal("a step of the original changed its clone")
			}
		}
	})
}

func (l *ledger) step(op, arg byte) {
	queue := []string{"orders", "dead"}[arg%2]
	switch op {
	case 0, 1:
		m, err := l.Send(l.now, queue, sqstest.Draft{Body: "a", Delay: new(time.Duration(op) * time.Duration(arg) * time.Second)})
		l.must(err)
		l.sent[m.ID] = m.Sent
	case 2:
		l.Pick = func(n int) int { return int(arg) % n }
		for _, m := range l.receive(queue) {
			l.handles = append(l.handles, handle{queue, m.ID, m.Receipt})
			if queue == "orders" && m.Receives > 2 {
				l.t.Fatalf("message %s was received %d times, at most 2 are allowed", m.ID, m.Receives)
			}
		}
	case 3:
		l.delete(arg)
	case 4:
		if len(l.handles) > 0 {
			h := l.handles[int(arg)%len(l.handles)]
			_ = l.ChangeVisibility(l.now, h.queue, h.receipt, time.Duration(arg)*time.Second) // may be refused
		}
	case 5:
		l.pass(time.Duration(arg) * time.Second)
	case 6:
		l.redrive(queue)
	case 7:
		l.pass(time.Duration(arg) * time.Hour)
	case 8:
		l.pass(time.Duration(arg) * time.Millisecond)
	}
}

// delete uses a handle, which may be an old one: only the latest has an effect.
func (l *ledger) delete(arg byte) {
	if len(l.handles) == 0 {
		return
	}
	h := l.handles[int(arg)%len(l.handles)]
	for _, m := range l.list(h.queue) {
		if m.ID == h.id && m.Receipt == h.receipt {
			l.gone[h.id] = true
		}
	}
	l.must(l.Delete(l.now, h.queue, h.receipt))
}

// redrive gives every visible dead letter a new id.
func (l *ledger) redrive(to string) {
	before := l.list("dead")
	known := map[string]bool{}
	for _, m := range append(l.list("orders"), before...) {
		known[m.ID] = true
	}
	_, err := l.Redrive(l.now, "dead", to)
	l.must(err)
	for _, m := range before {
		if m.State == sqstest.Visible {
			l.gone[m.ID] = true
		}
	}
	for _, m := range append(l.list("orders"), l.list("dead")...) {
		if !known[m.ID] {
			l.sent[m.ID] = l.now
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
	here := map[string]string{}
	for _, queue := range l.Queues() {
		for _, m := range l.list(queue) {
			if other, twice := here[m.ID]; twice {
				l.t.Fatalf("message %s is in %s and in %s", m.ID, other, queue)
			}
			here[m.ID], l.seen[m.ID] = queue, queue
			if l.gone[m.ID] || l.now.Sub(m.Sent) >= retention[queue] {
				l.t.Fatalf("message %s is still in %s: %+v", m.ID, queue, m)
			}
		}
		c := l.counts(queue)
		if in, out := c.Sent+c.Arrived, c.Visible+c.InFlight+c.Delayed+c.Deleted+c.Expired+c.DeadLettered+c.Redriven; in != out {
			l.t.Fatalf("%s: %d came in, %d are accounted for: %+v", queue, in, out, c)
		}
	}
	for id, at := range l.sent {
		if here[id] == "" && !l.gone[id] && l.now.Sub(at) < retention["orders"] {
			l.t.Fatalf("message %s, last seen in %q, is lost", id, l.seen[id])
		}
	}
}
