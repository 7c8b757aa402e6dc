package sqstest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Redrive moves every visible message of a dead-letter queue, oldest first, to the queue
// to, or back to the queue that dead-lettered it if to is empty. A moved message is a new
// one: new id, no receives, and its retention starts again. Chosen, because the documents
// do not say it for FIFO queues: a moved message is never a duplicate, and a group with a
// message in flight is not moved.
//
// Redrive stops at the first message without a known source:
// CouldNotDetermineMessageSource. Other errors, before anything is moved:
// QueueDoesNotExist, and InvalidParameterValue if from is not a dead-letter queue, to is
// from, or only one of them is FIFO.
func (m *Machine) Redrive(now time.Time, from, to string) (moved int, err error) {
	q, err := m.redriveSource(now, from, to)
	if err != nil {
		return 0, err
	}
	for _, e := range slices.SortedFunc(slices.Values(q.shown.entries), byAge) {
		if q.blocked(e) {
			continue
		}
		if err := m.move(now, q, to, e); err != nil {
			return moved, err
		}
		moved++
	}
	return moved, nil
}

// redriveSource returns the queue from, if messages may be moved from it to the queue to.
func (m *Machine) redriveSource(now time.Time, from, to string) (*queue, error) {
	q, err := m.open(now, from)
	if err != nil {
		return nil, err
	}
	target, exists := m.queues[to]
	switch {
	case !m.isDeadLetterQueue(from):
		return nil, outside("SourceArn", ARN(from), "Source queue must be configured as a Dead Letter Queue.")
	case to == "":
	case !exists:
		return nil, noQueue(to)
	case to == from:
		return nil, outside("DestinationArn", ARN(to), "Source and destination queue must not be the same.")
	case target.settings.FIFO != q.settings.FIFO:
		return nil, outside("DestinationArn", ARN(to), "Source and destination queue must be of the same type.")
	}
	return q, nil
}

func (m *Machine) isDeadLetterQueue(name string) bool {
	for _, q := range m.queues {
		if q.settings.DeadLetters == name {
			return true
		}
	}
	return false
}

// move removes a message from a dead-letter queue and stores a new one in another queue.
func (m *Machine) move(now time.Time, from *queue, to string, e *entry) error {
	target, ok := m.queues[cmp.Or(to, e.Source)]
	if !ok {
		return fault(CodeNoSource, "Message %s was sent to %q, name a destination.", e.ID, from.name)
	}
	from.remove(e)
	from.redriven++
	target.arrived++
	target.store(now, m.newEntry(now, Draft{
		Body: e.Body, Attributes: e.Attributes, Group: e.Group, DeduplicationID: e.DeduplicationID,
	}))
	m.moved++
	return nil
}

// queueOf returns the name of the queue with an ARN.
func (m *Machine) queueOf(parameter, arn string) (name string, err error) {
	name, ok := strings.CutPrefix(arn, ARN(""))
	if _, exists := m.queues[name]; !ok || !exists {
		return "", fault(CodeResourceNotFound,
			"The resource that you specified for the %s parameter doesn't exist.", parameter)
	}
	return name, nil
}

// startMessageMoveTask is a Redrive. Its task is over when it returns, so no task is ever
// listed or canceled, and a message without a source fails the call instead of the task.
func (s *Server) startMessageMoveTask(in request) (any, error) {
	switch {
	case in.SourceArn == "":
		return nil, missing("SourceArn")
	case in.MaxNumberOfMessagesPerSecond != nil:
		return nil, fault(CodeUnsupportedOperation, "MaxNumberOfMessagesPerSecond is not supported by sqstest.")
	}
	var handle string
	var err error
	s.Machine(func(m *Machine, now time.Time) {
		var from, to string
		from, err = m.queueOf("SourceArn", in.SourceArn)
		if err == nil && in.DestinationArn != "" {
			to, err = m.queueOf("DestinationArn", in.DestinationArn)
		}
		if err == nil {
			_, err = m.Redrive(now, from, to)
		}
		handle = m.taskHandle(from)
	})
	return map[string]string{"TaskHandle": handle}, err
}

// taskHandle returns JSON in base64, as SQS does.
func (m *Machine) taskHandle(from string) string {
	b, _ := json.Marshal(map[string]string{"taskId": m.uuid(m.serial), "sourceArn": ARN(from)}) // only strings
	return base64.StdEncoding.EncodeToString(b)
}
