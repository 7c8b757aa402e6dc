package refund_test

import (
	"bufio"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// wireServer is a server that counts connections and POSTs, and serves each connection by
// itself, so that it can end one at any point.
type wireServer struct {
	net.Listener

	conns, posts atomic.Int64
}

// serveWire starts a server. Each connection is served by serve, which gets the requests
// in order until it returns, and then closed.
func serveWire(t *testing.T, serve func(s *wireServer, conn net.Conn, requests *bufio.Reader)) *wireServer {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	rigtest.Must(t, err)
	s := &wireServer{Listener: listener}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			serving.Go(func() {
				serve(s, conn, bufio.NewReader(conn))
				_ = conn.Close()
			})
		}
	})
	return s
}

// next reads a request with its body, and counts POSTs. It returns nil at the end of the
// connection.
func (s *wireServer) next(requests *bufio.Reader) *http.Request {
	r, err := http.ReadRequest(requests)
	if err != nil {
		return nil
	}
	_, _ = io.Copy(io.Discard, r.Body)
	if r.Method == http.MethodPost {
		s.posts.Add(1)
	}
	return r
}

// respond sends a 200 with a Date.
func respond(conn net.Conn, body string) {
	res := http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body)),
		Header: http.Header{"Date": {"Tue, 22 Sep 2026 13:33:20 GMT"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
	_ = res.Write(conn)
}

func noRefunds() string { return succeededIntent(refundedCharge(`{"data":[]}`)) }

// openSession returns a session that has read once.
//
//nolint:ireturn // as the port
func openSession(t *testing.T, s *wireServer, now func() time.Time) refund.Session {
	t.Helper()
	session := newRefunds(t, "http://"+s.Addr().String(), now).Open(t.Context())
	t.Cleanup(session.Close)
	if _, err := session.Read(t.Context(), rigtest.IntentID); err != nil {
		t.Fatal(err)
	}
	return session
}

// wantSent checks how many connections and POSTs the server has seen.
func (s *wireServer) wantSent(t *testing.T, conns, posts int64) {
	t.Helper()
	if s.conns.Load() != conns || s.posts.Load() != posts {
		t.Errorf("got %d connections and %d POSTs, want %d and %d", s.conns.Load(), s.posts.Load(), conns, posts)
	}
}

func TestAReadAndACreateAreTwoRequestsOnOneConnection(t *testing.T) {
	t.Parallel()
	s := serveWire(t, func(s *wireServer, conn net.Conn, requests *bufio.Reader) {
		for r := s.next(requests); r != nil; r = s.next(requests) {
			if r.Method == http.MethodGet {
				respond(conn, noRefunds())
			} else {
				respond(conn, refundJSON("succeeded", rigtest.Null))
			}
		}
	})
	session := openSession(t, s, clock)
	if r, err := session.Create(t.Context(), theRefundOrder()); err != nil || r.ID != refundID {
		t.Errorf("got %+v, %v, want a refund", r, err)
	}
	s.wantSent(t, 1, 1)
}

// The server half-closes the connection after the read. It sees the other half end when
// the transport has noticed.
func TestACreateIsNotSentAfterTheServerClosedTheConnection(t *testing.T) {
	t.Parallel()
	noticed := make(chan struct{})
	s := serveWire(t, func(s *wireServer, conn net.Conn, requests *bufio.Reader) {
		s.next(requests)
		respond(conn, noRefunds())
		_ = conn.(*net.TCPConn).CloseWrite()
		if s.next(requests) == nil {
			close(noticed)
		}
	})
	session := openSession(t, s, clock)
	<-noticed
	_, err := session.Create(t.Context(), theRefundOrder())
	if rigtest.KindOf(t, err) != order.KindUnavailable || !errors.Is(err, stripe.ErrNotSent) {
		t.Errorf("got %v, want it %s and not sent", err, order.KindUnavailable)
	}
	s.wantSent(t, 1, 0)
}

// net/http by itself sends such a POST again on a new connection, because of its
// Idempotency-Key (TestNetHTTPSendsAPOSTTwice).
func TestACreateWithoutAResponseIsSentOnce(t *testing.T) {
	t.Parallel()
	s := serveWire(t, closeAfterPOST)
	_, err := openSession(t, s, clock).Create(t.Context(), theRefundOrder())
	if rigtest.KindOf(t, err) != order.KindUnknown || errors.Is(err, stripe.ErrNotSent) {
		t.Errorf("got %v, want it %s", err, order.KindUnknown)
	}
	s.wantSent(t, 1, 1)
}

// closeAfterPOST closes a connection as soon as a POST has arrived.
func closeAfterPOST(s *wireServer, conn net.Conn, requests *bufio.Reader) {
	for r := s.next(requests); r != nil && r.Method == http.MethodGet; r = s.next(requests) {
		respond(conn, noRefunds())
	}
}

// The reason for a connection of its own: the caller sends one POST, the server sees two.
func TestNetHTTPSendsAPOSTTwice(t *testing.T) {
	t.Parallel()
	s := serveWire(t, closeAfterPOST)
	p := charge.New(rigtest.Options(t, "http://"+s.Addr().String(), nil))
	if _, err := p.Read(t.Context(), rigtest.IntentID); err != nil {
		t.Fatal(err)
	}
	_, err := p.Confirm(t.Context(), rigtest.IntentID, order.ConfirmKey(rigtest.Scope, "ORD-1", 1))
	if rigtest.KindOf(t, err) != order.KindUnknown {
		t.Errorf("got %v, want it %s", err, order.KindUnknown)
	}
	s.wantSent(t, 2, 2)
}

// frozen is a clock that jumps ahead at the nth reading after it was set.
type frozen struct {
	mu    sync.Mutex
	ahead time.Duration
	in    int
}

func (f *frozen) now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.in--; f.in == 0 {
		f.ahead = 24 * time.Hour
	}
	return clock().Add(f.ahead)
}

