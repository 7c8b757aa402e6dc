package stripe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxIdle is how long after a session's last Read a refund may be sent. The age of a
// refund is measured by the Date of that Read, so a process that was frozen in between
// must not send it.
const maxIdle = 30 * time.Second

// ErrNotSent means that an Exchange certainly did not send a request.
var ErrNotSent = errors.New("not sent")

var (
	errNoRead     = errors.New("no read came before it")
	errTooLate    = fmt.Errorf("the last read began more than %v ago", maxIdle)
	errSecondDial = errors.New("the connection of the last read is closed, and no other one is used")
)

// dialer is the type of net.Dialer.DialContext.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// line is one connection to Stripe with a transport of its own. It refuses to dial twice,
// and to begin a POST too late. It does so inside the transport, because net/http sends a
// POST with an Idempotency-Key again by itself if a kept connection turns out to be
// closed, and because a process may be frozen at any point before the write.
//
// It speaks HTTP/1.1. There a repeated request needs another connection, which is
// refused. An HTTP/2 transport repeats a request on the same connection, after
// REFUSED_STREAM or GOAWAY, where no dialer sees it.
type line struct {
	send  Exchange
	dial  dialer
	now   func() time.Time
	until time.Time // when the last POST may begin, by the wall clock
	idle  func()    // closes the connection if it is idle

	mu     sync.Mutex
	dialed bool
	post   bool // a POST is being sent
	wrote  bool // a part of it may have left
	ended  bool // nothing more may be sent
}

// newLine returns a line that has not dialed yet. The time for a POST starts now, before
// the request whose response tells Stripe's time. It is measured by the wall clock,
// because the monotonic one may stop while the process is frozen.
func newLine(key string, o Options) *line {
	l := &line{now: o.Now, until: o.Now().Round(0).Add(maxIdle), idle: func() {}}
	if o.Exchange != nil {
		l.send = func(ctx context.Context, r Request) (Response, error) {
			if err := l.allow(); err != nil {
				return Response{}, err
			}
			return o.Exchange(ctx, r)
		}
		return l
	}
	transport := l.transport(o.Dedicated)
	o.Transport, l.idle = transport, transport.CloseIdleConnections
	if o.Measure != nil {
		o.Transport = o.Measure(transport)
	}
	l.send = newClient(key, o).exchange
	return l
}

// transport returns a transport whose only connection is l's.
func (l *line) transport(dedicated *http.Transport) *http.Transport {
	t := &http.Transport{}
	if dedicated != nil {
		t = dedicated.Clone()
	}
	if l.dial = t.DialContext; l.dial == nil {
		l.dial = new(net.Dialer).DialContext
	}
	t.DialContext, t.DialTLSContext, t.TLSNextProto = l.dialOnce, nil, nil
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	if t.TLSClientConfig != nil { // a used transport has put HTTP/2 there
		t.TLSClientConfig.NextProtos = nil
	}
	return t
}

// dialOnce dials unless the line has dialed before.
func (l *line) dialOnce(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	again := l.dialed
	l.dialed = true
	l.mu.Unlock()
	if again {
		return nil, errSecondDial
	}
	conn, err := l.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return lineConn{conn, l}, nil
}

// lineConn is the connection of a line.
type lineConn struct {
	net.Conn

	line *line
}

// Write writes what the line allows to be sent.
func (c lineConn) Write(b []byte) (int, error) {
	if err := c.line.allow(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// allow returns why nothing may be sent now.
func (l *line) allow() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended:
		return errSecondDial
	case l.post && l.now().Round(0).After(l.until):
		return errTooLate
	}
	l.wrote = true
	return nil
}

// exchange sends a request. The error of a POST is ErrNotSent if nothing of it was
// written, and nothing of it will be.
func (l *line) exchange(ctx context.Context, r Request) (Response, error) {
	l.begin(r.Method == http.MethodPost)
	response, err := l.send(ctx, r)
	if err != nil && !l.end() && r.Method == http.MethodPost {
		return Response{}, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	return response, err
}

func (l *line) begin(post bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.post, l.wrote = post, false
}

// end forbids every further write, also that of a request whose caller gave up, and
// reports whether a part of the last request may have left.
func (l *line) end() (wrote bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	return l.wrote
}

// close closes the connection. A call that is still under way closes it when it ends.
func (l *line) close() {
	l.idle()
	l.end()
}
