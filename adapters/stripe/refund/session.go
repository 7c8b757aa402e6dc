package refund

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"orderonce/adapters/stripe"
)

// maxIdle is how long after a session's last Read a refund may be sent. The age of a
// refund is measured by the Date of that Read, so a process that was frozen in between
// must not send it.
const maxIdle = 30 * time.Second

const (
	errNoRead     stripe.NotSentError = "no successful read came before it"
	errTooLate    stripe.NotSentError = "the last read began more than 30s ago" // maxIdle
	errSecondDial stripe.NotSentError = "the connection of the last read is closed, and no other one is used"
)

// connection is one connection to Stripe with a transport of its own. It refuses to dial
// twice, and to begin a POST too late. It does so inside the transport, because net/http
// resends a POST with an Idempotency-Key if a kept connection turns out to be closed, and
// because a process may be frozen at any point before the write.
//
// It uses HTTP/1.1, where a repeated request needs another connection. An HTTP/2
// transport repeats a refused stream on the same connection, and writes frames of its own
// at any time.
type connection struct {
	send  stripe.Exchange
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	now   func() time.Time
	until time.Time // when the last POST may begin, by the wall clock
	idle  func()    // closes the connection if it is idle

	mu     sync.Mutex
	dialed bool
	post   bool  // a POST is being sent
	wrote  bool  // a part of it may have left
	ended  error // why nothing more may be sent; nil if something may
}

// newConnection returns a connection that is not dialed yet. The time for a POST starts
// now, before the request whose response has Stripe's time. It is measured by the wall
// clock, because the monotonic one may stop while the process is frozen.
func newConnection(o stripe.Options) *connection {
	c := &connection{now: o.Now, until: o.Now().Round(0).Add(maxIdle), idle: func() {}}
	if o.Exchange != nil {
		c.send = func(ctx context.Context, r stripe.Request) (stripe.Response, error) {
			if err := c.allow(); err != nil {
				return stripe.Response{}, err
			}
			return o.Exchange(ctx, r)
		}
		return c
	}
	transport := c.transport(o.Dedicated)
	o.Transport, c.idle = transport, transport.CloseIdleConnections
	if o.Measure != nil {
		o.Transport = o.Measure(transport)
	}
	c.send = stripe.NewExchange(o)
	return c
}

// transport returns a transport whose only connection is c.
func (c *connection) transport(dedicated *http.Transport) *http.Transport {
	t := &http.Transport{}
	if dedicated != nil {
		t = dedicated.Clone()
	}
	if c.dial = t.DialContext; c.dial == nil {
		c.dial = new(net.Dialer).DialContext
	}
	t.DialContext, t.DialTLSContext, t.TLSNextProto = c.dialOnce, nil, nil
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	if t.TLSClientConfig != nil { // a used transport has put HTTP/2 there
		t.TLSClientConfig.NextProtos = nil
	}
	return t
}

func (c *connection) dialOnce(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	again, ended := c.dialed, c.ended
	c.dialed = true
	c.mu.Unlock()
	if again {
		return nil, cmp.Or[error](ended, errSecondDial)
	}
	conn, err := c.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return guardedConn{conn, c}, nil
}

// guardedConn asks its connection before each write.
type guardedConn struct {
	net.Conn

	guard *connection
}

// Write writes if the connection allows it.
func (g guardedConn) Write(b []byte) (int, error) {
	if err := g.guard.allow(); err != nil {
		return 0, err
	}
	return g.Conn.Write(b)
}

// allow returns why nothing may be sent now.
func (c *connection) allow() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil && c.post && c.now().Round(0).After(c.until) {
		c.ended = errTooLate
	}
	c.wrote = c.wrote || c.ended == nil
	return c.ended
}

// exchange sends a request. The error of a POST is ErrNotSent if nothing of it was
// written, and nothing of it will be.
func (c *connection) exchange(ctx context.Context, r stripe.Request) (stripe.Response, error) {
	c.begin(r.Method == http.MethodPost)
	response, err := c.send(ctx, r)
	if err != nil && !c.end() && r.Method == http.MethodPost {
		return stripe.Response{}, fmt.Errorf("%w: %w", stripe.ErrNotSent, err)
	}
	return response, err
}

func (c *connection) begin(post bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.post, c.wrote = post, false
}

// end forbids every further write, also that of a request whose caller gave up, and
// reports whether a part of the last request may have left.
func (c *connection) end() (wrote bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = cmp.Or[error](c.ended, errSecondDial)
	return c.wrote
}

// close closes the connection. A call that is still under way closes it when it ends.
func (c *connection) close() {
	c.idle()
	c.end()
}
