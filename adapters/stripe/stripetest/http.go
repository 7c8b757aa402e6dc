package stripetest

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// callsKept bounds the memory of Calls; counters are exact for ever.
const callsKept = 50_000

// APIVersion is the one that this pretend Stripe obeys.
const APIVersion = "2023-10-16"

// Options configure a Server. The zero value is Stripe as documented, on a free port, with the real clock.
type Options struct {
	Rules
	Port int              // 0 means a free port. The address is always 127.0.0.1.
	Now  func() time.Time // The clock that Advance moves on; nil means the real one.
	// Before and After, when set, see each request as it arrives and its answer before that is sent. They run outside the
	// server's lock and may block: a test can kill the client there.
	Before, After func(Call)
}

// Call is what the server saw of one request. Status and what follows it are set after the execution only.
type Call struct {
	Number   int // Of arrival, from 1.
	At       time.Time
	Endpoint Endpoint
	Intent   string
	OrderID  string
	Key      string
	Status   int // What the client was sent, or would have been.
	Request  RequestID
	Replayed bool
	Lost     bool
}

// Server is a Machine behind HTTP.
type Server struct {
	URL string // Such as http://127.0.0.1:4242.

	options Options
	http    *http.Server
	closed  chan struct{}
	served  chan struct{}
	ahead   atomic.Int64 // How far Advance has moved the clock.

	mu      sync.Mutex
	idle    *sync.Cond // Told whenever an execution ends.
	machine *Machine
	calls   []Call
	arrived int
	counts  map[Endpoint]int
}

// Serve starts a Server. Close ends it.
func Serve(options Options) (*Server, error) {
	if options.Now == nil {
		options.Now = time.Now //nolint:forbidigo // The real clock is this face's default; tests pass their own.
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: options.Port})
	if err != nil {
		return nil, fmt.Errorf("serve pretend Stripe on port %d: %w", options.Port, err)
	}
	s := &Server{
		URL: "http://" + listener.Addr().String(), options: options, closed: make(chan struct{}), served: make(chan struct{}),
		machine: New(options.Rules), counts: map[Endpoint]int{},
	}
	s.idle = sync.NewCond(&s.mu)
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener) // Its only ends are Close and a broken listener, which clients see themselves.
	}()
	return s, nil
}

// Close cuts every delay short, breaks every connection and waits until nothing executes. Closing twice is harmless.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return nil
	default:
	}
	close(s.closed)
	err := s.http.Close()
	<-s.served
	for len(s.machine.running) > 0 {
		s.idle.Wait()
	}
	return err
}

// Now returns the server's time.
func (s *Server) Now() time.Time { return s.options.Now().Add(time.Duration(s.ahead.Load())) }

// Advance moves the server's clock forward, so that keys grow old without waiting.
func (s *Server) Advance(d time.Duration) { s.ahead.Add(int64(d)) }

// Machine runs f under the server's lock. Nothing of the machine may be used after f returns.
func (s *Server) Machine(f func(*Machine)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.machine)
}

// Fail arms a fault.
func (s *Server) Fail(fault Fault) { s.Machine(func(m *Machine) { m.Fail(fault) }) }

// Calls returns the latest requests that arrived, oldest first, 50,000 at least.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Count returns how many requests for an endpoint arrived, whatever became of them.
func (s *Server) Count(e Endpoint) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[e]
}

// ServeHTTP answers one request of a client.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "unreadable form", http.StatusBadRequest)
		return
	}
	request := requestOf(r)
	seen := s.arrive(request)
	request.Number = seen.Number
	if s.options.Before != nil {
		s.options.Before(seen)
	}
	answer := s.perform(request)
	seen = s.answered(seen, answer)
	if s.options.After != nil {
		s.options.After(seen)
	}
	if answer.Lost {
		breakConnection(w)
		return
	}
	// docs.stripe.com/api/versioning: Stripe-Version overrides the version. Its client is told so, and answered as ever.
	w.Header().Set("Stripe-Version", cmp.Or(r.Header.Get("Stripe-Version"), APIVersion))
	send(w, request, answer)
}

func requestOf(r *http.Request) Request {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if user, _, ok := r.BasicAuth(); ok {
		key = user
	}
	form := r.PostForm
	if r.Method == get {
		form = r.Form
	}
	return Request{Method: r.Method, Path: r.URL.Path, APIKey: key, Key: r.Header.Get("Idempotency-Key"), Form: form}
}

func (s *Server) arrive(r Request) Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.machine.route(r)
	s.counts[c.endpoint]++
	s.arrived++
	return Call{Number: s.arrived, At: s.Now(), Endpoint: c.endpoint, Intent: c.intent, OrderID: c.orderID, Key: c.Key}
}

// perform runs a request through the machine and waits, as faults tell, outside the lock: so that twins really meet a key in
// use and an intent that is locked. A client that hangs up does not stop it, as it would not stop Stripe.
func (s *Server) perform(r Request) Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	ticket, refusal := s.machine.Begin(s.Now(), r)
	if refusal != nil {
		return *refusal
	}
	beforeEffect, beforeAnswer := s.machine.Delays(ticket)
	s.wait(beforeEffect)
	s.machine.Effect(s.Now(), ticket)
	s.wait(beforeAnswer)
	defer s.idle.Broadcast()
	return s.machine.End(s.Now(), ticket)
}

// wait lets go of the lock for d, or until Close.
func (s *Server) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.closed:
	}
}

func (s *Server) answered(c Call, answer Response) Call {
	c.Status, c.Request, c.Replayed, c.Lost = answer.Status, answer.RequestID, answer.Replayed(), answer.Lost
	if c.Intent == "" && answer.Intent != nil {
		c.Intent = answer.Intent.ID
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) >= 2*callsKept {
		s.calls = slices.Clone(s.calls[callsKept:])
	}
	s.calls = append(s.calls, c)
	return c
}

// breakConnection loses an answer after its first byte. Without that byte Go's own http.Transport would send a request with
// an Idempotency-Key again by itself when a kept-alive connection ends, and no caller would ever see the loss.
func breakConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = conn.Write([]byte("H"))
	_ = conn.Close()
}

func send(w http.ResponseWriter, r Request, answer Response) {
	body := answer.Body()
	header := w.Header()
	maps.Copy(header, answer.Header())
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Key != "" && r.Method == post {
		header.Set("Idempotency-Key", r.Key)
	}
	w.WriteHeader(answer.Status)
	_, _ = w.Write(body) //nolint:gosec // JSON, and no browser; a client that has gone away is its own problem.
}
