package watch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
)

// endedShown is how long an instance that has ended is shown.
const endedShown = 4 * time.Second

type instance struct {
	Instance

	orders []*line // of the running invocation, each once
	steps  map[string]Step
	ended  time.Time
}

func (w *Watch) instance(e lambdatest.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := w.instances[e.Instance]
	if in == nil {
		version, broken := versionOf(e.Binary)
		in = &instance{
			Instance: Instance{N: e.Instance, State: Idle, Version: version, Broken: broken}, steps: map[string]Step{},
		}
		w.instances[e.Instance] = in
	}
	switch e.Change {
	case lambdatest.Started:
	case lambdatest.Invoked:
		in.State = Working
		w.invoked(in, e.Payload)
	case lambdatest.Answered:
		w.answered(in, e.Err)
	case lambdatest.Frozen:
		w.freeze(in, Frozen, "frozen")
	case lambdatest.Thawed:
		w.freeze(in, Working, "goes on")
	case lambdatest.Killed:
		w.ended(in, Killed, "killed")
	case lambdatest.TimedOut:
		w.ended(in, TimedOut, "ended by Lambda at its timeout")
	case lambdatest.Exited:
		w.ended(in, Killed, "ended by itself")
	case lambdatest.Replaced, lambdatest.Closed:
		w.ended(in, Ended, "ended")
	}
}

// versionOf returns the version and the missing guard in the path of a program, such as
// order-v2 or order-v3-without-bind.
func versionOf(binary string) (version, broken string) {
	name := strings.TrimPrefix(filepath.Base(binary), "order")
	version, broken, _ = strings.Cut(strings.TrimPrefix(name, "-"), "-without-")
	return cmp.Or(version, "v1"), broken
}

func (w *Watch) invoked(in *instance, payload []byte) {
	var event events.SQSEvent
	if json.Unmarshal(payload, &event) != nil {
		return
	}
	for _, r := range event.Records {
		first := r.MessageId
		if a, ok := r.MessageAttributes[sqs.AttrFirstMessageID]; ok && a.StringValue != nil {
			first = *a.StringValue
		}
		l := w.posted(r.Body, first)
		l.Deliveries++
		if in.Broken != "" {
			l.missing = w.shown.Control.Missing
		}
		w.totals.Deliveries++
		if !slices.Contains(in.orders, l) {
			in.orders, l.working = append(in.orders, l), append(l.working, in.N)
			maps.DeleteFunc(l.owners, func(_ string, by int) bool { return by == in.N }) // its earlier claims are over
			l.Step = ""
			delete(in.steps, l.ID)
		}
		received, _ := strconv.Atoi(r.Attributes["ApproximateReceiveCount"])
		w.enter(l, Entry{
			Kind: Message, From: SQS, To: function(in.N),
			Text: fmt.Sprintf("delivery %d of message %s", received, tail(r.MessageId)),
		})
	}
}

func tail(id string) string { return "…" + id[max(0, len(id)-4):] }

// posted returns the order of a message, and notes the message the first time.
func (w *Watch) posted(body, first string) *line {
	l := w.lineOf(body)
	known := func(p invariants.Message) bool { return p.ID == first }
	if !slices.ContainsFunc(l.books.Messages, known) {
		l.books.Messages = append(l.books.Messages, invariants.NewMessage(w.decoder, body, first))
		w.touch(l)
	}
	return l
}

// lineOf returns the order that a message is about, also if the message is invalid.
func (w *Watch) lineOf(body string) *line {
	p := invariants.NewMessage(w.decoder, body, "")
	id := p.OrderID()
	if p.Invalid != nil {
		var claims struct{ OrderID order.ID }
		_ = json.Unmarshal([]byte(body), &claims) // what is not JSON names no order
		if order.ValidID(string(claims.OrderID)) {
			id = claims.OrderID
		}
	}
	return w.line(string(id))
}

func (w *Watch) answered(in *instance, err error) {
	for _, l := range in.orders {
		if err != nil {
			w.enter(l, Entry{Kind: Refused, From: function(in.N), To: SQS, Text: "the function failed"})
		}
		w.leave(in, l)
	}
	in.State, in.orders = Idle, nil
}

func (w *Watch) leave(in *instance, l *line) {
	l.working = slices.DeleteFunc(l.working, func(n int) bool { return n == in.N })
	delete(in.steps, l.ID)
	w.touch(l)
}

func (w *Watch) freeze(in *instance, to State, what string) {
	in.State = to
	for _, l := range in.orders {
		w.enter(l, Entry{Kind: Note, From: function(in.N), Text: what})
	}
	w.say(Attack, fmt.Sprintf("%s %s", function(in.N), what))
}

func (w *Watch) ended(in *instance, state State, what string) {
	in.State, in.ended = state, w.now()
	if state == Killed && len(in.orders) > 0 {
		w.totals.Kills++
	}
	for _, l := range in.orders {
		step := in.steps[l.ID]
		n := len(l.entries) - 1
		if state == Killed && n >= 0 && l.entries[n].To == Stripe && l.calls[AtTable]+l.calls[AtStripe] == 0 {
			l.entries[n].undelivered()
		}
		l.Note = what
		if step != "" {
			l.Note += " at " + string(step)
		}
		w.enter(l, Entry{Kind: Death, From: function(in.N), Step: step, Text: what})
		w.say(Plain, fmt.Sprintf("%s: %s was %s", l.ID, function(in.N), l.Note))
		w.leave(in, l)
	}
	in.orders = nil
}

// undelivered notes that the answer to a call did not reach its caller, which was killed
// between the effect and the answer.
func (e *Entry) undelivered() {
	if e.Kind == Call {
		e.Kind, e.Answer = Lost, e.Answer+", not delivered"
	}
}

// instancesNow returns the instances, and forgets those that ended a while ago.
func (w *Watch) instancesNow() []Instance {
	shown := []Instance{}
	for _, n := range slices.Sorted(maps.Keys(w.instances)) {
		in := w.instances[n]
		if !in.ended.IsZero() && w.now().Sub(in.ended) > endedShown {
			delete(w.instances, n)
			continue
		}
		i := in.Instance
		for _, l := range in.orders {
			i.Work = append(i.Work, Work{Order: l.ID, Step: in.steps[l.ID]})
		}
		shown = append(shown, i)
	}
	return shown
}
