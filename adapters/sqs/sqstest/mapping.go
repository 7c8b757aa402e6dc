package sqstest

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// MaxPayload is the largest event that Lambda passes to a function in one synchronous invocation, in bytes.
const MaxPayload = 6 << 20

// Twice says whether a delivered message is delivered once more, as at-least-once delivery allows.
type Twice int

// The ways to deliver a message twice.
const (
	Once         Twice = iota
	InSameBatch        // a second record right after the first
	AtOnceBeside       // also in a batch of its own, in a second invocation that runs at the same time
)

// Mapping feeds a function from a queue the way Lambda's event source mapping does, with ReportBatchItemFailures on.
type Mapping struct {
	Server          *Server
	Queue           string
	BatchSize       int           // 1 to 10; there is no batching window
	Concurrency     int           // invocations at the same time, 1 to 1,000; Lambda's setting starts at 2, 1 is for runs that people follow
	FunctionTimeout time.Duration // as the function is configured: whoever Invokes it ends it; zero: not told

	// Invoke runs the function with the event and returns its answer, or an error if it failed. Called from several goroutines.
	Invoke func(ctx context.Context, payload []byte) ([]byte, error)

	// Duplicate and LoseDelete are faults, asked for each message before its delivery and before its delete; nil: never. A lost
	// delete leaves the message in flight, though the function had it done. Called from several goroutines.
	Duplicate  func(Message) Twice
	LoseDelete func(Message) bool

	// Observe is told of each batch when it is over; nil: nobody is. Called from several goroutines.
	Observe func(Batch)
}

// Batch is what became of one invocation. Failed messages stay invisible until their visibility time-out ends, which the function may
// have changed.
type Batch struct {
	Messages []Message // a duplicate in the same batch stands twice
	Deleted  []string  // message ids; what was visible again by then comes back all the same
	Failed   []string  // message ids
	Lost     []string  // message ids that should have been deleted, see LoseDelete
	Err      error     // of Invoke
}

// Run feeds the function until the context ends or the server closes, and returns when the invocations that run then are over.
// Errors of Invoke end nothing; the error that Run returns is a wrong setting, or nil.
func (m *Mapping) Run(ctx context.Context) error {
	if err := m.Check(); err != nil {
		return err
	}
	var workers sync.WaitGroup
	for range m.Concurrency {
		workers.Go(func() { m.work(ctx) })
	}
	workers.Wait()
	return nil
}

// Drained waits until the queue is empty and every batch was observed: see Server.Drained.
func (m *Mapping) Drained(ctx context.Context) error { return m.Server.Drained(ctx, m.Queue) }

// Check says what is wrong with the settings, as Lambda does when a mapping is made (Lambda API reference, CreateEventSourceMapping and
// ScalingConfig). Run does it first.
func (m *Mapping) Check() error {
	var s Settings
	var err error
	m.Server.Machine(func(machine *Machine, _ time.Time) { s, err = machine.Settings(m.Queue) })
	if err == nil {
		err = m.check(s)
	}
	if err != nil {
		return fmt.Errorf("mapping of queue %q: %w", m.Queue, err)
	}
	return nil
}

func (m *Mapping) check(queue Settings) error {
	switch {
	case m.BatchSize < 1 || m.BatchSize > maxReceive:
		return fmt.Errorf("batch size %d: want 1 to %d", m.BatchSize, maxReceive)
	case m.Concurrency < 1 || m.Concurrency > 1000:
		return fmt.Errorf("concurrency %d: want 1 to 1000", m.Concurrency)
	case m.FunctionTimeout > queue.Visibility: // what is received must not come back before the function can be over
		return fmt.Errorf("queue visibility timeout: %g seconds is less than Function timeout: %g seconds",
			queue.Visibility.Seconds(), m.FunctionTimeout.Seconds())
	}
	return nil
}

// work is one of the invocations that may run at the same time.
func (m *Mapping) work(ctx context.Context) {
	for m.Server.ended(ctx) == nil {
		if messages := m.gather(ctx); len(messages) > 0 {
			m.deliver(context.WithoutCancel(ctx), messages) // what was received runs to its end
			m.Server.Machine(func(*Machine, time.Time) { m.Server.busy[m.Queue]-- })
		}
	}
}

// gather waits for messages, receives up to a batch of them, and marks the queue as busy.
func (m *Mapping) gather(ctx context.Context) (got []Message) {
	_ = m.Server.await(ctx, &waiter{try: func(now time.Time) bool { // the caller checks what ended the wait
		got, _ = m.Server.machine.Receive(now, m.Queue, m.BatchSize, nil) // an error may pass, such as OverLimit
		if len(got) > 0 {
			m.Server.busy[m.Queue]++
		}
		return len(got) > 0
	}})
	return got
}

// deliver invokes the function with the messages, in as many events as their size needs, and beside it with their duplicates.
func (m *Mapping) deliver(ctx context.Context, messages []Message) {
	var batch []Message
	var beside sync.WaitGroup
	for _, message := range messages {
		batch = append(batch, message)
		if m.Duplicate == nil {
			continue
		}
		switch m.Duplicate(message) {
		case Once:
		case InSameBatch:
			batch = append(batch, message)
		case AtOnceBeside:
			alone := []Message{message}
			beside.Go(func() { m.invoke(ctx, event{alone, Event(m.Queue, alone)}) })
		}
	}
	for _, e := range pack(m.Queue, batch, MaxPayload) {
		m.invoke(ctx, e)
	}
	beside.Wait()
}

// invoke runs the function once and deletes what it had done.
func (m *Mapping) invoke(ctx context.Context, e event) {
	response, err := m.Invoke(ctx, e.payload)
	done, failed := Verdict(ids(e.messages), response, err)
	b := Batch{Messages: e.messages, Failed: failed, Err: err}
	b.Deleted, b.Lost = m.remove(e.messages, done)
	if m.Observe != nil {
		m.Observe(b)
	}
}

// remove deletes the messages that are done, but for those whose delete is to be lost.
func (m *Mapping) remove(messages []Message, done []string) (deleted, lost []string) {
	byID := make(map[string]Message, len(messages))
	for _, message := range messages {
		byID[message.ID] = message
	}
	for _, id := range done {
		if m.LoseDelete != nil && m.LoseDelete(byID[id]) { // asked outside the lock
			lost = append(lost, id)
		} else {
			deleted = append(deleted, id)
		}
	}
	m.Server.Machine(func(machine *Machine, now time.Time) {
		for _, id := range deleted {
			_ = machine.Delete(now, m.Queue, byID[id].Receipt) // refused if the handle has expired: Lambda can't do more about it either
		}
	})
	return deleted, lost
}

func ids(messages []Message) []string {
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = m.ID
	}
	return out
}
