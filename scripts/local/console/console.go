// Package console serves the page that shows the local system at work and lets a visitor
// attack it. It knows HTTP and the page. It does not know the system: package watch makes
// the picture, and Options.Act does what the visitor asks for.
package console

import (
	"context"
	"embed"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"orderonce/scripts/local/console/watch"
)

// The page and what it loads. It works offline and needs no build step.
//
//go:embed page.html console.css console.js icon.svg
var files embed.FS

// Attack is something that a visitor can do to the system.
type Attack struct {
	Name   string // in the address, such as "kill-after-yes"
	Title  string // of the button
	Expect string // what should happen, in one sentence
	Do     func(context.Context) (Result, error)
}

// Group is a heading with its attacks.
type Group struct {
	Name    string
	Attacks []Attack
}

// Guard is a safeguard of the order function that a visitor can remove.
type Guard struct {
	Name      string // of the patch, such as "bind"
	Title     string // of the button
	Missing   string // the step that the function lacks then, such as "the check of the amount"
	Breaks    string // what happens then, in sentences
	Attack    string // name of the attack that shows it
	Invariant string // of docs/design.md, that the page then shows broken
}

// Result says what was done.
type Result struct {
	Text  string `json:"text"`  // one sentence
	Order string `json:"order"` // that it was done to; "" if none
}

// Errors of acts. The text of each says what is wrong, and the visitor reads it.
var (
	ErrUnknown = errors.New("not found")
	ErrNotNow  = errors.New("not possible now") // the text says what is needed
)

// Act does something to the system: one of Options.Attacks by its name, or one of the
// other acts with a value. The context ends when the page is closed. Several pages may
// act at the same time.
type Act func(ctx context.Context, name, value string) (Result, error)

// The acts that have a value.
const (
	ActGuard = "guard" // deploys a function without the named guard, or with "" one that has them all
	ActStorm = "storm" // attacks at random, from the seed, or with "" no longer
	ActSlow  = "slow"  // "true": each call of the orders that the visitor posts takes a moment
)

// Options configure the page.
type Options struct {
	Port     int                                       // on 127.0.0.1; 0 is a free one
	Token    string                                    // random, new for each start: an act repeats it
	Picture  func() (p watch.Picture, number uint64)   // the latest one
	Timeline func(order string) (watch.Timeline, bool) // false: no such order
	Attacks  []Group
	Guards   []Guard
	Act      Act
}

// Server serves the page, or another handler.
type Server struct {
	URL string // such as http://127.0.0.1:12113

	http   *http.Server
	served sync.WaitGroup
}

// Serve starts a server. It returns an error if Options.Token is empty or the port is in
// use. Close ends it.
func Serve(o Options) (*Server, error) {
	handler, err := NewHandler(o)
	if err != nil {
		return nil, err
	}
	return Listen(o.Port, handler)
}

// Listen serves a handler on a port of 127.0.0.1, or a free one if the port is 0.
func Listen(port int, handler http.Handler) (*Server, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return nil, err
	}
	s := &Server{
		URL:  "http://" + listener.Addr().String(),
		http: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute},
	}
	s.served.Go(func() { _ = s.http.Serve(listener) }) // always ErrServerClosed
	return s, nil
}

// Close ends the server and its connections. The contexts of running acts end.
func (s *Server) Close() error {
	err := s.http.Close()
	s.served.Wait()
	return err
}
