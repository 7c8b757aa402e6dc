// Package awstest serves a double of an AWS service, or of another one, on 127.0.0.1,
// with faults. It knows no service.
package awstest

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"
)

// Kind is what a fault does to one request.
type Kind string

// The kinds of faults.
const (
	Refuse     Kind = "refuse"      // answers with Status and Code, without an effect
	LoseBefore Kind = "lose_before" // closes the connection, without an effect
	LoseAfter  Kind = "lose_after"  // closes the connection after the effect
	Reset      Kind = "reset"       // resets the connection after the effect
	Garble     Kind = "garble"      // answers with half a body after the effect
)

// Fault is what happens to one request.
type Fault struct {
	Kind   Kind
	Status int
	Code   string
}

// Response is the response to a request.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// HTTP serves a handler on a free port of 127.0.0.1.
type HTTP struct {
	URL string // such as http://127.0.0.1:4243

	http   *http.Server
	served sync.WaitGroup
}

// Listen starts a server. Close ends it.
func Listen(handler http.Handler) (*HTTP, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("serve a double: %w", err)
	}
	s := &HTTP{URL: "http://" + listener.Addr().String()}
	s.http = &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	s.served.Go(func() { _ = s.http.Serve(listener) }) // always ErrServerClosed
	return s, nil
}

// Close ends the server and its connections.
func (s *HTTP) Close() error {
	err := s.http.Close()
	s.served.Wait()
	return err
}

// Server is a double. It is safe for concurrent use.
type Server struct {
	*HTTP // with the endpoint for an SDK

	handle func(number int, f Fault, r *http.Request) Response

	mu     sync.Mutex
	faults []Fault
	calls  int
}

// Serve starts a double. Close ends it. handle has the effect of a request, unless its
// fault is Refuse or LoseBefore, and returns the response. The requests are numbered
// from 1.
func Serve(handle func(number int, f Fault, r *http.Request) Response) (s *Server, err error) {
	s = &Server{handle: handle}
	s.HTTP, err = Listen(http.HandlerFunc(s.serve))
	return s, err
}

// Fail adds faults for the next requests.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Calls returns the number of requests.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *Server) arrive() (number int, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if len(s.faults) > 0 {
		f, s.faults = s.faults[0], s.faults[1:]
	}
	return s.calls, f
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	number, fault := s.arrive()
	response := s.handle(number, fault, r)
	switch fault.Kind {
	case Reset:
		reset(w)
		return
	case LoseBefore, LoseAfter:
		panic(http.ErrAbortHandler) // closes the connection
	case Garble:
		response.Body = response.Body[:len(response.Body)/2]
	case Refuse:
	}
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.Status)
	_, _ = w.Write(response.Body) // a client that is gone needs no answer
}

// reset closes the connection of a request with a RST, so that the client reads
// "connection reset by peer" and not the end of the stream.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
