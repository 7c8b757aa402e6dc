package sqstest

import (
	"cmp"
	"container/heap"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Settings are a queue's attributes. Start from DefaultSettings, because a Retention of
// zero is invalid.
type Settings struct {
	Visibility  time.Duration // 0 to 12 h
	Retention   time.Duration // 60 s to 14 days
	Delay       time.Duration // 0 to 15 min
	Wait        time.Duration // 0 to 20 s: the default wait of a receive
	MaxSize     int           // bytes, 1,024 to 1,048,576: body and message attributes together
	DeadLetters string        // name of the dead-letter queue, or empty
	MaxReceives int           // 1 to 1,000 if DeadLetters is set

	FIFO                 bool // as the queue's name says
	ContentDeduplication bool // FIFO only: a message without a deduplication id gets one from its body
}

// DefaultSettings returns the settings of a queue that is created without attributes (API
// reference, CreateQueue).
func DefaultSettings() Settings {
	return Settings{Visibility: 30 * time.Second, Retention: 4 * 24 * time.Hour, MaxSize: 1 << 20}
}

func (s Settings) check() error {
	within := func(v, low, high time.Duration) bool { return low <= v && v <= high }
	switch {
	case !within(s.Visibility, 0, maxVisibility):
		return badAttribute("VisibilityTimeout")
	case !within(s.Retention, time.Minute, 14*24*time.Hour):
		return badAttribute("MessageRetentionPeriod")
	case !within(s.Delay, 0, maxDelay):
		return badAttribute("DelaySeconds")
	case !within(s.Wait, 0, 20*time.Second):
		return badAttribute("ReceiveMessageWaitTimeSeconds")
	case s.MaxSize < 1<<10 || s.MaxSize > 1<<20:
		return badAttribute("MaximumMessageSize")
	case s.DeadLetters != "" && (s.MaxReceives < 1 || s.MaxReceives > 1000):
		return badAttribute("RedrivePolicy")
	case s.ContentDeduplication && !s.FIFO:
		return unknownAttribute("ContentBasedDeduplication")
	}
	return nil
}

// Counts are the numbers of messages of one queue. Sent + Arrived always equals Visible +
// InFlight + Delayed + Deleted + Expired + DeadLettered + Redriven.
type Counts struct {
	Visible, InFlight, Delayed int
	Sent                       int // stored by Send, so without duplicates
	Arrived                    int // dead-lettered or redriven into this queue
	Deleted                    int
	Expired                    int
	DeadLettered, Redriven     int // out of this queue
}

// Empty reports whether the queue has no messages in any state.
func (c Counts) Empty() bool { return c.Visible+c.InFlight+c.Delayed == 0 }

// entry is a message and its index in each heap.
type entry struct {
	Message

	serial   uint64    // order of arrival in the machine, on a FIFO queue in the queue; breaks ties
	visible  time.Time // the time from which it is visible
	received time.Time // latest receive in this queue
	place    [4]int    // index in each heap
}

func byAge(a, b *entry) int { return cmp.Or(a.Sent.Compare(b.Sent), cmp.Compare(a.serial, b.serial)) }

// The heaps that an entry can be in at the same time. The last two are for FIFO queues,
// in the order of arrival.
const (
	byVisible = iota
	bySent
	inGroup
	atHead
)

// entryHeap is a heap that stores the index of each entry in it, so that any entry is
// removed in O(log n).
type entryHeap struct {
	kind    int
	entries []*entry
}

func (h *entryHeap) key(e *entry) time.Time {
	switch h.kind {
	case byVisible:
		return e.visible
	case bySent:
		return e.Sent
	}
	return time.Time{}
}

func (h *entryHeap) Len() int { return len(h.entries) }

func (h *entryHeap) Less(i, j int) bool {
	a, b := h.entries[i], h.entries[j]
	return cmp.Or(h.key(a).Compare(h.key(b)), cmp.Compare(a.serial, b.serial)) < 0
}

func (h *entryHeap) Swap(i, j int) {
	h.entries[i], h.entries[j] = h.entries[j], h.entries[i]
	h.entries[i].place[h.kind], h.entries[j].place[h.kind] = i, j
}

// Push implements heap.Interface.
func (h *entryHeap) Push(x any) {
	e, _ := x.(*entry)
	e.place[h.kind] = len(h.entries)
	h.entries = append(h.entries, e)
}

// Pop implements heap.Interface.
func (h *entryHeap) Pop() any {
	last := len(h.entries) - 1
	e := h.entries[last]
	h.entries[last] = nil // for the garbage collector
	h.entries = h.entries[:last]
	return e
}

// top returns the first entry, or nil.
func (h *entryHeap) top() *entry {
	if len(h.entries) == 0 {
		return nil
	}
	return h.entries[0]
}

type queue struct {
	name              string
	settings          Settings
	created, modified time.Time

	messages map[string]*entry // by message id
	shown    entryHeap         // visible, longest visible first
	hidden   entryHeap         // delayed or in flight, next visible first
	aging    entryHeap         // all of them, oldest first
	inFlight int

	groups   map[string]*group      // FIFO: by group id
	heads    entryHeap              // FIFO: the next message of each free group
	accepted map[string]*acceptance // FIFO: by scoped deduplication id
	recent   []*acceptance          // the same, oldest first

	sent, arrived, deleted, expired, deadLettered, redriven int
}

func newQueue(name string, s Settings, now time.Time) *queue {
	q := &queue{
		name: name, settings: s, created: now, modified: now, messages: map[string]*entry{},
		shown: entryHeap{kind: byVisible}, hidden: entryHeap{kind: byVisible}, aging: entryHeap{kind: bySent},
		heads: entryHeap{kind: atHead},
	}
	if s.FIFO {
		q.groups, q.accepted = map[string]*group{}, map[string]*acceptance{}
	}
	return q
}

func (q *queue) delayed() int { return q.hidden.Len() - q.inFlight }

// settle applies what the passing of time does. Expiry comes first: an expired message is
// deleted and never dead-lettered.
func (q *queue) settle(now time.Time) {
	for e := q.aging.top(); e != nil && !now.Before(e.Sent.Add(q.settings.Retention)); e = q.aging.top() {
		q.remove(e)
		q.expired++
	}
	for e := q.hidden.top(); e != nil && !now.Before(e.visible); e = q.hidden.top() {
		q.remove(e)
		q.add(now, e)
	}
	q.forget(now)
}

// next returns the next time at which settle has an effect, or zero.
func (q *queue) next() (at time.Time) {
	if e := q.aging.top(); e != nil {
		at = e.Sent.Add(q.settings.Retention)
	}
	if e := q.hidden.top(); e != nil && e.visible.Before(at) {
		at = e.visible
	}
	return at
}

// add adds a message in the state that follows from its visible time: Delayed or InFlight
// before it, Visible from then on.
func (q *queue) add(now time.Time, e *entry) {
	q.messages[e.ID] = e
	heap.Push(&q.aging, e)
	switch {
	case !now.Before(e.visible):
		e.State = Visible
		heap.Push(&q.shown, e)
	case e.Receipt == "":
		e.State = Delayed
		heap.Push(&q.hidden, e)
	default:
		e.State = InFlight
		heap.Push(&q.hidden, e)
		q.inFlight++
	}
	q.join(e)
}

func (q *queue) remove(e *entry) {
	q.leave(e)
	delete(q.messages, e.ID)
	heap.Remove(&q.aging, e.place[bySent])
	if e.State == Visible {
		heap.Remove(&q.shown, e.place[byVisible])
		return
	}
	heap.Remove(&q.hidden, e.place[byVisible])
	if e.State == InFlight {
		q.inFlight--
	}
}

// deliver hides an entry and returns a copy with a new receipt handle.
func (q *queue) deliver(now time.Time, e *entry, hide time.Duration) Message {
	q.leave(e)
	heap.Remove(&q.shown, e.place[byVisible])
	e.Receives++
	e.Receipt = q.name + ":" + e.ID + ":" + strconv.Itoa(e.Receives)
	e.received, e.visible, e.State = now, now.Add(hide), InFlight
	if e.FirstReceived.IsZero() {
		e.FirstReceived = now
	}
	heap.Push(&q.hidden, e) // also with a timeout of zero: one receive never returns a message twice
	q.inFlight++
	q.join(e)
	return e.Message
}

// find returns the message of a receipt handle, nil if it is deleted, and whether the
// handle is that of the latest receive in this queue.
func (q *queue) find(handle string) (e *entry, latest bool, err error) {
	part := strings.Split(handle, ":")
	if len(part) != 3 || part[0] != q.name {
		return nil, false, fault(
			CodeReceiptHandleIsInvalid, "The input receipt handle %q is not a valid receipt handle.", handle,
		)
	}
	e = q.messages[part[1]]
	return e, e != nil && e.Receipt == handle, nil
}

// inOrder returns the entries in the order of arrival.
func (q *queue) inOrder() []*entry {
	bySerial := func(a, b *entry) int { return cmp.Compare(a.serial, b.serial) }
	return slices.SortedFunc(slices.Values(q.aging.entries), bySerial)
}
