// Package eventbridgetest is a pretend EventBridge with one event bus. It serves
// PutEvents over HTTP with the documented limits and failures, and keeps what it
// accepted. It has one target without a rule, and checks no signatures.
//
// Source, unless noted otherwise:
// https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html.
package eventbridgetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// The limits of one request.
const (
	MaxEntries    = 10
	MaxSize       = 1 << 20 // bytes of all entries; a request must have less
	maxDetailType = 128     // characters
)

// Codes of failed requests and of refused entries.
const (
	CodeInternal            = "InternalFailure"
	CodeThrottling          = "ThrottlingException"
	CodeValidation          = "ValidationException"
	CodeInvalidArgument     = "InvalidArgument"
	CodeMalformedDetail     = "MalformedDetail"
	CodeNotAuthorizedSource = "NotAuthorizedForSourceException"
	codeUnknownOperation    = "UnknownOperationException"
)

// Event is an accepted entry.
type Event struct {
	ID         string // new for each acceptance
	Bus        string // as the entry names it; "default" if it names none
	Source     string
	DetailType string
	Detail     json.RawMessage
	Time       time.Time // of the entry, zero if it had none
}

// Delivered returns the event as a target of a rule receives it, in a pretend account
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html).
func (e Event) Delivered() json.RawMessage {
	text, _ := json.Marshal(map[string]any{ // it always encodes: check accepts only valid details
		"version": "0", "id": e.ID, "detail-type": e.DetailType, "source": e.Source, "account": "123456789012",
		"time": e.Time.UTC().Format(time.RFC3339), "region": "eu-west-1", "resources": []string{}, "detail": e.Detail,
	})
	return text
}

// Options configure Serve.
type Options struct {
	Bus string // name of the bus, beside "default", which always exists
	// Refuse returns the code with which an entry is refused, or "" to accept it. It is
	// called for each valid entry, without an ID and one at a time. Nil accepts them all.
	Refuse func(Event) (code string)
	// Target gets each event of Bus, as the target of a rule that matches all events. It
	// is called one event at a time. Nil drops them.
	Target func(Event)
}

// Server is a pretend EventBridge. It is safe for concurrent use.
type Server struct {
	URL string // the endpoint for an SDK

	options Options
	http    *http.Server
	served  sync.WaitGroup

	mu       sync.Mutex
	accepted []Event
	dropped  []Event
	calls    int
	failures []string // codes of the next requests; "" loses the response
}

// Serve starts a server on a free port of 127.0.0.1. Close ends it.
func Serve(o Options) (*Server, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + listener.Addr().String(), options: o}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute}
	s.served.Go(func() { _ = s.http.Serve(listener) }) // always ErrServerClosed
	return s, nil
}

// Close ends the server and its connections.
func (s *Server) Close() error {
	err := s.http.Close()
	s.served.Wait()
	return err
}

// Archive returns the events that the bus accepted, in the order of their acceptance.
func (s *Server) Archive() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.accepted)
}

// Dropped returns the events that were accepted for a bus that does not exist.
// EventBridge responds as for one that exists
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html).
func (s *Server) Dropped() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.dropped)
}

// Calls returns the number of requests.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Fail makes the next times requests fail with a code, without an effect.
func (s *Server) Fail(code string, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, slices.Repeat([]string{code}, times)...)
}

// Lose makes the next times requests have their effect, and then closes the connection.
func (s *Server) Lose(times int) { s.Fail("", times) }

type entry struct {
	Detail, DetailType, EventBusName, Source string

	Resources []string
	Time      *float64 // seconds since 1970
}

type result struct {
	EventID      string `json:"EventId,omitempty"`
	ErrorCode    string `json:",omitempty"`
	ErrorMessage string `json:",omitempty"`
}

// failure is the error of a whole request.
type failure struct {
	Code    string `json:"__type"`
	Message string `json:"message"`
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	fault, lose := "", false
	if len(s.failures) > 0 {
		fault, s.failures = s.failures[0], s.failures[1:]
		lose = fault == ""
	}
	var in struct{ Entries []entry }
	err := json.NewDecoder(r.Body).Decode(&in)
	switch {
	case fault != "":
		respond(w, failure{fault, "on demand"})
	case r.Header.Get("X-Amz-Target") != "AWSEvents.PutEvents":
		respond(w, failure{codeUnknownOperation, r.Header.Get("X-Amz-Target")})
	case err != nil:
		respond(w, failure{"SerializationException", err.Error()})
	case checkRequest(in.Entries) != "":
		respond(w, failure{CodeValidation, checkRequest(in.Entries)})
	default:
		out := s.put(in.Entries)
		if lose {
			panic(http.ErrAbortHandler) // closes the connection
		}
		respond(w, out)
	}
}

