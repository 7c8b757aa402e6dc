package sqstest

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"orderonce/adapters/internal/awstest"
)

// Options configure Serve. The zero Options use a free port and the real clock.
type Options struct {
	Now func() time.Time // nil: the real clock

	// Before is called before each operation, without the lock, from several goroutines. It
	// may block, to delay the operation, or be nil.
	Before func(Call)
}

// Call is one operation.
type Call struct {
	Operation string // as in the API reference, such as SendMessage
	Queue     string // name, empty if the call names none
	Request   []byte // JSON; do not change it
}

// Server serves a Machine with the AWS JSON 1.0 protocol. It does not check signatures:
// any credentials are valid. It is safe for concurrent use.
type Server struct {
	*awstest.HTTP // with the endpoint for an SDK

	options Options
	closed  chan struct{}
	close   func()

	mu      sync.Mutex
	machine *Machine
	waiters []*waiter
	alarm   *time.Timer
	busy    map[string]int // batches of each queue that a Mapping has
	faults  []*failure
}

// Serve starts a server on a free port of 127.0.0.1. Close stops it.
func Serve(o Options) (s *Server, err error) {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the real clock is the default
	}
	s = &Server{options: o, closed: make(chan struct{}), machine: New(0), busy: map[string]int{}}
	s.close = sync.OnceFunc(func() { close(s.closed) })
	s.alarm = time.AfterFunc(time.Hour, s.Wake)
	s.HTTP, err = awstest.Listen(http.HandlerFunc(s.serve))
	return s, err
}

// Close stops the server, and ends long polls, Drained and mappings.
func (s *Server) Close() error {
	s.close()
	err := s.HTTP.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alarm.Stop()
	return err
}

// QueueURL returns the URL of a queue, which need not exist.
func (s *Server) QueueURL(name string) string { return s.URL + "/" + Account + "/" + name }

// Machine calls f with the machine and the time, under the server's lock, and then wakes
// long polls and others that wait for what f did.
func (s *Server) Machine(f func(m *Machine, now time.Time)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.machine, s.options.Now())
	s.notify()
}

// Wake makes the server read its clock. Call it after moving a clock of your own.
func (s *Server) Wake() { s.Machine(func(*Machine, time.Time) {}) }

// Drained waits until the queue has no messages in any state and no Mapping has a batch
// of it. It returns the context's error, or http.ErrServerClosed.
func (s *Server) Drained(ctx context.Context, queue string) error {
	return s.until(ctx, queue, Counts.Empty)
}

// Settled waits until the queue has no visible messages and no Mapping has a batch of it.
// Errors: as Drained.
func (s *Server) Settled(ctx context.Context, queue string) error {
	return s.until(ctx, queue, func(c Counts) bool { return c.Visible == 0 })
}

func (s *Server) until(ctx context.Context, queue string, is func(Counts) bool) error {
	var err error
	ended := s.await(ctx, &waiter{try: func(now time.Time) bool {
		var c Counts
		c, err = s.machine.Counts(now, queue)
		return err != nil || is(c) && s.busy[queue] == 0
	}})
	return cmp.Or(ended, err)
}

type waiter struct {
	try   func(now time.Time) bool // under the lock, after every change: true ends the wait
	until time.Time                // by the server's clock; zero: no end
	done  chan struct{}
}

func (w *waiter) over(now time.Time) bool {
	if !w.try(now) && (w.until.IsZero() || now.Before(w.until)) {
		return false
	}
	close(w.done)
	return true
}

// await returns when w is over, the context ends or the server closes. Only then may the
// caller read what w found.
func (s *Server) await(ctx context.Context, w *waiter) error {
	w.done = make(chan struct{})
	s.Machine(func(*Machine, time.Time) { s.waiters = append(s.waiters, w) })
	select {
	case <-w.done:
	case <-ctx.Done():
	case <-s.closed:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := len(s.waiters)
	s.waiters = slices.DeleteFunc(s.waiters, func(other *waiter) bool { return other == w })
	if len(s.waiters) == waiting { // w was over, perhaps in the same moment
		return nil
	}
	return s.ended(ctx)
}

// ended returns the context's error, or http.ErrServerClosed, or nil if neither has
// ended.
func (s *Server) ended(ctx context.Context) error {
	select {
	case <-s.closed:
		return cmp.Or(ctx.Err(), http.ErrServerClosed)
	default:
		return ctx.Err()
	}
}

// notify calls every waiter, the longest waiting first, and then the rest again, because
// a waiter may have moved a message to the dead-letter queue. It sets the alarm to the
// next time at which a waiter may succeed. Without waiters there is no alarm, so an idle
// server costs nothing.
func (s *Server) notify() {
	now := s.options.Now()
	for range 2 {
		s.waiters = slices.DeleteFunc(s.waiters, func(w *waiter) bool { return w.over(now) })
	}
	s.alarm.Stop()
	if len(s.waiters) == 0 {
		return
	}
	next, ok := s.machine.Next(now)
	for _, w := range s.waiters {
		if !w.until.IsZero() && (!ok || w.until.Before(next)) {
			next, ok = w.until, true
		}
	}
	if ok {
		s.alarm.Reset(max(next.Sub(now), time.Millisecond))
	}
}

type failure struct {
	operation string
	times     int
	code      string // of the error
	after     bool   // the error follows the effect
	loses     bool   // the response
}

// Fail makes the next times calls of an operation fail with a code, without effect.
func (s *Server) Fail(operation string, times int, code string) {
	s.addFault(failure{operation: operation, times: times, code: code})
}

// FailAfter makes the next times calls of an operation have their effect and then fail
// with a code, as a response of 500 may.
func (s *Server) FailAfter(operation string, times int, code string) {
	s.addFault(failure{operation: operation, times: times, code: code, after: true})
}

// Lose makes the next times calls of an operation have their effect and then closes the
// connection without a response.
func (s *Server) Lose(operation string, times int) {
	s.addFault(failure{operation: operation, times: times, loses: true})
}

// Heal removes all faults.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

func (s *Server) addFault(f failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.times > 0 {
		s.faults = append(s.faults, &f)
	}
}

// fault returns the next fault for an operation, and counts it.
func (s *Server) fault(operation string) failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.faults, func(f *failure) bool { return f.operation == operation })
	if i < 0 {
		return failure{}
	}
	f := s.faults[i]
	if f.times--; f.times == 0 {
		s.faults = slices.Delete(s.faults, i, i+1)
	}
	return *f
}
