package sqstest

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Options say how Serve serves. The zero Options are good: a free port, the real clock.
type Options struct {
	Now  func() time.Time // nil: the real clock
	Addr string           // address and port, by number; empty: a free port of 127.0.0.1
	Seed uint64           // of the message ids

	// Before and After are called around each call of the JSON face, outside the lock and from several goroutines. Before may
	// block, to delay a call. Either may be nil.
	Before, After func(Call)
}

// Call is one call of the JSON face.
type Call struct {
	Operation string // as in the API reference: SendMessage
	Queue     string // name, empty if the call names none
	Request   []byte // JSON; don't change it
	Err       error  // After only: what the caller was told
}

// Server is a Machine behind the AWS JSON 1.0 protocol. It checks no signature: any credentials do. It is safe for concurrent use.
type Server struct {
	URL string // http://127.0.0.1:port, the endpoint for an SDK

	options Options
	http    *http.Server
	served  sync.WaitGroup
	closed  chan struct{}
	close   func()

	mu      sync.Mutex
	machine *Machine
	waiters []*waiter
	alarm   *time.Timer
	busy    map[string]int // batches that a Mapping holds, by queue
	faults  []*failure
}

// Serve starts a server. Close ends it.
func Serve(o Options) (*Server, error) {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the real clock is the default of this face
	}
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	addr, err := netip.ParseAddrPort(o.Addr)
	if err != nil {
		return nil, err
	}
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
	if err != nil {
		return nil, err
	}
	s := &Server{
		URL: "http://" + listener.Addr().String(), options: o, closed: make(chan struct{}),
		machine: New(o.Seed), busy: map[string]int{},
	}
	s.close = sync.OnceFunc(func() { close(s.closed) })
	s.alarm = time.AfterFunc(time.Hour, s.Wake)
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute}
	s.served.Go(func() { _ = s.http.Serve(listener) }) // always ErrServerClosed
	return s, nil
}

// Close ends the server and whoever waits on it: long polls, Drained, mappings.
func (s *Server) Close() error {
	s.close()
	err := s.http.Close()
	s.served.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alarm.Stop()
	return err
}

// QueueURL is the URL of a queue, whether it exists or not.
func (s *Server) QueueURL(name string) string { return s.URL + "/" + Account + "/" + name }

// Machine gives f the machine and the time, under the server's lock, and then wakes whoever waits for what f did.
func (s *Server) Machine(f func(m *Machine, now time.Time)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.machine, s.options.Now())
	s.notify()
}

// Wake looks at the clock again. Call it after moving a clock of your own; with the real clock there is no need.
func (s *Server) Wake() { s.Machine(func(*Machine, time.Time) {}) }

// Drained waits until the queue holds nothing, neither visible, delayed nor in flight, and no Mapping has a batch of it in hand.
// It returns the context's error, or http.ErrServerClosed.
func (s *Server) Drained(ctx context.Context, queue string) error {
	var err error
	return orElse(s.await(ctx, &waiter{try: func(now time.Time) bool {
		var c Counts
		c, err = s.machine.Counts(now, queue)
		return err != nil || c.Empty() && s.busy[queue] == 0
	}}), &err)
}

// orElse is the error of a wait, else what the waiter itself found.
func orElse(wait error, found *error) error {
	if wait != nil {
		return wait
	}
	return *found
}

// waiter waits for something to happen in the machine.
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

// await returns when w is over, the context ends or the server closes; only then may the caller look at what w found.
func (s *Server) await(ctx context.Context, w *waiter) error {
	w.done = make(chan struct{})
	s.mu.Lock()
	s.waiters = append(s.waiters, w)
	s.notify()
	s.mu.Unlock()
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

// ended says why nobody should go on: the context's error, or http.ErrServerClosed.
func (s *Server) ended(ctx context.Context) error {
	select {
	case <-s.closed:
		return cmp.Or(ctx.Err(), http.ErrServerClosed)
	default:
		return ctx.Err()
	}
}

// notify asks every waiter, the longest waiting first, and again if one of them moved messages to another queue: as often as there are
// queues, for that is how far a message can come. In a circle of dead-letter queues it would never stop.
func (s *Server) notify() {
	now := s.options.Now()
	for range max(1, len(s.machine.queues)) {
		moved := s.machine.moved
		s.waiters = slices.DeleteFunc(s.waiters, func(w *waiter) bool { return w.over(now) })
		if s.machine.moved == moved {
			break
		}
	}
	s.rearm(now)
}

// rearm sets the one alarm for the next moment when a waiter may have something to see. Nobody waits: no alarm, so an idle server
// costs nothing.
func (s *Server) rearm(now time.Time) {
	if len(s.waiters) == 0 {
		s.alarm.Stop()
		return
	}
	next, ok := s.machine.Next(now)
	for _, w := range s.waiters {
		if !w.until.IsZero() && (!ok || w.until.Before(next)) {
			next, ok = w.until, true
		}
	}
	if !ok {
		s.alarm.Stop()
		return
	}
	s.alarm.Reset(max(next.Sub(now), time.Millisecond))
}

// failure is a fault to play.
type failure struct {
	kind      failureKind
	operation string
	times     int
	code      string
}

type failureKind int

const (
	spares  failureKind = iota // the zero failure does nothing
	refuses                    // an error, and no effect
	denies                     // the effect, and an error
	loses                      // the effect, and no answer
)

// Fail lets the next times calls of an operation fail with one of the codes before they have any effect.
func (s *Server) Fail(operation string, times int, code string) {
	s.addFault(failure{kind: refuses, operation: operation, times: times, code: code})
}

// FailAfter lets the next times calls of an operation have their effect and then answer with one of the codes, as a 500 may.
func (s *Server) FailAfter(operation string, times int, code string) {
	s.addFault(failure{kind: denies, operation: operation, times: times, code: code})
}

// Lose lets the next times calls of an operation have their effect and then cuts the connection instead of answering.
func (s *Server) Lose(operation string, times int) {
	s.addFault(failure{kind: loses, operation: operation, times: times})
}

// Heal forgets all faults.
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

// fault uses up the first fault for an operation, once.
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
