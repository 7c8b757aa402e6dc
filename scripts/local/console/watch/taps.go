package watch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
)

// Hook adds the taps to the options of a system, before those that are there. Connect
// adds the one that needs the started system.
func (w *Watch) Hook(o *system.Options) {
	o.BeforeStripe, o.AfterStripe = both(w.beforeStripe, o.BeforeStripe), both(w.afterStripe, o.AfterStripe)
	refuse := o.RefuseEvent
	o.RefuseEvent = func(e eventbridgetest.Event) (code string) {
		if refuse != nil {
			code = refuse(e)
		}
		if code == "" {
			w.published(e)
		}
		return code
	}
	o.ObserveInstance, o.ObserveWebhook = w.instance, w.delivered
}

func both(first, second func(stripetest.Call)) func(stripetest.Call) {
	return func(c stripetest.Call) {
		first(c)
		if second != nil {
			second(c)
		}
	}
}

// Connect adds the tap of the table. before is called at each call with the order that it
// is about, or "", and the step of the order's protocol, or "". It may block.
func (w *Watch) Connect(s *system.System, before func(order string, step Step, c dynamodbtest.Call)) {
	s.Proxy.Before(func(c dynamodbtest.Call) {
		asked := parseWrite(c)
		w.beforeTable(asked)
		before(asked.order, asked.step, c)
	})
	s.Proxy.Observe(func(c dynamodbtest.Call) { w.afterTable(parseWrite(c), c) })
}

func (w *Watch) about(id string, change func(l *line)) {
	if id == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.line(id)
	w.touch(l)
	change(l)
}

func (w *Watch) beforeTable(asked write) {
	w.about(asked.order, func(l *line) {
		l.calls[AtTable]++
		if asked.step == Claim {
			l.claims(asked.owner)
		}
		if asked.step != "" && asked.owner != "" {
			w.step(l, l.owners[asked.owner], asked.step)
		}
	})
}

func (w *Watch) beforeStripe(c stripetest.Call) {
	w.about(c.OrderID, func(l *line) {
		l.calls[AtStripe]++
		if n := l.atWork(); n > 0 {
			w.step(l, n, stripeStep(c.Endpoint))
		}
	})
}

func (w *Watch) step(l *line, instance int, s Step) {
	l.Step = s
	if in := w.instances[instance]; in != nil {
		in.steps[l.ID] = s
	}
}

// claims notes that the claim of a call belongs to the instance that began to process the
// order first and has no claim on it yet, or processes it again.
func (l *line) claims(owner string) {
	if _, known := l.owners[owner]; known || owner == "" || len(l.working) == 0 {
		return
	}
	free := slices.IndexFunc(l.working, func(n int) bool { return !l.claimed(n) })
	if free < 0 {
		free = len(l.working) - 1
	}
	l.owners[owner] = l.working[free]
}

func (l *line) claimed(instance int) bool {
	return slices.Contains(slices.Collect(maps.Values(l.owners)), instance)
}

// atWork returns the instance that claimed the order last and still processes it, or 0.
func (l *line) atWork() int {
	for _, n := range slices.Backward(l.working) {
		if l.claimed(n) {
			return n
		}
	}
	return 0
}

func caller(instance int) string {
	if instance == 0 {
		return Others
	}
	return function(instance)
}

func (w *Watch) afterTable(asked write, c dynamodbtest.Call) {
	w.about(asked.order, func(l *line) {
		l.calls[AtTable] = max(0, l.calls[AtTable]-1)
		w.dirty[l] = true
		e := Entry{
			Kind: Call, From: caller(l.owners[asked.owner]), To: DynamoDB, Step: asked.step,
			Text: cmp.Or(string(asked.step), c.Operation), Request: asked.text,
		}
		if asked.step == Claim && c.Operation == "TransactWriteItems" {
			e.Text = "claim as a new order"
		}
		var refused bool
		e.Answer, e.Response, refused = answer(c)
		switch {
		case c.Lost:
			e.Kind, e.Answer = Lost, "no answer"
		case refused:
			e.Kind = Refused
		}
		if in := w.instances[l.owners[asked.owner]]; in != nil && in.State == Killed {
			e.undelivered()
		}
		if asked.step != "" || e.Kind != Call {
			w.enter(l, e)
		}
	})
}

