// Package sqstest implements the documented rules of Amazon SQS and of Lambda's event
// source mapping, for tests and for running the system on one machine. It knows nothing
// of orders, tables or Stripe.
//
// Machine implements the rules without goroutines, clock, locks or I/O, so that a
// simulation controls every choice. Serve serves a Machine with the AWS JSON 1.0
// protocol, for AWS SDKs and the AWS CLI. Mapping invokes a function as Lambda does.
//
// Where the documents leave a choice, the comment at the rule says what was chosen. A
// queue whose name ends in .fifo is a FIFO queue.
package sqstest

import (
	"fmt"
	"strings"
	"time"
)

// Limits of SQS for every queue (SQS developer guide, "Amazon SQS message quotas" and
// "Amazon SQS FIFO queue quotas"; older versions have 20,000 in flight for FIFO queues).
const (
	InFlightLimit = 120_000
	maxReceive    = 10
	maxVisibility = 12 * time.Hour
	maxDelay      = 15 * time.Minute
)

// Region and Account are part of every ARN and queue URL.
const (
	Region  = "us-east-1"
	Account = "000000000000"
)

// ARN returns the ARN of a queue.
func ARN(queue string) string { return "arn:aws:sqs:" + Region + ":" + Account + ":" + queue }

// Machine holds queues and their messages. Every call has the time as an argument, which
// must not decrease. New returns a usable Machine. It is not safe for concurrent use.
type Machine struct {
	// Pick returns which of n visible messages is received next, 0 to n-1, because
	// standard queues do not promise an order. Index 0 is the one that has been visible
	// longest; the others are in no meaningful order, but in the same one for the same
	// history. On a FIFO queue Pick chooses among the groups that may be received from,
	// and index 0 is the group whose next message was sent first. A nil Pick always
	// chooses 0.
	Pick func(n int) int

	seed   uint64
	serial uint64 // of the latest message
	moved  int    // messages dead-lettered or redriven: then other queues may have changed
	queues map[string]*queue
}

// New returns a machine without queues. The same seed and calls result in the same
// message ids and receipt handles.
func New(seed uint64) *Machine { return &Machine{seed: seed, queues: map[string]*queue{}} }

// Create creates a queue. If the queue exists, Create returns nil for the same settings,
// else QueueNameExists (API reference, CreateQueue).
func (m *Machine) Create(now time.Time, name string, s Settings) error {
	if err := m.checkQueue(name, s); err != nil {
		return err
	}
	if q, exists := m.queues[name]; exists {
		if q.settings != s {
			return fault(CodeQueueNameExists, "A queue named %q already exists with other attributes.", name)
		}
		return nil
	}
	m.queues[name] = newQueue(name, s, now)
	return nil
}

// Configure replaces a queue's settings immediately; SQS takes up to 15 minutes (API
// reference, SetQueueAttributes).
func (m *Machine) Configure(now time.Time, name string, s Settings) error {
	q, err := m.open(now, name)
	if err != nil {
		return err
	}
	if err := m.checkQueue(name, s); err != nil {
		return err
	}
	q.settings, q.modified = s, now
	if s.FIFO {
		q.redelay(now)
	}
	return nil
}

// Send stores a message and returns it. If it is a duplicate on a FIFO queue, Send stores
// nothing and returns a message with the id and the sequence number of the first one.
// Errors: QueueDoesNotExist, MissingParameter, InvalidParameterValue,
// InvalidMessageContents.
func (m *Machine) Send(now time.Time, name string, d Draft) (Message, error) {
	q, err := m.open(now, name)
	if err != nil {
		return Message{}, err
	}
	if err := d.check(q.settings); err != nil {
		return Message{}, err
	}
	d = d.identify(q.settings)
	if first := q.accepted[d.DeduplicationID]; first != nil {
		return Message{
			ID: first.id, Body: d.Body, Attributes: d.Attributes, Sent: first.at,
			Group: d.Group, DeduplicationID: d.DeduplicationID, Sequence: first.sequence,
		}, nil
	}
	delay := q.settings.Delay
	if d.Delay != nil && !q.settings.FIFO {
		delay = *d.Delay
	}
	e := m.newEntry(now, d)
	e.visible = now.Add(delay)
	q.sent++
	q.store(now, e)
	q.accept(e.Message)
	return e.Message, nil
}

