package watch

import (
	"encoding/json"
	"fmt"
	"strings"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// Hook adds the taps to the options of a system, before those that are there. Connect
// adds the one that needs the started system.
func (w *Watch) Hook(o *system.Options) {
	before, after := o.BeforeStripe, o.AfterStripe
	o.BeforeStripe = func(c stripetest.Call) {
		w.beforeStripe(c)
		if before != nil {
			before(c)
		}
	}
	o.AfterStripe = func(c stripetest.Call) {
		w.afterStripe(c)
		if after != nil {
			after(c)
		}
	}
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

// caller returns who makes a call about an order with a claim, or without one.
func (l *line) caller(owner string) string {
	if n, ok := l.owners[owner]; ok {
		return function(n)
	}
	return Others
}

// claims notes that the claim of a call belongs to the instance that began to process the
// order last and has no claim on it yet.
func (l *line) claims(owner string) {
	if _, known := l.owners[owner]; known || owner == "" {
		return
	}
	for _, n := range l.working {
		taken := false
		for _, by := range l.owners {
			taken = taken || by == n
		}
		if !taken {
			l.owners[owner] = n
			return
		}
	}
	if len(l.working) > 0 { // an instance that processes the order again
		l.owners[owner] = l.working[len(l.working)-1]
	}
}

func (w *Watch) beforeTable(asked write) {
	if asked.order == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.line(asked.order)
	w.touch(l)
	l.calls[AtTable]++
	if asked.step == Claim {
		l.claims(asked.owner)
	}
	if asked.step != "" && asked.owner != "" {
		w.step(l, asked.owner, asked.step)
	}
}

// step notes the step of the instance that has the claim.
func (w *Watch) step(l *line, owner string, s Step) {
	l.Step = s
	if in := w.instances[l.owners[owner]]; in != nil {
		in.steps[l.ID] = s
	}
}

func (w *Watch) afterTable(asked write, c dynamodbtest.Call) {
	if asked.order == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.line(asked.order)
	w.touch(l)
	l.calls[AtTable] = max(0, l.calls[AtTable]-1)
	w.dirty[l] = true
	e := Entry{
		Kind: Call, From: l.caller(asked.owner), To: DynamoDB, Step: asked.step,
		Text: tableText(asked, c.Operation), Request: asked.text,
	}
	var refused bool
	e.Answer, e.Response, refused = answer(c)
	switch {
	case c.Lost:
		e.Kind, e.Answer = Lost, "no answer"
	case l.undelivered:
		e.Kind, e.Answer, l.undelivered = Lost, e.Answer+notDelivered, false
	case refused:
		e.Kind = Refused
	}
	if asked.step != "" || e.Kind != Call {
		w.enter(l, e)
	}
}

// tableText names a call for people.
func tableText(asked write, operation string) string {
	switch {
	case asked.step == "":
		return operation
	case asked.step == Claim && operation == "TransactWriteItems":
		return "claim as a new order"
	}
	return string(asked.step)
}

func (w *Watch) beforeStripe(c stripetest.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.OrderID == "" {
		return
	}
	l := w.line(c.OrderID)
	w.touch(l)
	l.calls[AtStripe]++
	if n := l.atWork(); n > 0 {
		l.Step = stripeStep(c.Endpoint)
		if in := w.instances[n]; in != nil {
			in.steps[l.ID] = l.Step
		}
	}
}

// atWork returns the instance that claimed the order last and still processes it, or 0.
func (l *line) atWork() (latest int) {
	for _, n := range l.working {
		for _, by := range l.owners {
			if by == n {
				latest = n
			}
		}
	}
	return latest
}

func (w *Watch) afterStripe(c stripetest.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.OrderID == "" {
		return
	}
	l := w.line(c.OrderID)
	l.calls[AtStripe] = max(0, l.calls[AtStripe]-1)
	from := Others
	if n := l.atWork(); n > 0 {
		from = function(n)
	}
	e := Entry{
		Kind: Call, From: from, To: Stripe, Step: stripeStep(c.Endpoint), Text: stripeText(c),
		Answer: strings.TrimSpace(fmt.Sprintf("%d %s", c.Status, c.Result)), Request: stripeRequest(c),
		Response: "Request-Id: " + c.Request.String(),
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

func stripeText(c stripetest.Call) string {
	text := string(stripeStep(c.Endpoint))
	if c.Intent != "" {
		text += " " + c.Intent
	}
	return text
}

func stripeRequest(c stripetest.Call) string {
	text := c.Method + " " + c.Path
	if c.Key != "" {
		text += "\nIdempotency-Key: " + c.Key
	}
	return text
}

// published notes an event that the bus accepts.
func (w *Watch) published(e eventbridgetest.Event) {
	parsed, err := system.ParseBusEvent(e)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.line(string(parsed.OrderID))
	l.bus = append(l.bus, parsed)
	w.totals.Events++
	w.dirty[l] = true
	w.enter(l, Entry{
		Kind: Message, From: DynamoDB, To: EventBridge,
		Text: fmt.Sprintf("event %d: %s", parsed.Seq, e.DetailType),
	})
}

// delivered notes a webhook.
func (w *Watch) delivered(sent stripetest.Sent) {
	if sent.Event.Intent == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.totals.Webhooks++
	id := sent.Event.Intent.OrderID()
	if id == "" {
		return
	}
	l := w.line(id)
	l.Webhooks++
	e := Entry{
		Kind: Call, From: Stripe, To: Others, Text: "webhook " + sent.Event.Type,
		Answer: fmt.Sprint(sent.Status),
	}
	if sent.Status == 0 {
		e.Kind, e.Answer = Lost, "no answer"
	}
	w.enter(l, e)
}

// Write takes the log lines of the functions. It notes what became of each delivery.
func (w *Watch) Write(p []byte) (int, error) {
	for text := range strings.Lines(string(p)) {
		var l struct {
			system.Line

			Intent  string `json:"intent_id"`
			Message string `json:"message"`
		}
		if strings.Contains(text, Canary) || strings.Contains(text, system.PretendKey) {
			w.leaked()
		}
		if json.Unmarshal([]byte(text), &l) == nil && l.OrderID != "" {
			w.logLine(text, l.Line, l.Message, l.Intent)
		}
	}
	return len(p), nil
}

// Canary is part of every personal value of the orders that a visitor posts.
const Canary = "canary"

// leaked notes a log line with a personal value or the key, whatever it is about.
func (w *Watch) leaked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lights.leak == nil {
		w.lights.leak = []string{"leak: a log line has a personal value or the API key: see the functions' log"}
		w.say(Bad, "", w.lights.leak[0])
	}
}

// loggedBytes bounds what is kept of an order's log lines.
const loggedBytes = 1 << 14

func (w *Watch) logLine(text string, about system.Line, message, intent string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.line(about.OrderID)
	w.touch(l)
	if l.logged.Len() < loggedBytes {
		l.logged.WriteString(text)
	}
	if message != "order" || about.RefundID != "" {
		return
	}
	switch reason := order.Reason(about.Reason); {
	case reason == order.ReasonDuplicate:
		l.Duplicates++
		w.totals.Duplicates++
		l.Note = "duplicate acknowledged, nobody charged"
		w.say(Good, l.ID, l.ID+": a duplicate was acknowledged, nobody was charged")
	case about.Verdict == "park":
		l.Note = "parked: " + about.Reason
		w.say(Plain, l.ID, l.ID+": parked in the dead-letter queue: "+about.Reason)
	case reason == order.ReasonSettled:
		l.Note = settledNote(about, intent)
		w.say(Good, l.ID, l.ID+": "+l.Note)
	case l.settled():
		l.Note = "a later delivery changed nothing: " + about.Reason
		w.say(Good, l.ID, l.ID+": "+l.Note)
	default:
		l.Note = fmt.Sprintf("attempt %d ended: %s", about.Attempt, about.Reason)
		if about.Verdict == "redeliver" {
			l.Note += "; SQS delivers it again"
		}
		w.say(Plain, l.ID, fmt.Sprintf("%s: %s: %s", l.ID, about.Verdict, about.Reason))
	}
}

// settledNote says how an order was settled.
func settledNote(about system.Line, intent string) string {
	note := about.Status + " through " + intent
	if intent == "" {
		note = about.Status
	}
	if about.Attempt > 1 {
		note += fmt.Sprintf(", at attempt %d", about.Attempt)
	}
	return note
}
