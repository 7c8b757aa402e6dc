// Package sqstest implements the documented rules of Amazon SQS and of Lambda's event
// source mapping, for tests and for running the system on one machine. It knows nothing
// of orders, tables or Stripe, and leaves out what orderonce does not use, such as
// delays.
//
// Machine implements the rules without goroutines, clock, locks or I/O, so that a
// simulation controls every choice. Serve serves a Machine with the AWS JSON 1.0
// protocol, for AWS SDKs and the AWS CLI. Mapping invokes a function as Lambda does.
//
// Where the documents leave a choice, the comment at the rule says what was chosen. A
// queue whose name ends in .fifo is a FIFO queue.
package sqstest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limits of SQS for every queue (API reference, ReceiveMessage and
// ChangeMessageVisibility).
const (
	maxReceive    = 10
	maxVisibility = 12 * time.Hour
)

// deduplicationInterval is how long after a send to a FIFO queue another message with the
// same id is a duplicate.
const deduplicationInterval = 5 * time.Minute

// Region and Account are part of every ARN and queue URL.
const (
	Region  = "us-east-1"
	Account = "000000000000"
)

// ARN returns the ARN of a queue.
func ARN(queue string) string { return "arn:aws:sqs:" + Region + ":" + Account + ":" + queue }

// Settings are a queue's attributes. Start from DefaultSettings, because a message never
// outlives a Retention of zero.
type Settings struct {
	Visibility  time.Duration // 0 to 12 h
	Retention   time.Duration // 60 s to 14 days
	DeadLetters string        // name of the dead-letter queue, or empty
	MaxReceives int           // 1 to 1,000 if DeadLetters is set
}

func isFIFO(queue string) bool { return strings.HasSuffix(queue, ".fifo") }

// DefaultSettings returns the settings of a queue that is created without attributes (API
// reference, CreateQueue).
func DefaultSettings() Settings {
	return Settings{Visibility: 30 * time.Second, Retention: 4 * 24 * time.Hour}
}

// Counts are the numbers of messages of one queue. Sent + Arrived always equals Visible +
// InFlight + Deleted + Expired + DeadLettered + Redriven.
type Counts struct {
	Visible, InFlight      int
	Sent                   int // stored by Send, so without duplicates
	Arrived                int // dead-lettered or redriven into this queue
	Deleted                int
	Expired                int
	DeadLettered, Redriven int // out of this queue
}

// Plus returns the sums.
func (c Counts) Plus(o Counts) Counts {
	return Counts{
		c.Visible + o.Visible, c.InFlight + o.InFlight, c.Sent + o.Sent, c.Arrived + o.Arrived,
		c.Deleted + o.Deleted, c.Expired + o.Expired, c.DeadLettered + o.DeadLettered, c.Redriven + o.Redriven,
	}
}

// Empty reports whether the queue has no messages in any state.
func (c Counts) Empty() bool { return c.Visible+c.InFlight == 0 }

// Machine holds queues and their messages. Every call has the time as an argument, which
// must not decrease. New returns a usable Machine. It is not safe for concurrent use.
type Machine struct {
	// Pick returns which of n visible messages is received next, 0 to n-1, because
	// standard queues do not promise an order. Index 0 is the one that has been visible
	// longest. On a FIFO queue Pick chooses among the groups that may be received from,
	// and index 0 is the group whose next message was sent first. A nil Pick always
	// chooses 0.
	Pick func(n int) int

	seed   uint64
	serial uint64 // of the latest message
	queues map[string]*queue
}

// entry is a message in a queue. Its VisibleAt decides its State.
type entry struct {
	Message

	serial   uint64    // order of arrival in the machine, on a FIFO queue in the queue
	received time.Time // latest receive in this queue
}

type queue struct {
	name     string
	fifo     bool
	settings Settings
	entries  []*entry  // by serial
	recent   []Message // FIFO: what was sent within deduplicationInterval, oldest first
	counts   Counts
	due      time.Time // before it, settle has nothing to do
}

// New returns a machine without queues. The same seed and calls result in the same
// message ids and receipt handles.
func New(seed uint64) *Machine { return &Machine{seed: seed, queues: map[string]*queue{}} }

// Create creates a queue. Errors: QueueNameExists.
func (m *Machine) Create(_ time.Time, name string, s Settings) error {
	if m.queues[name] != nil {
		return fault(CodeQueueNameExists, "A queue named %q already exists.", name)
	}
	m.queues[name] = &queue{name: name, fifo: isFIFO(name), settings: s}
	return nil
}

// Drop deletes a queue and its messages. Errors: QueueDoesNotExist.
func (m *Machine) Drop(now time.Time, name string) error {
	_, err := m.open(now, name)
	delete(m.queues, name)
	return err
}

// Send stores a message and returns it. If it is a duplicate on a FIFO queue, Send stores
// nothing and returns the first one. Errors: QueueDoesNotExist, MissingParameter,
// InvalidParameterValue, InvalidMessageContents.
func (m *Machine) Send(now time.Time, name string, d Draft) (Message, error) {
	q, err := m.open(now, name)
	if err == nil {
		err = d.check(q.fifo)
	}
	if err != nil {
		return Message{}, err
	}
	if q.fifo {
		same := func(sent Message) bool { return sent.DeduplicationID == d.DeduplicationID }
		if i := slices.IndexFunc(q.recent, same); i >= 0 {
			return q.recent[i], nil
		}
	}
	e := m.newEntry(now, d)
	q.add(e)
	q.counts.Sent++
	if q.fifo { // SQS remembers the id "even after the message is received and deleted"
		q.recent = append(q.recent, e.Message)
	}
	return e.Message, nil
}

// Receive returns up to limit messages and hides them for the visibility timeout, or for
// the queue's timeout if nil. A message whose receive count has reached maxReceiveCount
// is moved to the dead-letter queue instead.
//
// A FIFO queue returns as many messages of a group as possible, in their order, and then
// no more of the group until those are deleted or visible again (SQS developer guide,
// "FIFO queue delivery logic"). A message in flight blocks those after it in its group,
// not one before it that is visible again (recorded against AWS by LocalStack's suite,
// test_fifo_group_visibility_extends_with_change_message_visibility).
// Errors: QueueDoesNotExist, InvalidParameterValue.
func (m *Machine) Receive(
	now time.Time, name string, limit int, visibility *time.Duration,
) ([]Message, error) {
	q, err := m.open(now, name)
	if err != nil {
		return nil, err
	}
	hide := q.settings.Visibility
	if visibility != nil {
		hide = *visibility
	}
	switch {
	case limit < 1 || limit > maxReceive:
		return nil, outside("MaxNumberOfMessages", limit, "Must be between 1 and 10, if provided.")
	case hide < 0 || hide > maxVisibility:
		return nil, outside("VisibilityTimeout", seconds(hide), "Must be between 0 and 43200, if provided.")
	}
	out := make([]Message, 0, min(limit, q.counts.Visible))
	for lines := q.offered(); len(lines) > 0 && len(out) < limit; {
		i := 0
		if m.Pick != nil {
			i = m.Pick(len(lines))
		}
		for _, e := range lines[i][:min(len(lines[i]), limit-len(out))] {
			if dead := m.queues[q.settings.DeadLetters]; dead != nil && e.Receives >= q.settings.MaxReceives {
				m.deadLetter(now, q, dead, e)
			} else {
				out = append(out, q.deliver(now, e, hide))
			}
		}
		lines = slices.Delete(lines, i, i+1)
	}
	return out, nil
}

// Delete deletes the message of a receipt handle. Chosen where the API reference says
// "might": the handle of the latest receive deletes, also when the message is visible
// again; an older handle succeeds without effect, so the message is redelivered. On a
// FIFO queue, after the visibility timeout, "the action fails with an error" (API
// reference, ReceiveMessage). Errors: QueueDoesNotExist, ReceiptHandleIsInvalid,
// InvalidParameterValue.
func (m *Machine) Delete(now time.Time, name, handle string) error {
	q, err := m.open(now, name)
	if err != nil {
		return err
	}
	e, latest, err := q.find(handle)
	switch {
	case err != nil || e == nil:
		return err
	case q.fifo && (!latest || e.State != InFlight):
		return outside("ReceiptHandle", handle, "The receipt handle has expired.")
	case !latest:
		return nil
	}
	q.remove(e)
	q.counts.Deleted++
	return nil
}

// ChangeVisibility hides a message for d from now on; zero makes it visible. The API
// reference says of an expired handle that the call "might result in an error". On a
// standard queue it does not: AWS was seen to respond OK and to leave a visible message
// unchanged (github.com/localstack/localstack/pull/9632), and the handle of an older
// receive changes a message that is in flight again (moto's
// test_change_message_visibility_on_old_message). Chosen for a FIFO queue, because no
// document says it: an expired handle fails as in Delete.
//
// Errors: QueueDoesNotExist, ReceiptHandleIsInvalid, InvalidParameterValue (the message
// is deleted; the handle has expired, on a FIFO queue; or d is outside 0 to 12 h, counted
// from the receive).
func (m *Machine) ChangeVisibility(now time.Time, name, handle string, d time.Duration) error {
	q, err := m.open(now, name)
	if err != nil {
		return err
	}
	e, latest, err := q.find(handle)
	switch {
	case d < 0 || d > maxVisibility:
		return outside("VisibilityTimeout", seconds(d), "Must be between 0 and 43200.")
	case err != nil:
		return err
	case e == nil, q.fifo && (!latest || e.State != InFlight):
		return outside(
			"ReceiptHandle", handle, "Message does not exist or is not available for visibility timeout change.",
		)
	case e.State != InFlight:
		return nil
	case now.Sub(e.received)+d > maxVisibility:
		return outside(
			"VisibilityTimeout", seconds(d),
			"Total VisibilityTimeout for the message is beyond the limit [43200 seconds]",
		)
	}
	e.VisibleAt = now.Add(d)
	q.sooner(e.VisibleAt)
	return nil
}

// Redrive moves every message that may be received from one queue to another, oldest
// first. A moved message is a new one: new id, no receives, and its retention starts
// again (SQS developer guide, "Learn how to configure a dead-letter queue redrive").
// Chosen, because the documents do not say it for FIFO queues: a moved message is never a
// duplicate, and a message behind one in flight in its group is not moved. Errors:
// QueueDoesNotExist.
func (m *Machine) Redrive(now time.Time, from, to string) (moved int, err error) {
	source, err := m.open(now, from)
	if err != nil {
		return 0, err
	}
	target, err := m.open(now, to)
	if err != nil {
		return 0, err
	}
	all := slices.Concat(source.offered()...)
	slices.SortFunc(all, func(a, b *entry) int {
		return cmp.Or(a.Sent.Compare(b.Sent), cmp.Compare(a.serial, b.serial))
	})
	for _, e := range all {
		source.remove(e)
		target.add(m.newEntry(now, e.Draft))
	}
	source.counts.Redriven += len(all)
	target.counts.Arrived += len(all)
	return len(all), nil
}

// Counts returns how many messages of a queue are in each state, and how many left it and
// how. Errors: QueueDoesNotExist.
func (m *Machine) Counts(now time.Time, name string) (Counts, error) {
	q, err := m.open(now, name)
	if err != nil {
		return Counts{}, err
	}
	return q.counts, nil
}

// Messages returns all messages of a queue, in the order of arrival, without receiving
// them. Errors: QueueDoesNotExist.
func (m *Machine) Messages(now time.Time, name string) ([]Message, error) {
	q, err := m.open(now, name)
	if err != nil {
		return nil, err
	}
	out := make([]Message, len(q.entries))
	for i, e := range q.entries {
		out[i] = e.Message
	}
	return out, nil
}

// Settings returns the settings of a queue. Errors: QueueDoesNotExist.
func (m *Machine) Settings(name string) (Settings, error) {
	q, ok := m.queues[name]
	if !ok {
		return Settings{}, noQueue(name)
	}
	return q.settings, nil
}

// Next returns the next time after now at which a message becomes visible or expires, and
// false if there is none. A simulation advances its clock to it.
func (m *Machine) Next(now time.Time) (next time.Time, ok bool) {
	for _, q := range m.queues {
		q.due = time.Time{} // a visibility that would have ended then may have been changed
		q.settle(now)
		if len(q.entries) > 0 && (!ok || q.due.Before(next)) {
			next, ok = q.due, true
		}
	}
	return next, ok
}

// open returns a queue after settling all queues, so that the state does not depend on
// which queue is used.
func (m *Machine) open(now time.Time, name string) (*queue, error) {
	for _, q := range m.queues {
		q.settle(now)
	}
	q, ok := m.queues[name]
	if !ok {
		return nil, noQueue(name)
	}
	return q, nil
}

// newEntry returns a message whose id has the form of a version 4 UUID and ends in its
// number, for readable logs.
func (m *Machine) newEntry(now time.Time, d Draft) *entry {
	m.serial++
	id := fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x",
		m.seed>>32, m.seed>>16&0xffff, m.seed>>4&0xfff, m.seed&0xf, m.serial&(1<<48-1))
	return &entry{serial: m.serial, Message: Message{ID: id, Draft: d, Sent: now, VisibleAt: now}}
}

