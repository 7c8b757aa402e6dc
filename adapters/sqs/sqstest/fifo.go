package sqstest

import (
	"container/heap"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// fifoSuffix ends the name of every FIFO queue and of no other (SQS developer guide, "Amazon SQS FIFO queue quotas").
const fifoSuffix = ".fifo"

// deduplicationInterval is how long a second message with the same id is accepted and not delivered, from the first one's send on.
const deduplicationInterval = 5 * time.Minute

// otherKind is what SQS says of a parameter that only the other kind of queue takes.
const otherKind = "The request include parameter that is not valid for this queue type."

// group is a message group of a FIFO queue, as long as it has messages. "While messages with a particular MessageGroupId are
// invisible, no more messages belonging to the same MessageGroupId are returned" (API reference, ReceiveMessage).
type group struct {
	waiting  entryHeap // visible or delayed, in the order of arrival
	inFlight int
}

// next is the message whose turn it is, nil if there is none or it is delayed: nothing overtakes it.
func (g *group) next() *entry {
	if e := g.waiting.top(); e != nil && e.State == Visible {
		return e
	}
	return nil
}

// free says that a receive may start with the group.
func (g *group) free() bool { return g.inFlight == 0 && g.next() != nil }

// regroup makes a change to the group of a message and keeps heads right: the next message of every free group.
func (q *queue) regroup(e *entry, change func(*group)) {
	if !q.settings.FIFO {
		return
	}
	g := q.groups[e.Group]
	if g == nil {
		g = &group{waiting: entryHeap{kind: inGroup}}
		q.groups[e.Group] = g
	}
	if g.free() {
		heap.Remove(&q.heads, g.next().place[atHead])
	}
	change(g)
	if g.free() {
		heap.Push(&q.heads, g.next())
	}
	if g.waiting.Len()+g.inFlight == 0 {
		delete(q.groups, e.Group)
	}
}

// join counts a message in its group by its state, leave takes it out: between them the state may change.
func (q *queue) join(e *entry) {
	q.regroup(e, func(g *group) {
		if e.State == InFlight {
			g.inFlight++
		} else {
			heap.Push(&g.waiting, e)
		}
	})
}

func (q *queue) leave(e *entry) {
	q.regroup(e, func(g *group) {
		if e.State == InFlight {
			g.inFlight--
		} else {
			heap.Remove(&g.waiting, e.place[inGroup])
		}
	})
}

// offered are the messages that a receive may choose from: of a FIFO queue, one of each group that is free.
func (q *queue) offered() *entryHeap {
	if q.settings.FIFO {
		return &q.heads
	}
	return &q.shown
}

// follower is what the same receive takes after a message, nil if it may choose anew: "attempts to return as many messages with the
// same message group ID as possible in a single call" (SQS developer guide, "FIFO queue delivery logic").
func (q *queue) follower(e *entry) *entry {
	if g := q.groups[e.Group]; g != nil {
		return g.next()
	}
	return nil
}

// blocked says that a message waits for one of its group that is in flight.
func (q *queue) blocked(e *entry) bool {
	g := q.groups[e.Group]
	return g != nil && g.inFlight > 0
}

// store takes in a message that comes to the queue, and numbers it if the queue is FIFO.
func (q *queue) store(now time.Time, e *entry) {
	if q.settings.FIFO {
		e.Sequence = sequenceNumber(e.serial)
	}
	q.add(now, e)
}

// redelay gives delayed messages the queue's new delay: "For FIFO queues, the per-queue delay setting is retroactive" (SQS developer
// guide, "Amazon SQS delay queues"). Chosen where it is silent: what was visible stays so.
func (q *queue) redelay(now time.Time) {
	for _, e := range q.inOrder() {
		if e.State == Delayed {
			q.remove(e)
			e.visible = e.Sent.Add(q.settings.Delay)
			q.add(now, e)
		}
	}
}

// acceptance is what SQS keeps of a send "even after the message is received and deleted" (API reference, SendMessage).
type acceptance struct {
	deduplicationID string
	id, sequence    string
	at              time.Time
}

// accept remembers a send, settle forgets it.
func (q *queue) accept(m Message) {
	if q.settings.FIFO {
		a := &acceptance{m.DeduplicationID, m.ID, m.Sequence, m.Sent}
		q.accepted[a.deduplicationID] = a
		q.recent = append(q.recent, a)
	}
}

func (q *queue) forget(now time.Time) {
	for len(q.recent) > 0 && now.Sub(q.recent[0].at) >= deduplicationInterval {
		delete(q.accepted, q.recent[0].deduplicationID)
		q.recent = q.recent[1:]
	}
}

// identify gives a draft the id that content-based deduplication goes by: the SHA-256 of the body, but not of the attributes.
func (d Draft) identify(s Settings) Draft {
	if s.ContentDeduplication && d.DeduplicationID == "" {
		sum := sha256.Sum256([]byte(d.Body))
		d.DeduplicationID = hex.EncodeToString(sum[:])
	}
	return d
}

// checkIDs holds a draft to the kind of its queue. A standard queue takes a group too, for fair queues: it has no effect here.
// A delay of zero is no delay, also on a FIFO queue.
func (d Draft) checkIDs(s Settings) error {
	switch {
	case !s.FIFO && d.DeduplicationID != "":
		return outside("MessageDeduplicationId", d.DeduplicationID, otherKind)
	case s.FIFO && d.Delay != nil && *d.Delay != 0:
		return outside("DelaySeconds", seconds(*d.Delay), otherKind)
	case s.FIFO && d.Group == "":
		return missing("MessageGroupId")
	case s.FIFO && !s.ContentDeduplication && d.DeduplicationID == "":
		return noDeduplication()
	case !isID(d.Group):
		return outside("MessageGroupId", d.Group, idRule)
	case !isID(d.DeduplicationID):
		return outside("MessageDeduplicationId", d.DeduplicationID, idRule)
	}
	return nil
}

func noDeduplication() *Error {
	return fault(CodeInvalidParameterValue,
		"The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
}

const idRule = "Can only include alphanumeric and punctuation characters. 1 to 128 in length."

func isID(s string) bool {
	return len(s) <= 128 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// sequenceNumber is larger for a later message, and like the real ones it has 20 digits and does not fit 64 bits.
func sequenceNumber(serial uint64) string { return fmt.Sprintf("188%017d", serial<<8) }
