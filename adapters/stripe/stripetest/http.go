package stripetest

import (
	"cmp"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"orderonce/adapters/internal/awstest"
)

// APIVersion is the version of Stripe's API that is modeled.
const APIVersion = "2023-10-16"

// Options configure a Server. The zero value is Stripe as documented.
type Options struct {
	Rules
	Now func() time.Time // The clock that Advance moves forward; nil means the real one.
	// Before and After, if set, are called when a request arrives and before its response
	// is sent, also if the request is refused, or one of the two is lost. They run outside
	// the server's lock and may block, so that a test can kill the client there.
	Before, After func(Call)
}

// Call is one request as the server saw it. Status and the fields after it are set after
// the execution.
type Call struct {
	Number   int    // The requests are numbered from 1 as they arrive.
	Method   string // GET or POST.
	Path     string // Such as /v1/payment_intents/pi_000001/confirm.
	Endpoint Endpoint
	Intent   string
	OrderID  string
	Key      string
	Status   int // Of the response, also if that was lost; 0 if the request was lost.
	// Result is the status of the intent or refund in the response, such as succeeded, or
	// the code of its error, such as card_declined, or else the type, such as api_error. It
	// is empty for lists and for a lost request.
	Result   string
	Request  RequestID
	Replayed bool
	Lost     bool
}

// Server serves a Machine.
type Server struct {
	*awstest.HTTP

	options Options
	close   sync.Once
	closed  chan struct{}
	running sync.WaitGroup // executing calls
	ahead   atomic.Int64   // How far Advance has moved the clock, in nanoseconds.

	mu      sync.Mutex
	machine *Machine
	arrived int
	counts  map[Endpoint]int
}

// Serve starts a Server on a free port of 127.0.0.1. Close stops it.
func Serve(options Options) (s *Server, err error) {
	if options.Now == nil {
		options.Now = time.Now //nolint:forbidigo // The real clock is the default; tests pass their own.
	}
	s = &Server{
		options: options, closed: make(chan struct{}), machine: New(options.Rules), counts: map[Endpoint]int{},
	}
	s.HTTP, err = awstest.Listen(s)
	return s, err
}

// Close closes every connection, ends every delay and waits for executing calls. A second
// Close does nothing.
func (s *Server) Close() (err error) {
	s.close.Do(func() {
		err = s.HTTP.Close() // first, so that no delayed response arrives
		close(s.closed)
		s.running.Wait()
	})
	return err
}

// Now returns the server's time.
func (s *Server) Now() time.Time { return s.options.Now().Add(time.Duration(s.ahead.Load())) }

// Advance moves the server's clock forward, so that keys expire without waiting.
func (s *Server) Advance(d time.Duration) { s.ahead.Add(int64(d)) }

// Machine calls f under the server's lock. The machine must not be used after f returns.
func (s *Server) Machine(f func(*Machine)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.machine)
}

// Fail adds a fault.
func (s *Server) Fail(fault Fault) { s.Machine(func(m *Machine) { m.Fail(fault) }) }

// Arrived returns how many requests have arrived, including those that failed.
func (s *Server) Arrived() (n int) {
	s.Machine(func(*Machine) { n = s.arrived })
	return n
}

// Count is Arrived for one endpoint.
func (s *Server) Count(e Endpoint) (n int) {
	s.Machine(func(*Machine) { n = s.counts[e] })
	return n
}

// ServeHTTP handles one request.
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
	response := s.perform(request)
	seen.answered(response)
	if s.options.After != nil {
		s.options.After(seen)
	}
	if response.Lost {
		breakConnection(w)
		return
	}
	// docs.stripe.com/api/versioning: Stripe-Version overrides the version. The response
	// has that header and is the same otherwise.
	w.Header().Set("Stripe-Version", cmp.Or(r.Header.Get("Stripe-Version"), APIVersion))
	send(w, request, response)
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
	return Request{
		Method: r.Method, Path: r.URL.Path, APIKey: key, Key: r.Header.Get("Idempotency-Key"), Form: form,
	}
}

func (s *Server) arrive(r Request) Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.machine.route(s.Now(), r)
	s.counts[c.op.endpoint]++
	s.arrived++
	seen := Call{
		Number: s.arrived, Method: c.Method, Path: c.Path, Endpoint: c.op.endpoint,
		OrderID: c.orderID, Key: c.Key,
	}
	if c.op.endpoint != ReadRefund {
		seen.Intent = c.id
	}
	return seen
}

// perform executes a request and waits, if faults say so, outside the lock, so that a
// concurrent request finds its key in use and its intent locked. A client that
// disconnects does not stop it, as it would not stop Stripe.
func (s *Server) perform(r Request) Response {
	s.running.Add(1)
	defer s.running.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	ticket, refusal := s.machine.Begin(s.Now(), r)
	if refusal != nil {
		return *refusal
	}
	beforeEffect, beforeEnd := s.machine.Delays(ticket)
	s.wait(beforeEffect)
	s.machine.Effect(s.Now(), ticket)
	s.wait(beforeEnd)
	return s.machine.End(s.Now(), ticket)
}

// wait releases the lock for d, or until Close.
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

func (c *Call) answered(response Response) {
	c.Status, c.Result, c.Request = response.Status, response.result(), response.RequestID
	c.Replayed, c.Lost = response.Replayed(), response.Lost
	if c.Intent == "" && response.Intent != nil {
		c.Intent = response.Intent.ID
	}
}

// breakConnection closes the connection after the first byte of a response. Without that
// byte, http.Transport would resend a request with an Idempotency-Key by itself when a
// kept-alive connection ends, and the caller would not notice the loss.
func breakConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = conn.Write([]byte("H"))
	_ = conn.Close()
}

func send(w http.ResponseWriter, r Request, response Response) {
	body, header := response.Body(), w.Header()
	maps.Copy(header, response.Header())
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Key != "" && r.Method == post {
		header.Set("Idempotency-Key", r.Key)
	}
	w.WriteHeader(response.Status)
	_, _ = w.Write(body) //nolint:gosec // It is JSON, not HTML; a broken connection is the client's to report.
}