// A process may be frozen at any point between the read and the write of the POST. The
// last look at the clock is at the write itself.
func TestAFrozenProcessDoesNotSendARefund(t *testing.T) {
	t.Parallel()
	s := serveWire(t, func(s *wireServer, conn net.Conn, requests *bufio.Reader) {
		for s.next(requests) != nil {
			respond(conn, noRefunds())
		}
	})
	clock := &frozen{}
	var before atomic.Bool // the transport has the POST
	session := striperefund.New(stripe.Options{
		Key: rigtest.Key, BaseURL: "http://" + s.Addr().String(), Scope: rigtest.Scope, Now: clock.now,
		Measure: func(next http.RoundTripper) http.RoundTripper {
			return rigtest.RoundTripFunc(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPost {
					clock.mu.Lock()
					clock.in = 1 // frozen behind every guard around the transport
					clock.mu.Unlock()
					before.Store(true)
				}
				return next.RoundTrip(r)
			})
		},
	}).Open(t.Context())
	t.Cleanup(session.Close)
	_, err := session.Read(t.Context(), rigtest.IntentID)
	rigtest.Must(t, err)
	_, err = session.Create(t.Context(), theRefundOrder())
	const why = "not sent: the last read began more than 30s ago"
	if rigtest.KindOf(t, err) != order.KindUnavailable || !strings.HasSuffix(err.Error(), why) || !before.Load() {
		t.Errorf("got %v, want it %s: %s, after the transport had it", err, order.KindUnavailable, why)
	}
	s.wantSent(t, 1, 0)
}

// The read's response may have waited in a buffer while the process was frozen. So the
// time counts from before the read.
func TestTheTimeForARefundStartsBeforeTheRead(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	now := func() time.Time { return clock().Add(time.Duration(ahead.Load())) }
	s := serveWire(t, func(s *wireServer, conn net.Conn, requests *bufio.Reader) {
		for s.next(requests) != nil {
			ahead.Add(int64(31 * time.Second))
			respond(conn, noRefunds())
		}
	})
	if _, err := openSession(t, s, now).Create(t.Context(), theRefundOrder()); rigtest.KindOf(t, err) != order.KindUnavailable {
		t.Errorf("got %v, want it %s", err, order.KindUnavailable)
	}
	s.wantSent(t, 1, 0)
}

// The connection is closed with the session, so that none is left for another.
func TestASessionClosesItsConnection(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	s := serveWire(t, func(s *wireServer, conn net.Conn, requests *bufio.Reader) {
		for s.next(requests) != nil {
			respond(conn, noRefunds())
		}
		ended <- struct{}{}
	})
	session := openSession(t, s, clock)
	_, err := session.Read(t.Context(), rigtest.IntentID) // on a connection of its own
	rigtest.Must(t, err)
	<-ended
	session.Close()
	<-ended
	s.wantSent(t, 2, 0)
}

// A transport that has certificates and HTTP/2 lends a session the first.
func TestASessionUsesTheDedicatedTransportOverHTTP1(t *testing.T) {
	t.Parallel()
	var protocols []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocols = append(protocols, r.Proto+" "+r.RemoteAddr)
		body := noRefunds()
		if r.Method == http.MethodPost {
			body = refundJSON("succeeded", rigtest.Null)
		}
		rigtest.OK(body).ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	for _, tt := range []struct {
		dedicated *http.Transport
		want      order.ErrorKind
	}{{server.Client().Transport.(*http.Transport), ""}, {nil, order.KindUnknown}} { // nil trusts no certificate
		session := striperefund.New(stripe.Options{
			Key: rigtest.Key, BaseURL: server.URL, Scope: rigtest.Scope, Now: clock, Dedicated: tt.dedicated,
		}).Open(t.Context())
		t.Cleanup(session.Close)
		_, err := session.Read(t.Context(), rigtest.IntentID)
		if err == nil {
			_, err = session.Create(t.Context(), theRefundOrder())
		}
		if rigtest.KindOf(t, err) != tt.want {
			t.Errorf("got %v, want error %q", err, tt.want)
		}
	}
	if len(protocols) != 2 || !strings.HasPrefix(protocols[0], "HTTP/1.1 ") || protocols[0] != protocols[1] {
		t.Errorf("got %q, want two requests over HTTP/1.1 on one connection", protocols)
	}
}
