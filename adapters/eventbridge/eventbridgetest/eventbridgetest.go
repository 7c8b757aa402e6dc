// Package eventbridgetest is a pretend EventBridge with one event bus. It serves
// PutEvents over HTTP with the documented failures, and keeps what it accepted. It has
// one target without a rule. It checks no signatures.
//
// Source, unless noted otherwise:
// https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html.
package eventbridgetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"orderonce/adapters/internal/awstest"
)

// The limits of a request.
const (
	maxEntries = 10
	maxSize    = 1 << 20 // less than that, of all entries
)

// Codes of failed requests and of refused entries.
const (
	CodeInternal        = "InternalFailure"
	CodeThrottling      = "ThrottlingException"
	CodeMalformedDetail = "MalformedDetail"
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
	*awstest.Server

	options Options

	mu       sync.Mutex
	accepted []Event
	puts     int // events so far, also those of other buses
}

// Serve starts a server on a free port of 127.0.0.1. Close ends it.
func Serve(o Options) (s *Server, err error) {
	s = &Server{options: o}
	s.Server, err = awstest.Serve(s.serve)
	return s, err
}

// Archive returns the events that the bus accepted, in the order of their acceptance.
func (s *Server) Archive() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.accepted)
}

// Fail makes the next times requests fail with a code, without an effect.
func (s *Server) Fail(code string, times int) {
	s.Server.Fail(slices.Repeat([]awstest.Fault{{Kind: awstest.Refuse, Code: code}}, times)...)
}

type entry struct {
	Detail, DetailType, EventBusName, Source string

	Time *float64 // seconds since 1970
}

type result struct {
	EventID      string `json:"EventId,omitempty"`
	ErrorCode    string `json:",omitempty"`
	ErrorMessage string `json:",omitempty"`
}

func (s *Server) serve(_ int, fault awstest.Fault, r *http.Request) awstest.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	var in struct{ Entries []entry }
	err := json.NewDecoder(r.Body).Decode(&in)
	switch {
	case fault.Kind == awstest.Refuse:
		return failure(fault.Code, "on demand")
	case r.Header.Get("X-Amz-Target") != "AWSEvents.PutEvents":
		return failure("UnknownOperationException", r.Header.Get("X-Amz-Target"))
	case err != nil:
		return failure("SerializationException", err.Error())
	case len(in.Entries) < 1 || len(in.Entries) > maxEntries:
		return failure("ValidationException", fmt.Sprintf("%d entries: want 1 to %d", len(in.Entries), maxEntries))
	}
	size := 0
	for _, e := range in.Entries {
		size += len(e.Source) + len(e.DetailType) + len(e.Detail)
	}
	if size >= maxSize {
		return failure("ValidationException", fmt.Sprintf("%d bytes: want less than %d", size, maxSize))
	}
	return respond(http.StatusOK, s.put(in.Entries))
}

// failure is the error of a whole request.
func failure(code, message string) awstest.Response {
	status := http.StatusBadRequest
	if strings.HasPrefix(code, "Internal") {
		status = http.StatusInternalServerError
	}
	return respond(status, map[string]string{"__type": code, "message": message})
}

func respond(status int, out any) awstest.Response {
	body, _ := json.Marshal(out) // strings, numbers and lists of them always encode
	header := http.Header{"Content-Type": {"application/x-amz-json-1.1"}}
	return awstest.Response{Status: status, Header: header, Body: body}
}

// check returns the code with which the entry is refused, or "".
func (e entry) check() (code string) {
	detail := strings.TrimSpace(e.Detail)
	switch {
	case e.Detail == "", e.DetailType == "", e.Source == "":
		return "InvalidArgument"
	case !json.Valid([]byte(detail)) || detail[0] != '{':
		return CodeMalformedDetail
	}
	return ""
}

func (e entry) event() Event {
	event := Event{
		Bus: cmp.Or(e.EventBusName, "default"), Source: e.Source, DetailType: e.DetailType,
		Detail: json.RawMessage(e.Detail),
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
		code := e.check()
		if code == "" && s.options.Refuse != nil {
			code = s.options.Refuse(e.event())
		}
		if code != "" {
			out.FailedEntryCount++
			out.Entries = append(out.Entries, result{ErrorCode: code, ErrorMessage: "refused by the double"})
			continue
		}
		out.Entries = append(out.Entries, result{EventID: s.accept(e.event())})
	}
	return out
}

// accept adds an event to the bus and returns its id. One for a bus that does not exist
// is dropped, with the same response
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html).
func (s *Server) accept(e Event) (id string) {
	s.puts++
	e.ID = fmt.Sprintf("00000000-0000-4000-8000-%012x", s.puts)
	_, name, _ := strings.Cut(e.Bus, ":event-bus/")
	name = cmp.Or(name, e.Bus)
	if name == s.options.Bus || name == "default" {
		s.accepted = append(s.accepted, e)
	}
	if s.options.Target != nil && name == s.options.Bus {
		s.options.Target(e)
	}
	return e.ID
}
