package dynamodbtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Call is one call as the proxy saw it.
type Call struct {
	Operation string // for example UpdateItem
	Number    int    // 1 for the first call since the start or the last Reset
	OrderID   string // the first orderId in the request; empty for a call without one
}

// Proxy stands between a client and an engine. It passes requests and answers on
// unchanged, counts them and, on demand, spoils them. It reads no clock; only a Fault's
// Delay takes time.
type Proxy struct {
	URL string // base URL for clients

	upstream  string
	transport *http.Transport
	server    *http.Server
	closed    context.Context // ends with Close; calls under way outlive their client, not the proxy
	cancel    context.CancelFunc

	mu            sync.Mutex
	total         int
	counts        map[string]int
	faults        []*Fault
	before, after func(Call)
}

// NewProxy starts a proxy in front of endpoint, on a free port of 127.0.0.1. It serves
// until Close; ctx bounds the start only.
func NewProxy(ctx context.Context, endpoint string) (*Proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for a proxy of %q: %w", endpoint, err)
	}
	ignore := func(Call) {}
	p := &Proxy{
		URL:      "http://" + listener.Addr().String(),
		upstream: strings.TrimSuffix(endpoint, "/"),
		// Decompressing an answer would break its x-amz-crc32, which covers the bytes as sent.
		transport: &http.Transport{MaxIdleConnsPerHost: idleConnections, DisableCompression: true},
		counts:    map[string]int{},
		before:    ignore,
		after:     ignore,
	}
	p.closed, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(listener) }() // it ends with http.ErrServerClosed
	return p, nil
}

// Close ends the proxy and drops what is under way. It does not wait for a callback that
// blocks.
func (p *Proxy) Close() error {
	p.cancel()
	p.transport.CloseIdleConnections()
	if err := p.server.Close(); err != nil {
		return fmt.Errorf("close the proxy of %q: %w", p.upstream, err)
	}
	return nil
}

// Before has f called at every call before anything reaches the engine and before faults
// are chosen, so f may call Fail. f runs outside locks and may block. A call whose client
// dies meanwhile still reaches the engine, as on a real network: to make it vanish, f
// adds a LoseBefore for its Number.
func (p *Proxy) Before(f func(Call)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = f
}

// After has f called once the engine has answered a call and before the client hears of
// it. f runs outside locks and may block.
func (p *Proxy) After(f func(Call)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = f
}

// Fail spoils the calls that the fault describes. Of several faults that fit, the first
// one added acts. It panics if the fault's operation can't end so: it would never act,
// and a test that waits for it would pass.
func (p *Proxy) Fail(fault Fault) {
	if fault.Operation != "" && !fault.Kind.Possible(fault.Operation) {
		panic(fmt.Sprintf("dynamodbtest: %s can't end in %v", fault.Operation, fault.Kind))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, &fault)
}

// Heal forgets all faults.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// Counts returns the number of calls of each operation, spoiled ones too.
func (p *Proxy) Counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// Total returns the number of calls, spoiled ones too.
func (p *Proxy) Total() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}

// Reset counts from zero again. Faults and callbacks stay.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total, p.counts = 0, map[string]int{}
}

// ServeHTTP handles one call; http.ErrAbortHandler drops the connection without an
// answer.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client died while it wrote: nothing reached the engine
	}
	call, before := p.count(r, body)
	before(call)
	fault := p.choose(call, body)
	p.wait(fault.Delay)
	if fault.Kind == LoseBefore {
		panic(http.ErrAbortHandler)
	}
	if refused := fault.refuse(call.Operation, body); refused != nil {
		refused.write(w)
		return
	}
	answered, err := p.forward(r, body)
	if err != nil {
		panic(http.ErrAbortHandler) // no engine, no answer
	}
	p.callbackAfter()(call)
	switch fault.Kind { //nolint:exhaustive // the other kinds leave the answer alone
	case LoseAfter:
		panic(http.ErrAbortHandler)
	case InternalErrorAfter:
		answered = internalError()
	}
	answered.write(w)
}

func (p *Proxy) count(r *http.Request, body []byte) (Call, func(Call)) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total++
	p.counts[operation]++
	return Call{Operation: operation, Number: p.total, OrderID: orderID(body)}, p.before
}

func (p *Proxy) callbackAfter() func(Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.after
}

// wait ends early with the proxy, and forward then refuses to send the call.
func (p *Proxy) wait(delay time.Duration) {
	if delay == 0 {
		return
	}
	select {
	case <-time.After(delay):
	case <-p.closed.Done():
	}
}

// forward sends the call to the engine even when its client is gone: a request on the
// wire is not called back.
func (p *Proxy) forward(r *http.Request, body []byte) (*answer, error) {
	//nolint:gosec // the host is the engine's, whatever the client's path
	request, err := http.NewRequestWithContext(
		p.closed,
		r.Method,
		p.upstream+r.URL.RequestURI(),
		bytes.NewReader(body),
	)
	if err != nil {
		return nil, fmt.Errorf("forward %s: %w", r.URL, err)
	}
	request.Header = r.Header
	request.Host = r.Host // the signature covers it
	response, err := p.transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("forward %s: %w", r.URL, err)
	}
	defer func() { _ = response.Body.Close() }() // it is read to its end
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", r.URL, err)
	}
	return &answer{status: response.StatusCode, header: response.Header, body: text}, nil
}

// orderID finds the key without decoding the request, which would cost more than the rest
// of the proxy.
func orderID(body []byte) string {
	_, rest, found := bytes.Cut(body, []byte(`"orderId":{"S":"`))
	id, _, closed := bytes.Cut(rest, []byte(`"`))
	if !found || !closed {
		return ""
	}
	return string(id)
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a *answer) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // a client that is gone has lost its answer: that is a case under test
}
