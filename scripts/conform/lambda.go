package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"orderonce/adapters/sqs/sqstest"
)

// Lambda has a function that does as the bodies of its messages say, which are JSON with
// a member "do":
//
//	fail   the function reports the message in batchItemFailures
//	throw  the function fails
//	text   its response is the member "text", whatever else the batch says; a runtime that
//	       always responds with JSON parses it
//	most   as fail, if the event has more records than the member "most"
//	want   as fail, unless the record has what the member "want" says of it: a JSON object
//	       of which every member is equal in the record, and in the objects inside
//
// The first message that says throw or text decides for its batch. Others succeed.
type Lambda interface {
	// Connect maps a queue to the function, with batches of up to size messages and
	// ReportBatchItemFailures, until disconnect is called. It returns when the mapping is
	// enabled. The function's timeout is 3 seconds.
	Connect(ctx context.Context, queueARN string, size int) (disconnect func(context.Context) error, err error)
}

type command struct {
	Do   string         `json:"do"`
	Text string         `json:"text,omitempty"`
	Most int            `json:"most,omitempty"`
	Want map[string]any `json:"want,omitempty"`
}

var errThrown = errors.New("a message said throw")

// obey is the function.
func obey(_ context.Context, payload []byte) ([]byte, error) {
	var event events.SQSEvent
	var raw struct{ Records []map[string]any }
	if err := errors.Join(json.Unmarshal(payload, &event), json.Unmarshal(payload, &raw)); err != nil {
		return nil, err
	}
	failures := []events.SQSBatchItemFailure{}
	for i, r := range event.Records {
		var o command
		if err := json.Unmarshal([]byte(r.Body), &o); err != nil {
			return nil, err
		}
		switch {
		case o.Do == "throw":
			return nil, errThrown
		case o.Do == "text":
			return []byte(o.Text), nil
		case o.Do == "fail", o.Do == "most" && len(event.Records) > o.Most, o.Do == "want" && !has(raw.Records[i], o.Want):
			failures = append(failures, events.SQSBatchItemFailure{ItemIdentifier: r.MessageId})
		}
	}
	return json.Marshal(events.SQSEventResponse{BatchItemFailures: failures})
}

// has reports whether every member of want is equal in got, and in the objects inside.
func has(got, want map[string]any) bool {
	for name, value := range want {
		inside, is := value.(map[string]any)
		if object, _ := got[name].(map[string]any); is && !has(object, inside) || !is && got[name] != value {
			return false
		}
	}
	return true
}

// doubleLambda runs the function in this process.
type doubleLambda struct {
	server *sqstest.Server
	settle []func() // waits until the mapping of a queue has nothing to do
}

// Connect implements Lambda.
func (l *doubleLambda) Connect(ctx context.Context, queueARN string, size int) (func(context.Context) error, error) {
	name := queueARN[strings.LastIndex(queueARN, ":")+1:]
	mapping := &sqstest.Mapping{Server: l.server, Queue: name, BatchSize: size, Concurrency: 2, Invoke: obey}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	var err error
	running.Go(func() { err = mapping.Run(ctx) })
	l.settle = append(l.settle, func() { _ = l.server.Settled(ctx, name) }) // or until it is disconnected
	return func(context.Context) error {
		stop()
		running.Wait()
		return err
	}, nil
}

// moved runs what the clock lets the mappings do.
func (l *doubleLambda) moved() {
	l.server.Wake()
	for _, settle := range l.settle {
		settle()
	}
}

func doubleFunction(ctx context.Context) (World, error) {
	w, err := doubleSQS(ctx)
	if err == nil {
		l := &doubleLambda{server: w.Double.(*sqstest.Server)}
		w.Lambda, w.moved = l, l.moved
	}
	return w, err
}

// lambdaRule returns a rule: of these messages, those at the places of dead are in the
// dead-letter queue after two receives, and the others are deleted.
func lambdaRule(id, says string, size int, all []command, dead ...int) Rule {
	return Rule{ID: "lambda/" + id, Says: says, Source: partial, Check: func(r *Run) {
		s := newSQSRun(r)
		q, letters := s.mapped(size, all...)
		var want []string
		for _, i := range dead {
			want = append(want, all[i].text()+":3")
		}
		for range 4 {
			s.Pass(mapped)
		}
		s.take(q)
		s.take(letters, want...)
		s.take(letters)
	}}
}

const partial = "Lambda developer guide, Implementing partial batch responses, Success and failure conditions"

// mapped is the visibility timeout of the queues.
const mapped = 10 * time.Second

// mapped creates a queue with messages and its dead-letter queue, and connects it.
func (s sqsRun) mapped(size int, all ...command) (queue, dead string) {
	if s.Lambda == nil {
		s.Must(missing{Lacking, "there is no Lambda at this endpoint"})
	}
	queue, dead = s.pair("q", 2, timeout, fmt.Sprint(mapped.Seconds()))
	for _, o := range all {
		s.Must(s.send(queue, o.text(), with(1, "x")))
	}
	disconnect, err := s.Lambda.Connect(s.Context, s.arn(queue), size)
	s.Must(err)
	s.Defer(disconnect)
	return queue, dead
}

func (o command) text() string {
	text, _ := json.Marshal(o) // strings and numbers
	return string(text)
}

func lambdaRules() []Rule {
	text := func(s string) []command { return slices.Repeat([]command{{Do: "text", Text: s}}, 3) }
	failure := func(item string) []command { return text(`{"batchItemFailures":[` + item + `]}`) }
	return []Rule{
		lambdaRule("success", "an empty list of batchItemFailures deletes the batch", 10, failure("")),
		lambdaRule("null", "a response without batchItemFailures deletes the batch", 10, text("{}")),
		lambdaRule("failure", "a reported message comes again, and the others are deleted", 10,
			[]command{{Do: "fail"}, {}, {}, {Do: "fail"}}, 0, 3),
		lambdaRule("error", "an error of the function fails the whole batch", 10,
			slices.Repeat([]command{{Do: "throw"}}, 3), 0, 1, 2),
		lambdaRule("unknown", "an itemIdentifier that is not of the batch fails the whole batch", 10,
			failure(`{"itemIdentifier":"x"}`), 0, 1, 2),
		lambdaRule("empty", "an empty itemIdentifier fails the whole batch", 10,
			failure(`{"itemIdentifier":""}`), 0, 1, 2),
		offline("a function in Node.js responds with JSON", lambdaRule("invalid", "a response that is not JSON fails the whole batch",
			10, text("{"), 0, 1, 2)),
		lambdaRule("batch", "an event has no more messages than the batch size", 2, slices.Repeat([]command{{Do: "most", Most: 2}}, 5)),
		lambdaRule("record", "a record has the attributes of its message, and their digest", 10,
			[]command{{Do: "want", Want: map[string]any{
				"eventSource": "aws:sqs", "md5OfMessageAttributes": "041c6ae9dc0892b50e0e3098a8f6addb",
				"attributes":        map[string]any{"ApproximateReceiveCount": "1"},
				"messageAttributes": map[string]any{"a0": map[string]any{"stringValue": "x", "dataType": "String"}},
			}}}),
		{
			ID: "lambda/again", Says: "a message of a failed batch comes again after the visibility timeout, and not before",
			Source: sqsGuide + "Amazon SQS visibility timeout", Check: func(r *Run) {
				s := newSQSRun(r)
				_, dead := s.mapped(10, command{Do: "throw"})
				s.Pass(mapped + mapped/2)
				s.take(dead)
				s.Pass(mapped)
				s.Pass(mapped)
				s.take(dead, command{Do: "throw"}.text()+":3")
			},
		},
	}
}