// Receive returns up to limit (1 to 10) visible messages and hides them for visibility,
// or for the queue's visibility timeout if nil. A message whose receive count has reached
// maxReceiveCount is moved to the dead-letter queue instead.
//
// A FIFO queue returns as many messages of a group as possible, in their order, and then
// no more of the group until those are deleted or visible again. At the limit in flight
// it "does not return an error" (SQS developer guide, "Amazon SQS FIFO queue quotas").
// Errors: QueueDoesNotExist, InvalidParameterValue, OverLimit.
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
	case q.inFlight >= InFlightLimit && !q.settings.FIFO:
		return nil, fault(CodeOverLimit, "Too many messages are in flight, the limit is %d.", InFlightLimit)
	}
	out := make([]Message, 0, min(limit, q.shown.Len())) // ends, because a dead letter leaves the queue
	for offered := q.offered(); len(out) < limit && offered.Len() > 0 && q.inFlight < InFlightLimit; {
		e := offered.entries[m.pick(offered.Len())]
		for ; e != nil && len(out) < limit && q.inFlight < InFlightLimit; e = q.follower(e) {
			if dead, ok := m.queues[q.settings.DeadLetters]; ok && e.Receives >= q.settings.MaxReceives {
				m.deadLetter(now, q, dead, e)
			} else {
				out = append(out, q.deliver(now, e, hide))
			}
		}
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
	case q.settings.FIFO && (!latest || e.State != InFlight):
		return outside("ReceiptHandle", handle, "The receipt handle has expired.")
	case !latest:
		return nil
	}
	q.remove(e)
	q.deleted++
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
	if d < 0 || d > maxVisibility {
		return outside("VisibilityTimeout", seconds(d), "Must be between 0 and 43200.")
	}
	e, latest, err := q.find(handle)
	switch {
	case err != nil:
		return err
	case e == nil, q.settings.FIFO && (!latest || e.State != InFlight):
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
	q.remove(e)
	e.visible = now.Add(d)
	q.add(now, e)
	return nil
}

// Counts returns how many messages of a queue are in each state, and how many left it and
// how. Errors: QueueDoesNotExist.
func (m *Machine) Counts(now time.Time, name string) (Counts, error) {
	q, err := m.open(now, name)
	if err != nil {
		return Counts{}, err
	}
	return Counts{
		Visible: q.shown.Len(), InFlight: q.inFlight, Delayed: q.delayed(),
		Sent: q.sent, Arrived: q.arrived, Deleted: q.deleted, Expired: q.expired,
		DeadLettered: q.deadLettered, Redriven: q.redriven,
	}, nil
}

// Messages returns all messages of a queue, in the order of arrival, without receiving
// them. Errors: QueueDoesNotExist.
func (m *Machine) Messages(now time.Time, name string) ([]Message, error) {
	q, err := m.open(now, name)
	if err != nil {
		return nil, err
	}
	out := make([]Message, 0, len(q.messages))
	for _, e := range q.inOrder() {
		m := e.Message
		m.VisibleAt = e.visible
		out = append(out, m)
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
	m.settle(now)
	for _, q := range m.queues {
		if at := q.next(); !at.IsZero() && (!ok || at.Before(next)) {
			next, ok = at, true
		}
	}
	return next, ok
}

// open returns a queue after settling all queues, so that the state does not depend on
// which queue is used.
func (m *Machine) open(now time.Time, name string) (*queue, error) {
	m.settle(now)
	q, ok := m.queues[name]
	if !ok {
		return nil, noQueue(name)
	}
	return q, nil
}

// settle applies what the passing of time does to every queue.
func (m *Machine) settle(now time.Time) {
	for _, q := range m.queues {
		q.settle(now)
	}
}

func (m *Machine) pick(n int) int {
	if m.Pick == nil {
		return 0
	}
	return m.Pick(n)
}

// newEntry returns a message whose id has the form of a version 4 UUID and ends in its
// number, for readable logs.
func (m *Machine) newEntry(now time.Time, d Draft) *entry {
	m.serial++
	message := Message{
		ID: m.uuid(m.serial), Body: d.Body, Attributes: d.Attributes, Sent: now,
		Group: d.Group, DeduplicationID: d.DeduplicationID,
	}
	return &entry{Message: message, serial: m.serial, visible: now}
}

func (m *Machine) uuid(serial uint64) string {
	s := m.seed
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", s>>32, s>>16&0xffff, s>>4&0xfff, s&0xf, serial&(1<<48-1))
}

// deadLetter keeps the id and the receive count. On a standard queue the message keeps
// its enqueue time, and so its retention. "For FIFO queues, the enqueue timestamp
// resets", and the deduplication id "will be replaced with the original message's ID"
// (SQS developer guide, "Setting-up dead-letter queue retention" and "Learn how to
// configure a dead-letter queue redrive").
func (m *Machine) deadLetter(now time.Time, from, to *queue, e *entry) {
	from.remove(e)
	from.deadLettered++
	e.Source, e.Receipt, e.visible = from.name, "", now
	if to.settings.FIFO {
		m.serial++
		e.serial, e.Sent, e.DeduplicationID = m.serial, now, e.ID
	}
	to.arrived++
	to.store(now, e)
	m.moved++
}

func (m *Machine) checkQueue(name string, s Settings) error {
	base, fifo := strings.CutSuffix(name, fifoSuffix)
	dead, exists := m.queues[s.DeadLetters]
	switch {
	case base == "" || len(name) > 80 || strings.Trim(base, wordCharacters+"-") != "":
		return outside(
			"QueueName", name, "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.",
		)
	case fifo != s.FIFO:
		return outside(
			"QueueName", name, "The name of a FIFO queue, and of no other, must end with the .fifo suffix.",
		)
	case s.DeadLetters != "" && !exists:
		return outside("RedrivePolicy", s.DeadLetters, "Dead letter target does not exist.")
	case exists && s.DeadLetters == name: // undocumented, but Receive would never end
		return outside("RedrivePolicy", s.DeadLetters, "A queue can't be its own dead-letter queue.")
	case exists && dead.settings.FIFO != s.FIFO:
		return outside(
			"RedrivePolicy", s.DeadLetters, "Dead-letter queue must be same type of queue as the source.",
		)
	}
	return s.check()
}
