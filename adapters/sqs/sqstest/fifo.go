package sqstest

import (
	"container/heap"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// fifoSuffix ends the name of every FIFO queue and of no other (SQS developer guide,
// "Amazon SQS FIFO queue quotas").
const fifoSuffix = ".fifo"

// deduplicationInterval is how long after a send another message with the same id is a
// duplicate.
const deduplicationInterval = 5 * time.Minute

// wrongQueueType is SQS's message for a parameter that only the other type of queue
// accepts.
const wrongQueueType = "The request include parameter that is not valid for this queue type."

// group is a message group of a FIFO queue that has messages. "While messages with a
// particular MessageGroupId are invisible, no more messages belonging to the same
// MessageGroupId are returned" (API reference, ReceiveMessage).
type group struct {
	waiting  entryHeap // visible or delayed, in the order of arrival
	inFlight int
}

// next returns the first message of the group, or nil if there is none or it is delayed.
func (g *group) next() *entry {
	if e := g.waiting.top(); e != nil && e.State == Visible {
		return e
	}
	return nil
}

// free reports whether a receive may take messages of the group.
func (g *group) free() bool { return g.inFlight == 0 && g.next() != nil }

// regroup changes the group of a message, and updates heads, which has the next message
// of every free group.
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

// join adds a message to its group by its state, and leave removes it. Between the calls
// the state may change.
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

// offered returns the messages among which a receive chooses. On a FIFO queue they are
// one of each free group.
func (q *queue) offered() *entryHeap {
	if q.settings.FIFO {
		return &q.heads
	}
	return &q.shown
}

// follower returns the message that the same receive returns after e, or nil if it
// chooses again: a receive "attempts to return as many messages with the same message
// group ID as possible in a single call" (SQS developer guide, "FIFO queue delivery
// logic").
func (q *queue) follower(e *entry) *entry {
	if g := q.groups[e.Group]; g != nil {
		return g.next()
	}
	return nil
}

// blocked reports whether another message of the same group is in flight.
func (q *queue) blocked(e *entry) bool {
	g := q.groups[e.Group]
	return g != nil && g.inFlight > 0
}

// store adds a new message to the queue, with a sequence number if the queue is FIFO.
func (q *queue) store(now time.Time, e *entry) {
	if q.settings.FIFO {
		e.Sequence = sequenceNumber(e.serial)
	}
	q.add(now, e)
}

// redelay applies a new delay to delayed messages: "For FIFO queues, the per-queue delay
// setting is retroactive" (SQS developer guide, "Amazon SQS delay queues"). Chosen,
// because the guide does not say it: a visible message stays visible.
func (q *queue) redelay(now time.Time) {
	for _, e := range q.inOrder() {
		if e.State == Delayed {
			q.remove(e)
			e.visible = e.Sent.Add(q.settings.Delay)
			q.add(now, e)
		}
	}
}

// acceptance is what SQS remembers of a send "even after the message is received and
// deleted" (API reference, SendMessage).
type acceptance struct {
	deduplicationID string
	id, sequence    string
	at              time.Time
}

// accept remembers a send for deduplication.
func (q *queue) accept(m Message) {
	if q.settings.FIFO {
		a := &acceptance{m.DeduplicationID, m.ID, m.Sequence, m.Sent}
		q.accepted[a.deduplicationID] = a
		q.recent = append(q.recent, a)
	}
}

// forget removes sends older than deduplicationInterval.
func (q *queue) forget(now time.Time) {
	for len(q.recent) > 0 && now.Sub(q.recent[0].at) >= deduplicationInterval {
		delete(q.accepted, q.recent[0].deduplicationID)
		q.recent = q.recent[1:]
	}
}

// identify sets the id of content-based deduplication: the SHA-256 of the body, without
// the attributes.
func (d Draft) identify(s Settings) Draft {
	if s.ContentDeduplication && d.DeduplicationID == "" {
		sum := sha256.Sum256([]byte(d.Body))
		d.DeduplicationID = hex.EncodeToString(sum[:])
	}
	return d
}

// checkIDs checks the parameters that depend on the type of queue. A standard queue
// accepts a group, for fair queues; it has no effect here. A FIFO queue accepts a delay
// of zero.
func (d Draft) checkIDs(s Settings) error {
	switch {
	case !s.FIFO && d.DeduplicationID != "":
		return outside("MessageDeduplicationId", d.DeduplicationID, wrongQueueType)
	case s.FIFO && d.Delay != nil && *d.Delay != 0:
		return outside("DelaySeconds", seconds(*d.Delay), wrongQueueType)
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
		"The queue should either have ContentBasedDeduplication enabled or "+
			"MessageDeduplicationId provided explicitly")
}

const idRule = "Can only include alphanumeric and punctuation characters. 1 to 128 in length."

func isID(s string) bool {
	return len(s) <= 128 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// sequenceNumber is larger for a later message. Like SQS's it has 20 digits and exceeds
// 64 bits.
func sequenceNumber(serial uint64) string { return fmt.Sprintf("188%017d", serial<<8) }