func respond(w http.ResponseWriter, out any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if f, failed := out.(failure); failed {
		status := http.StatusBadRequest
		if strings.HasPrefix(f.Code, "Internal") {
			status = http.StatusInternalServerError
		}
		w.WriteHeader(status)
	}
	_ = json.NewEncoder(w).Encode(out) // a client that is gone needs no answer
}

// checkRequest returns why the whole request is invalid, or "". A request is also invalid
// if no entry has detail, detail-type and source
// (https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsRequestEntry.html).
func checkRequest(entries []entry) string {
	if len(entries) < 1 || len(entries) > MaxEntries {
		return fmt.Sprintf("'entries' has %d members: want 1 to %d", len(entries), MaxEntries)
	}
	size := 0
	for _, e := range entries {
		size += e.size()
	}
	if size >= MaxSize {
		return "Total size of the entries in the request is over the limit."
	}
	if !slices.ContainsFunc(entries, entry.complete) {
		return "No entry has the members Detail, DetailType and Source."
	}
	return ""
}

// size returns the size by which EventBridge limits a request
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html#eb-putevent-size).
func (e entry) size() int {
	n := len(e.Source) + len(e.DetailType) + len(e.Detail)
	if e.Time != nil {
		n += 14
	}
	for _, r := range e.Resources {
		n += len(r)
	}
	return n
}

func (e entry) complete() bool { return e.Detail != "" && e.DetailType != "" && e.Source != "" }

// check returns the code and the message with which the entry is refused, or "".
func (e entry) check() (code, message string) {
	trimmed := bytes.TrimSpace([]byte(e.Detail))
	switch {
	case !e.complete():
		return CodeInvalidArgument, "Detail, DetailType and Source are required."
	case len([]rune(e.DetailType)) > maxDetailType:
		return CodeInvalidArgument, "DetailType is too long."
	case !json.Valid(trimmed) || trimmed[0] != '{':
		return CodeMalformedDetail, "Detail is malformed."
	case strings.HasPrefix(e.Source, "aws."):
		return CodeNotAuthorizedSource, "Not authorized for the source."
	}
	return "", ""
}

func (e entry) event() Event {
	event := Event{
		Bus: "default", Source: e.Source, DetailType: e.DetailType, Detail: json.RawMessage(e.Detail),
	}
	if e.EventBusName != "" {
		event.Bus = e.EventBusName
	}
	if e.Time != nil {
		event.Time = time.UnixMilli(int64(*e.Time*1000 + 0.5)).UTC()
	}
	return event
}

// put processes the entries in order. A refused entry does not stop the others.
func (s *Server) put(entries []entry) any {
	out := struct {
		FailedEntryCount int
		Entries          []result
	}{}
	for _, e := range entries {
		code, message := e.check()
		if code == "" && s.options.Refuse != nil {
			code, message = s.options.Refuse(e.event()), "on demand"
		}
		if code != "" {
			out.FailedEntryCount++
			out.Entries = append(out.Entries, result{ErrorCode: code, ErrorMessage: message})
			continue
		}
		out.Entries = append(out.Entries, result{EventID: s.accept(e.event())})
	}
	return out
}

// accept adds an event to the bus and returns its id.
func (s *Server) accept(e Event) (id string) {
	e.ID = fmt.Sprintf("00000000-0000-4000-8000-%012x", len(s.accepted)+len(s.dropped)+1)
	_, name, isARN := strings.Cut(e.Bus, ":event-bus/")
	if !isARN {
		name = e.Bus
	}
	if name == s.options.Bus || name == "default" {
		s.accepted = append(s.accepted, e)
		if s.options.Target != nil && name == s.options.Bus {
			s.options.Target(e)
		}
	} else {
		s.dropped = append(s.dropped, e)
	}
	return e.ID
}