// deadLetter keeps the id and the receive count. On a standard queue the message keeps
// its enqueue time, and so its retention. "For FIFO queues, the enqueue timestamp
// resets", and the deduplication id "will be replaced with the original message's ID"
// (SQS developer guide, "Setting-up dead-letter queue retention" and "Learn how to
// configure a dead-letter queue redrive").
func (m *Machine) deadLetter(now time.Time, from, to *queue, e *entry) {
	from.remove(e)
	from.counts.DeadLettered++
	e.Source, e.Handle, e.VisibleAt = from.name, "", now
	if to.fifo {
		m.serial++
		e.serial, e.Sent, e.DeduplicationID = m.serial, now, e.ID
	}
	to.counts.Arrived++
	to.add(e)
}

// settle applies what the passing of time does: messages expire, hidden ones become
// visible, and sends are no longer remembered.
func (q *queue) settle(now time.Time) {
	for len(q.recent) > 0 && now.Sub(q.recent[0].Sent) >= deduplicationInterval {
		q.recent = q.recent[1:]
	}
	if now.Before(q.due) {
		return
	}
	q.counts.Visible, q.counts.InFlight, q.due = 0, 0, now.Add(q.settings.Retention)
	q.entries = slices.DeleteFunc(q.entries, func(e *entry) bool {
		expires := e.Sent.Add(q.settings.Retention)
		switch {
		case !now.Before(expires): // deleted, and never dead-lettered
			q.counts.Expired++
			return true
		case now.Before(e.VisibleAt):
			e.State = InFlight
			q.counts.InFlight++
			q.sooner(e.VisibleAt)
		default:
			e.State = Visible
			q.counts.Visible++
		}
		q.sooner(expires)
		return false
	})
}

