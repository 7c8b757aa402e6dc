package dynamodbtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"orderonce/adapters/internal/awstest"
)

// Call is one call to the engine. Its bytes must not be changed.
type Call struct {
	Operation string // for example UpdateItem
	Number    int    // 1 for the first call since the start or the last Reset
	Request   []byte // JSON

	// These are set for Observe.
	Status   int    // of the response, also if that was lost; 0 if the request was lost
	Response []byte // JSON, as the engine or a fault sent it
	Lost     bool   // the client gets no response
}

// Proxy forwards requests and responses between clients and an engine unchanged. It
// counts calls, and makes those fail that a Fault describes. It reads no clock.
type Proxy struct {
	*awstest.HTTP // with the base URL for clients

	upstream  string
	transport *http.Transport
	closed    context.Context // ends with Close; a call in flight outlives its client, but not the proxy
	cancel    context.CancelFunc

	mu        sync.Mutex
	total     int
	counts    map[string]int
	faults    []*Fault
	callbacks callbacks
}

type callbacks struct{ before, after, observe func(Call) }

// NewProxy starts a proxy in front of endpoint, on a free port of 127.0.0.1. It serves
// until Close, also after the end of ctx.
func NewProxy(ctx context.Context, endpoint string) (p *Proxy, err error) {
	ignore := func(Call) {}
	p = &Proxy{
		upstream: strings.TrimSuffix(endpoint, "/"),
		// Decompression would break x-amz-crc32, which covers the bytes as sent.
		transport: &http.Transport{MaxIdleConnsPerHost: idleConnections, DisableCompression: true},
		counts:    map[string]int{},
		callbacks: callbacks{before: ignore, after: ignore, observe: ignore},
	}
	p.closed, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.HTTP, err = awstest.Listen(p)
	return p, err
}

// Close stops the proxy and drops calls in flight. It does not wait for blocked
// callbacks.
func (p *Proxy) Close() error {
	p.cancel()
	p.transport.CloseIdleConnections()
	return p.HTTP.Close()
}

// Before sets a function that runs before each call is matched with faults and forwarded,
// so f may call Fail. f runs without locks and may block. If the client disconnects
// meanwhile, the call still reaches the engine, as on a real network: to lose it, f adds
// a LoseBefore for its Number.
func (p *Proxy) Before(f func(Call)) { p.locked(func() { p.callbacks.before = f }) }

// After sets a function that runs between the engine's response and its delivery to the
// client. f runs without locks and may block.
func (p *Proxy) After(f func(Call)) { p.locked(func() { p.callbacks.after = f }) }

// Observe sets a function that runs once for each call before its response is sent, also
// for calls that a fault rejects or loses. f runs without locks and may block.
func (p *Proxy) Observe(f func(Call)) { p.locked(func() { p.callbacks.observe = f }) }

// Fail makes the calls fail that the fault describes. Of several matching faults, the
// first one added applies. It panics if the kind is not possible for the operation: the
// fault would never apply, and a test of it would pass.
func (p *Proxy) Fail(fault Fault) {
	if fault.Operation != "" && !fault.Kind.Possible(fault.Operation) {
		panic("dynamodbtest: " + string(fault.Kind) + " is not possible for " + fault.Operation)
	}
	p.locked(func() { p.faults = append(p.faults, &fault) })
}

// Heal removes all faults.
func (p *Proxy) Heal() { p.locked(func() { p.faults = nil }) }

// Counts returns the number of calls of each operation, including failed ones.
func (p *Proxy) Counts() (counts map[string]int) {
	p.locked(func() { counts = maps.Clone(p.counts) })
	return counts
}

// Total returns the number of calls, including failed ones.
func (p *Proxy) Total() (n int) {
	for _, calls := range p.Counts() {
		n += calls
	}
	return n
}

// Reset sets the counts to zero. Faults and callbacks stay.
func (p *Proxy) Reset() { p.locked(func() { p.total, p.counts = 0, map[string]int{} }) }

func (p *Proxy) locked(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// ServeHTTP handles one call. It panics with http.ErrAbortHandler to drop the connection
// without a response.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client disconnected before the engine received the call
	}
	call := p.count(r, body)
	p.current().before(call)
	got, lost := p.perform(r, call)
	call.Status, call.Response, call.Lost = got.status, got.body, lost
	p.current().observe(call)
	if lost {
		panic(http.ErrAbortHandler)
	}
	got.write(w)
}

// perform returns the response to a call, and whether it is lost. The response is empty
// if the engine did not respond.
func (p *Proxy) perform(r *http.Request, call Call) (got *response, lost bool) {
	fault := p.choose(call)
	p.wait(fault.Delay)
	if fault.Kind == LoseBefore {
		return &response{}, true
	}
	if rejected := fault.reject(call.Operation, call.Request); rejected != nil {
		return rejected, false
	}
	forwarded, err := p.forward(r, call.Request)
	if err != nil {
		return &response{}, true
	}
	p.current().after(call)
	if fault.Kind == InternalErrorAfter {
		return internalError(), false
	}
	return forwarded, fault.Kind == LoseAfter
}

func (p *Proxy) count(r *http.Request, body []byte) Call {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total++
	p.counts[operation]++
	return Call{Operation: operation, Number: p.total, Request: body}
}

func (p *Proxy) current() (c callbacks) {
	p.locked(func() { c = p.callbacks })
	return c
}

// wait returns early if the proxy is closed; forward then fails.
func (p *Proxy) wait(delay time.Duration) {
	if delay == 0 {
		return
	}
	select {
	case <-time.After(delay):
	case <-p.closed.Done():
	}
}

// forward sends the call to the engine even if its client has disconnected: a request
// that was sent cannot be recalled.
func (p *Proxy) forward(r *http.Request, body []byte) (*response, error) {
	url := p.upstream + r.URL.RequestURI()
	//nolint:gosec // the host is the engine's for any path
	request, err := http.NewRequestWithContext(p.closed, r.Method, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("forward %s: %w", r.URL, err)
	}
	request.Header = r.Header
	request.Host = r.Host // the signature covers it
	got, err := p.transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("forward %s: %w", r.URL, err)
	}
	defer func() { _ = got.Body.Close() }() // read to its end
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return nil, fmt.Errorf("read the response to %s: %w", r.URL, err)
	}
	return &response{status: got.StatusCode, header: got.Header, body: text}, nil
}

type response struct {
	status int
	header http.Header
	body   []byte
}

func (r *response) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.header)
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body) //nolint:gosec // JSON, not HTML; it fails if a test has disconnected the client
}
