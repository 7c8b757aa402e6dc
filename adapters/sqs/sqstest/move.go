package sqstest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

// maxMoves is how many tasks of a source queue can be listed (API reference, ListMessageMoveTasks).
const maxMoves = 10

// MoveStatus is where a message move task stands.
type MoveStatus string

// The statuses (API reference, ListMessageMoveTasksResultEntry). A cancellation is over at once here, so CANCELLING never shows.
const (
	MoveRunning   MoveStatus = "RUNNING"
	MoveCompleted MoveStatus = "COMPLETED"
	MoveCancelled MoveStatus = "CANCELLED"
	MoveFailed    MoveStatus = "FAILED"
)

// Move is a message move task.
type Move struct {
	Handle   string
	From, To string // queues; To is empty if every message goes back to where it came from
	Rate     int    // messages a second, 1 to 500; 0 moved all at once
	Status   MoveStatus
	Failure  string // code, if it failed
	Started  time.Time
	Planned  int // visible messages at the start
	Moved    int
}

// next is when a running task moves its next message: the first one at its start.
func (t *Move) next() time.Time {
	return t.Started.Add(time.Duration(t.Moved) * time.Second / time.Duration(max(t.Rate, 1)))
}

// Redrive moves every visible message of a dead-letter queue, oldest first, to the queue named to, or back to where each came
// from if to is empty. Moved messages are new ones: new id, no receives, and retention starts again.
// Chosen where the documents are silent about FIFO queues: what is moved is never a duplicate, and a group with a message in flight stays.
// It stops at the first message without a known source: CouldNotDetermineMessageSource. Other errors, before anything is moved:
// QueueDoesNotExist, InvalidParameterValue (no queue names this one as its dead-letter queue; it is its own destination; or one of the
// two is FIFO, the other standard).
func (m *Machine) Redrive(now time.Time, from, to string) (moved int, err error) {
	q, err := m.source(now, from, to)
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

// StartMove starts a message move task and returns its handle. With a rate, it moves one message at its start and the others as the
// time comes, and is over when it has moved as many as were visible at its start, or finds none. Without, it is over at once. A
// message without a known source fails the task, not the call.
// Errors: those of Redrive, and InvalidParameterValue (the rate; or "Only one active task is allowed for a source queue arn").
func (m *Machine) StartMove(now time.Time, from, to string, rate int) (handle string, err error) {
	q, err := m.source(now, from, to)
	switch {
	case err != nil:
		return "", err
	case rate < 0 || rate > 500:
		return "", outside("MaxNumberOfMessagesPerSecond", rate, "Must be between 1 and 500, if provided.")
	case slices.ContainsFunc(m.moves, func(t *Move) bool { return t.From == from && t.Status == MoveRunning }):
		return "", fault(CodeInvalidParameterValue,
			"There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
	}
	m.tasks++
	t := &Move{
		Handle: handleOf(m.uuid(m.tasks), from), From: from, To: to, Rate: rate, Status: MoveRunning, Started: now, Planned: q.shown.Len(),
	}
	if rate == 0 {
		t.Moved, err = m.Redrive(now, from, to)
		t.end(err)
	}
	m.keep(t)
	m.settle(now)
	return t.Handle, nil
}

// CancelMove ends a running task and says how many messages it had moved: they stay where they are.
// Errors: InvalidParameterValue (no handle), ResourceNotFoundException (of no task), UnsupportedOperation: "can only be cancelled when
// the current status is RUNNING" (API reference, CancelMessageMoveTask; which code that is, it does not say).
func (m *Machine) CancelMove(now time.Time, handle string) (moved int, err error) {
	m.settle(now)
	source, ok := sourceOf(handle)
	if !ok {
		return 0, fault(CodeInvalidParameterValue, "Value for parameter TaskHandle is invalid.")
	}
	if _, err := m.resource("SourceArn", source); err != nil {
		return 0, err
	}
	i := slices.IndexFunc(m.moves, func(t *Move) bool { return t.Handle == handle })
	switch {
	case i < 0:
		return 0, fault(CodeResourceNotFound, "Task does not exist.")
	case m.moves[i].Status != MoveRunning:
		return 0, fault(CodeUnsupportedOperation, "The task is %s.", m.moves[i].Status)
	}
	m.moves[i].Status = MoveCancelled
	return m.moves[i].Moved, nil
}

// Moves lists the latest ten tasks of a source queue, the latest first.
func (m *Machine) Moves(now time.Time, from string) []Move {
	m.settle(now)
	var out []Move
	for _, t := range slices.Backward(m.moves) {
		if t.From == from {
			out = append(out, *t)
		}
	}
	return out
}

// keep adds a task and lets go of the oldest one of its queue that nobody can list any more.
func (m *Machine) keep(t *Move) {
	others := 0
	m.moves = append(m.moves, t)
	for i, other := range slices.Backward(m.moves) {
		if other.From != t.From {
			continue
		}
		if others++; others > maxMoves {
			m.moves = slices.Delete(m.moves, i, i+1)
			return
		}
	}
}

// source is a queue that messages may be moved from.
func (m *Machine) source(now time.Time, from, to string) (*queue, error) {
	q, err := m.open(now, from)
	if err != nil {
		return nil, err
	}
	target, exists := m.queues[to]
	switch {
	case !m.takesDeadLetters(from):
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

func (m *Machine) takesDeadLetters(name string) bool {
	for _, q := range m.queues {
		if q.settings.DeadLetters == name {
			return true
		}
	}
	return false
}

// nextMove is the running task that has something to do first, nil if none runs.
func (m *Machine) nextMove() (first *Move) {
	for _, t := range m.moves {
		if t.Status == MoveRunning && (first == nil || t.next().Before(first.next())) {
			first = t
		}
	}
	return first
}

// step lets a running task move its next message.
func (m *Machine) step(at time.Time, t *Move) {
	q := m.queues[t.From]
	e := q.oldest()
	if e == nil {
		t.end(nil)
		return
	}
	err := m.move(at, q, t.To, e)
	if err == nil {
		t.Moved++
	}
	if err != nil || t.Moved == t.Planned {
		t.end(err)
	}
}

func (t *Move) end(err error) {
	t.Status = MoveCompleted
	if refused, ok := errors.AsType[*Error](err); ok {
		t.Status, t.Failure = MoveFailed, refused.Code
	}
}

// move takes a message out of a dead-letter queue and puts a new one into another queue.
func (m *Machine) move(now time.Time, from *queue, to string, e *entry) error {
	target, ok := m.queues[cmp.Or(to, e.Source)]
	if !ok {
		return fault(CodeNoSource, "Message %s was sent to %q, name a destination.", e.ID, from.name)
	}
	from.remove(e)
	from.redriven++
	target.arrived++
	target.store(now, m.newEntry(now, Draft{
		Body: e.Body, Attributes: e.Attributes, TraceHeader: e.TraceHeader, Group: e.Group, DeduplicationID: e.DeduplicationID,
	}))
	m.moved++
	return nil
}

// oldest is the visible message that a move takes next, nil if there is none.
func (q *queue) oldest() (first *entry) {
	for _, e := range q.shown.entries {
		if !q.blocked(e) && (first == nil || byAge(e, first) < 0) {
			first = e
		}
	}
	return first
}

// resource is the queue that an ARN names, as the operations for move tasks look it up.
func (m *Machine) resource(parameter, arn string) (name string, err error) {
	name, ok := strings.CutPrefix(arn, ARN(""))
	if _, exists := m.queues[name]; !ok || !exists {
		return "", fault(CodeResourceNotFound, "The resource that you specified for the %s parameter doesn't exist.", parameter)
	}
	return name, nil
}

// taskHandle is what the handles of SQS are once decoded: JSON in base64.
type taskHandle struct {
	ID     string `json:"taskId"`
	Source string `json:"sourceArn"`
}

func handleOf(id, from string) string {
	b, _ := json.Marshal(taskHandle{id, ARN(from)}) // only strings
	return base64.StdEncoding.EncodeToString(b)
}

// sourceOf returns the ARN in a handle.
func sourceOf(handle string) (arn string, ok bool) {
	b, err := base64.StdEncoding.DecodeString(handle)
	var h taskHandle
	if err != nil || json.Unmarshal(b, &h) != nil {
		return "", false
	}
	return h.Source, h.ID != "" && h.Source != ""
}

// moveResult is a task as ListMessageMoveTasks shows it. TaskHandle is "only populated for tasks that are in RUNNING status" (API
// reference, ListMessageMoveTasksResultEntry).
type moveResult struct {
	TaskHandle                        string `json:",omitempty"`
	SourceArn                         string
	DestinationArn                    string `json:",omitempty"`
	Status                            MoveStatus
	FailureReason                     string `json:",omitempty"`
	StartedTimestamp                  int64
	MaxNumberOfMessagesPerSecond      int `json:",omitempty"`
	ApproximateNumberOfMessagesToMove int
	ApproximateNumberOfMessagesMoved  int
}

func resultOf(t Move) moveResult {
	out := moveResult{
		SourceArn: ARN(t.From), Status: t.Status, FailureReason: t.Failure, StartedTimestamp: t.Started.UnixMilli(),
		MaxNumberOfMessagesPerSecond: t.Rate, ApproximateNumberOfMessagesToMove: t.Planned, ApproximateNumberOfMessagesMoved: t.Moved,
	}
	if t.To != "" {
		out.DestinationArn = ARN(t.To)
	}
	if t.Status == MoveRunning {
		out.TaskHandle = t.Handle
	}
	return out
}

func (s *Server) startMove(in request) (any, error) {
	rate := 0
	switch n := in.MaxNumberOfMessagesPerSecond; {
	case in.SourceArn == "":
		return nil, missing("SourceArn")
	case n != nil && *n < 1: // which the machine takes for no rate at all
		return nil, outside("MaxNumberOfMessagesPerSecond", *n, "Must be between 1 and 500, if provided.")
	case n != nil:
		rate = *n
	}
	var handle string
	var err error
	s.Machine(func(m *Machine, now time.Time) {
		var from, to string
		from, err = m.resource("SourceArn", in.SourceArn)
		if err == nil && in.DestinationArn != "" {
			to, err = m.resource("DestinationArn", in.DestinationArn)
		}
		if err == nil {
			handle, err = m.StartMove(now, from, to, rate)
		}
	})
	return map[string]string{"TaskHandle": handle}, err
}

// listMoves shows the latest tasks, by default one (API reference, ListMessageMoveTasks).
func (s *Server) listMoves(in request) (any, error) {
	limit := 1
	if in.MaxResults != nil {
		limit = *in.MaxResults
	}
	switch {
	case in.SourceArn == "":
		return nil, missing("SourceArn")
	case limit < 1 || limit > maxMoves:
		return nil, outside("MaxResults", limit, "Must be between 1 and 10, if provided.")
	}
	results := []moveResult{}
	var err error
	s.Machine(func(m *Machine, now time.Time) {
		var from string
		from, err = m.resource("SourceArn", in.SourceArn)
		for _, t := range m.Moves(now, from) {
			results = append(results, resultOf(t))
		}
	})
	return map[string][]moveResult{"Results": results[:min(len(results), limit)]}, err
}

func (s *Server) cancelMove(in request) (any, error) {
	if in.TaskHandle == "" {
		return nil, missing("TaskHandle")
	}
	var moved int
	var err error
	s.Machine(func(m *Machine, now time.Time) { moved, err = m.CancelMove(now, in.TaskHandle) })
	return map[string]int{"ApproximateNumberOfMessagesMoved": moved}, err
}