func (w *Watch) afterStripe(c stripetest.Call) {
	w.about(c.OrderID, func(l *line) {
		l.calls[AtStripe] = max(0, l.calls[AtStripe]-1)
		step := stripeStep(c.Endpoint)
		e := Entry{
			Kind: Call, From: caller(l.atWork()), To: Stripe, Step: step,
			Text:    strings.TrimSpace(string(step) + " " + c.Intent),
			Answer:  strings.TrimSpace(fmt.Sprintf("%d %s", c.Status, c.Result)),
			Request: c.Method + " " + c.Path, Response: "Request-Id: " + c.Request.String(),
		}
		if c.Key != "" {
			e.Request += "\nIdempotency-Key: " + c.Key
		}
		if c.Replayed {
			e.Answer += ", replayed"
		}
		switch {
		case c.Lost && c.Status == 0:
			e.Kind, e.Answer = Lost, "the request never arrived"
		case c.Lost:
			e.Kind, e.Answer = Lost, e.Answer+", and the answer is lost"
		case c.Status >= 400:
			e.Kind = Refused
		}
		w.enter(l, e)
	})
}

// stripeStep returns the step of the protocol that makes a call, or the call's name.
func stripeStep(e stripetest.Endpoint) Step {
	switch e { //nolint:exhaustive // the others are not part of an order's protocol
	case stripetest.Create:
		return Prepare
	case stripetest.Confirm:
		return Confirm
	case stripetest.Read:
		return Read
	case stripetest.List, stripetest.Search:
		return Find
	}
	return Step(strings.ReplaceAll(string(e), "_", " "))
}

func (w *Watch) published(e eventbridgetest.Event) {
	parsed, err := system.ParseBusEvent(e)
	if err != nil {
		return
	}
	w.about(string(parsed.OrderID), func(l *line) {
		l.books.Bus = append(l.books.Bus, parsed)
		w.totals.Events++
		w.dirty[l] = true
		text := fmt.Sprintf("event %d: %s", parsed.Seq, e.DetailType)
		w.enter(l, Entry{Kind: Message, From: DynamoDB, To: EventBridge, Text: text})
	})
}

func (w *Watch) delivered(sent stripetest.Sent) {
	if sent.Event.Intent == nil {
		return
	}
	w.about(sent.Event.Intent.OrderID(), func(l *line) {
		w.totals.Webhooks++
		l.Webhooks++
		e := Entry{
			Kind: Call, From: Stripe, To: Others, Text: "webhook " + sent.Event.Type, Answer: fmt.Sprint(sent.Status),
		}
		if sent.Status == 0 {
			e.Kind, e.Answer = Lost, "no answer"
		}
		w.enter(l, e)
	})
}

// Canary is part of every personal value of the orders that a visitor posts.
const Canary = "canary"

const loggedBytes = 1 << 14

type logged struct {
	invariants.Line

	Intent string `json:"intent_id"`
}

// Write takes the log lines of the functions. It notes what became of each delivery.
func (w *Watch) Write(p []byte) (int, error) {
	for text := range strings.Lines(string(p)) {
		if strings.Contains(text, Canary) || strings.Contains(text, system.PretendKey) {
			w.leaked()
		}
		var log logged
		if json.Unmarshal([]byte(text), &log) != nil {
			continue
		}
		w.about(log.OrderID, func(l *line) {
			if l.logged.Len() < loggedBytes {
				l.logged.WriteString(text)
			}
			if log.Message == "order" && log.RefundID == "" {
				w.processed(l, log)
			}
		})
	}
	return len(p), nil
}

// leaked notes a log line with a personal value or the key, whatever it is about.
func (w *Watch) leaked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lights.broken[leakLight] == nil {
		const leak = "leak: a log line has a personal value or the API key: see the functions' log"
		w.lights.broken[leakLight] = []string{leak}
		w.say(Bad, leak)
	}
}

func (w *Watch) processed(l *line, log logged) {
	tone, said := Good, ""
	switch reason := order.Reason(log.Reason); {
	case reason == order.ReasonDuplicate:
		l.Duplicates++
		w.totals.Duplicates++
		l.Note = "duplicate acknowledged, nobody charged"
	case log.Verdict == "park":
		tone, l.Note = Plain, "parked: "+log.Reason
	case reason == order.ReasonSettled:
		l.Note = log.Status
		if log.Intent != "" {
			l.Note += " through " + log.Intent
		}
		if log.Attempt > 1 {
			l.Note += fmt.Sprintf(", at attempt %d", log.Attempt)
		}
	case l.settled():
		l.Note = "a later delivery changed nothing: " + log.Reason
	default:
		l.Note = fmt.Sprintf("attempt %d ended: %s", log.Attempt, log.Reason)
		tone, said = Plain, log.Verdict+": "+log.Reason
		if log.Verdict == "redeliver" {
			l.Note += "; SQS delivers it again"
		}
	}
	w.say(tone, l.ID+": "+cmp.Or(said, l.Note))
}