// sooner makes settle look at the messages at a time, if it would only do so later.
func (q *queue) sooner(at time.Time) {
	if at.Before(q.due) {
		q.due = at
	}
}

// offered returns the messages that may be received, in the lines among which a receive
// chooses: each message alone, the longest visible first, or on a FIFO queue what each
// group has before its first message in flight.
func (q *queue) offered() (lines [][]*entry) {
	if q.counts.Visible == 0 {
		return nil
	}
	blocked, place := map[string]bool{}, map[string]int{}
	var visible []*entry
	for _, e := range q.entries {
		if e.State == Visible && !blocked[e.Group] {
			visible = append(visible, e)
		} else if q.fifo {
			blocked[e.Group] = true
		}
	}
	if !q.fifo {
		slices.SortStableFunc(visible, func(a, b *entry) int { return a.VisibleAt.Compare(b.VisibleAt) })
		return slices.Collect(slices.Chunk(visible, 1))
	}
	for _, e := range visible {
		i, known := place[e.Group]
		if !known {
			i, lines = len(lines), append(lines, nil)
			place[e.Group] = i
		}
		lines[i] = append(lines[i], e)
	}
	return lines
}

// deliver hides an entry and returns a copy with a new receipt handle.
func (q *queue) deliver(now time.Time, e *entry, hide time.Duration) Message {
	e.Receives++
	e.Handle = fmt.Sprintf("%s:%s:%d", q.name, e.ID, e.Receives)
	e.received, e.VisibleAt, e.State = now, now.Add(hide), InFlight
	if e.FirstReceived.IsZero() {
		e.FirstReceived = now
	}
	q.counts.Visible--
	q.counts.InFlight++
	q.sooner(e.VisibleAt)
	return e.Message
}

func (q *queue) add(e *entry) {
	i, _ := slices.BinarySearchFunc(q.entries, e.serial, func(o *entry, serial uint64) int {
		return cmp.Compare(o.serial, serial)
	})
	q.entries = slices.Insert(q.entries, i, e)
	e.State = Visible
	q.counts.Visible++
	q.sooner(e.Sent.Add(q.settings.Retention))
}

func (q *queue) remove(e *entry) {
	i := slices.Index(q.entries, e)
	q.entries = slices.Delete(q.entries, i, i+1)
	if e.State == Visible {
		q.counts.Visible--
	} else {
		q.counts.InFlight--
	}
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
	i := slices.IndexFunc(q.entries, func(e *entry) bool { return e.ID == part[1] })
	if i < 0 {
		return nil, false, nil
	}
	return q.entries[i], q.entries[i].Handle == handle, nil
}
