package refund_test

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
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

// wireServer is a server that counts connections and POSTs, and reports the end of each
// connection.
type wireServer struct {
	*httptest.Server

	conns, posts atomic.Int64
	ended        chan struct{}
}

func serveWire(t *testing.T, serve http.HandlerFunc) *wireServer {
	t.Helper()
	s := &wireServer{ended: make(chan struct{}, 2)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			s.posts.Add(1)
		}
		serve(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state { //nolint:exhaustive // the states between
		case http.StateNew:
			s.conns.Add(1)
		case http.StateClosed:
			s.ended <- struct{}{}
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func reads(w http.ResponseWriter, r *http.Request) { rigtest.Handler(rigtest.OK(noRefunds()))(w, r) }

func (s *wireServer) options() stripe.Options {
	return stripe.Options{Key: rigtest.Key, BaseURL: s.URL, Scope: rigtest.Scope, Now: clock}
}

func clock() time.Time { return time.Unix(1_790_000_000, 0) }

// openSession returns a session that has read once.
//
//nolint:ireturn // as the port
func openSession(t *testing.T, o stripe.Options) refund.Session {
	t.Helper()
	session := striperefund.New(o).Open(t.Context())
	t.Cleanup(session.Close)
	_, err := session.Read(t.Context(), rigtest.IntentID)
	rigtest.Must(t, err)
	return session
}

func (s *wireServer) wantSent(t *testing.T, conns, posts int64) {
	t.Helper()
	if s.conns.Load() != conns || s.posts.Load() != posts {
		t.Errorf("got %d connections and %d POSTs, want %d and %d", s.conns.Load(), s.posts.Load(), conns, posts)
	}
}

// The server half-closes the connection after the read. It sees the other half end when
// the transport has noticed.
func TestACreateIsNotSentAfterTheServerClosedTheConnection(t *testing.T) {
	noticed := make(chan struct{})
	s := serveWire(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(noRefunds())))
		reads(w, r)
		response := http.NewResponseController(w)
		_ = response.Flush()
		conn, _, err := response.Hijack()
		rigtest.Must(t, err)
		_ = conn.(*net.TCPConn).CloseWrite()
		if n, _ := io.Copy(io.Discard, conn); n == 0 {
			close(noticed)
		}
		_ = conn.Close()
	})
	session := openSession(t, s.options())
	<-noticed
	_, err := session.Create(t.Context(), theRefundOrder())
	if rigtest.KindOf(t, err) != order.KindUnavailable || !errors.Is(err, stripe.ErrNotSent) {
		t.Errorf("got %v, want it %s and not sent", err, order.KindUnavailable)
	}
	s.wantSent(t, 1, 0)
}

// The reason for a connection of its own: net/http sends a POST with an Idempotency-Key
// again on a new connection, so that the caller sends one and the server sees two.
func TestACreateWithoutAResponseIsSentOnce(t *testing.T) {
	closeAfterPOST := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			panic(http.ErrAbortHandler)
		}
		reads(w, r)
	}
	s := serveWire(t, closeAfterPOST)
	_, err := openSession(t, s.options()).Create(t.Context(), theRefundOrder())
	if rigtest.KindOf(t, err) != order.KindUnknown || errors.Is(err, stripe.ErrNotSent) {
		t.Errorf("got %v, want it %s", err, order.KindUnknown)
	}
	s.wantSent(t, 1, 1)

	usual := serveWire(t, closeAfterPOST)
	o := usual.options()
	o.Transport = &http.Transport{}
	p := charge.New(o)
	_, err = p.Read(t.Context(), rigtest.IntentID)
	rigtest.Must(t, err)
	_, err = p.Confirm(t.Context(), rigtest.IntentID, order.ConfirmKey(rigtest.Scope, "ORD-1", 1))
	if rigtest.KindOf(t, err) != order.KindUnknown {
		t.Errorf("net/http: got %v, want it %s", err, order.KindUnknown)
	}
	usual.wantSent(t, 2, 2)
}

// A process may be frozen at any point between the read and the write of the POST. The
// last look at the clock is at the write itself, behind every guard around the transport.
func TestAFrozenProcessDoesNotSendARefund(t *testing.T) {
	s := serveWire(t, reads)
	var readings atomic.Int64 // of the clock, since the transport had the POST
	o := s.options()
	o.Now = func() time.Time {
		if readings.Load() == 0 {
			return clock()
		}
		readings.Add(1)
		return clock().Add(24 * time.Hour)
	}
	o.Measure = func(next http.RoundTripper) http.RoundTripper {
		return rigtest.RoundTripFunc(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost {
				readings.Store(1)
			}
			return next.RoundTrip(r)
		})
	}
	_, err := openSession(t, o).Create(t.Context(), theRefundOrder())
	const why = "not sent: the last read began more than 30s ago"
	if rigtest.KindOf(t, err) != order.KindUnavailable || !strings.HasSuffix(err.Error(), why) || readings.Load() != 2 {
		t.Errorf("got %v, want it %s: %s, at the last look at the clock", err, order.KindUnavailable, why)
	}
	s.wantSent(t, 1, 0)
}

// The read's response may have waited in a buffer while the process was frozen. So the
// time counts from before the read.
func TestTheTimeForARefundStartsBeforeTheRead(t *testing.T) {
	var ahead atomic.Int64
	s := serveWire(t, func(w http.ResponseWriter, r *http.Request) {
		ahead.Add(int64(31 * time.Second))
		reads(w, r)
	})
	o := s.options()
	o.Now = func() time.Time { return clock().Add(time.Duration(ahead.Load())) }
	if _, err := openSession(t, o).Create(t.Context(), theRefundOrder()); rigtest.KindOf(t, err) != order.KindUnavailable {
		t.Errorf("got %v, want it %s", err, order.KindUnavailable)
	}
	s.wantSent(t, 1, 0)
}

// The connection is closed with the session, so that none is left for another.
func TestASessionClosesItsConnection(t *testing.T) {
	s := serveWire(t, reads)
	session := openSession(t, s.options())
	_, err := session.Read(t.Context(), rigtest.IntentID) // on a connection of its own
	rigtest.Must(t, err)
	<-s.ended
	session.Close()
	<-s.ended
	s.wantSent(t, 2, 0)
}

// A transport that has certificates and HTTP/2 lends a session the first.
func TestASessionUsesTheDedicatedTransportOverHTTP1(t *testing.T) {
	var protocols []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocols = append(protocols, r.Proto+" "+r.RemoteAddr)
		body := noRefunds()
		if r.Method == http.MethodPost {
			body = made()
		}
		rigtest.Handler(rigtest.OK(body))(w, r)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	o := stripe.Options{Key: rigtest.Key, BaseURL: server.URL, Scope: rigtest.Scope, Now: clock}
	_, err := striperefund.New(o).Open(t.Context()).Read(t.Context(), rigtest.IntentID)
	if rigtest.KindOf(t, err) != order.KindUnknown {
		t.Errorf("without the certificate: got %v, want %s", err, order.KindUnknown)
	}
	o.Dedicated = server.Client().Transport.(*http.Transport)
	_, err = openSession(t, o).Create(t.Context(), theRefundOrder())
	rigtest.Must(t, err)
	if len(protocols) != 2 || !strings.HasPrefix(protocols[0], "HTTP/1.1 ") || protocols[0] != protocols[1] {
		t.Errorf("got %q, want two requests over HTTP/1.1 on one connection", protocols)
	}
}
