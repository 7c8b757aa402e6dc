package sqstest

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Mapping invokes a function with the messages of a queue as Lambda's event source
// mapping does, with ReportBatchItemFailures.
type Mapping struct {
	Server          *Server
	Queue           string
	BatchSize       int           // 1 to 10; there is no batching window
	Concurrency     int           // parallel invocations, 1 to 1,000; Lambda's minimum is 2
	FunctionTimeout time.Duration // the function's; zero if unknown. Invoke enforces it

	// Invoke runs the function with an event and returns its response, or an error if the
	// function failed. Several goroutines call it.
	Invoke func(ctx context.Context, payload []byte) ([]byte, error)

	// Duplicate and LoseDelete inject faults: Mapping calls them for each message before
	// its delivery and before its delete, if they are not nil. A message with a lost
	// delete stays in flight. Several goroutines call them.
	Duplicate  func(Message) Twice
	LoseDelete func(Message) bool

	// Observe is called after each batch, if it is not nil. Several goroutines call it.
	Observe func(Batch)
}

// Batch is the result of one invocation. Failed messages are hidden until their
// visibility timeout ends, which the function may have changed.
type Batch struct {
	Messages []Message // a duplicate in the same batch appears twice
	Failed   []string  // message ids
	Lost     []string  // message ids that should have been deleted, see LoseDelete
	Err      error     // of Invoke
}

// Run invokes the function until the context ends or the server closes, and returns after
// the running invocations. It returns an error only for invalid settings, not for a
// failed invocation.
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

// Check returns an error for invalid settings, as Lambda does when a mapping is created
// (Lambda API reference, CreateEventSourceMapping and ScalingConfig). Run calls it first.
func (m *Mapping) Check() error {
	var s Settings
	var err error
	m.Server.Machine(func(machine *Machine, _ time.Time) { s, err = machine.Settings(m.Queue) })
	switch {
	case err != nil:
	case m.BatchSize < 1 || m.BatchSize > maxReceive:
		err = fmt.Errorf("batch size %d: want 1 to %d", m.BatchSize, maxReceive)
	case m.Concurrency < 1 || m.Concurrency > 1000:
		err = fmt.Errorf("concurrency %d: want 1 to 1000", m.Concurrency)
	case m.FunctionTimeout > s.Visibility: // a message must not be redelivered while the function may run
		err = fmt.Errorf("queue visibility timeout: %g seconds is less than Function timeout: %g seconds",
			s.Visibility.Seconds(), m.FunctionTimeout.Seconds())
	}
	if err != nil {
		return fmt.Errorf("mapping of queue %q: %w", m.Queue, err)
	}
	return nil
}

// work runs one invocation after the other.
func (m *Mapping) work(ctx context.Context) {
	running := context.WithoutCancel(ctx) // Run does not abort an invocation
	for m.Server.ended(ctx) == nil {
		messages := m.gather(ctx)
		if len(messages) == 0 {
			continue
		}
		beside := m.duplicate(running, &messages)
		m.invoke(running, messages)
		beside.Wait()
		m.Server.Machine(func(*Machine, time.Time) { m.Server.busy[m.Queue]-- })
	}
}

// gather waits for messages, receives up to a batch of them, and marks the queue as busy.
func (m *Mapping) gather(ctx context.Context) (got []Message) {
	_ = m.Server.await(ctx, &waiter{try: func(now time.Time) bool { // the caller checks what ended the wait
		got, _ = m.Server.machine.Receive(now, m.Queue, m.BatchSize, nil) // an error may pass
		if len(got) > 0 {
			m.Server.busy[m.Queue]++
		}
		return len(got) > 0
	}})
	return got
}

// invoke runs the function once and deletes the messages that did not fail. LoseDelete
// may keep some.
func (m *Mapping) invoke(ctx context.Context, messages []Message) {
	ids := make([]string, len(messages))
	byID := map[string]Message{}
	for i, message := range messages {
		ids[i], byID[message.ID] = message.ID, message
	}
	response, err := m.Invoke(ctx, Event(m.Queue, messages))
	done, failed := Verdict(ids, response, err)
	b := Batch{Messages: messages, Failed: failed, Err: err}
	for _, id := range done {
		if m.LoseDelete != nil && m.LoseDelete(byID[id]) {
			b.Lost = append(b.Lost, id)
			continue
		}
		m.Server.Machine(func(machine *Machine, now time.Time) {
			_ = machine.Delete(now, m.Queue, byID[id].Handle) // an expired handle fails; so does Lambda's delete
		})
	}
	if m.Observe != nil {
		m.Observe(b)
	}
}
