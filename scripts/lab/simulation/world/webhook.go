package world

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/webhook"
	"orderonce/domain/order"
	"orderonce/domain/settle"
	"orderonce/scripts/lab/simulation/oracle"
)

const endpointSecret = "whsec_pretend"

// hook is an event on its way to the webhook endpoint. Stripe sends it until it gets a
// 2xx, for three days, and may send it once more after that.
type hook struct {
	event    stripetest.Event
	created  time.Time
	due      time.Time // of the next delivery
	failed   int       // deliveries without a 2xx
	sent     int       // deliveries that began
	sending  int       // deliveries that have not ended
	over     bool      // it was answered, lost or given up
	repeated bool      // it was sent once more than needed
}

func (h *hook) waits() bool { return !h.over && h.sending == 0 }

// lateness is how long an event may be late: longer than a lease and shorter than the
// visibility timeout, so that it meets a worker that lost its claim, and in adversarial
// worlds longer than anything else.
func (w *World) lateness() []time.Duration {
	if w.setup.Adversarial {
		return []time.Duration{2 * oracle.FunctionTime, 2 * time.Hour, 2 * oracle.Day}
	}
	return []time.Duration{2 * oracle.FunctionTime}
}

func (w *World) noticeEvents() {
	if !w.setup.Webhooks {
		return
	}
	for _, e := range w.services.stripe.Events()[len(w.hooks):] {
		w.hooks = append(w.hooks, &hook{event: e, created: w.Now, due: w.Now})
	}
}

func (w *World) nextEvent() (n int, at time.Time, waits bool) {
	for i, h := range w.hooks {
		if h.waits() && (!waits || h.due.Before(at)) {
			n, at, waits = i, h.due, true
		}
	}
	if at.Before(w.Now) {
		at = w.Now
	}
	return n, at, waits
}

func (w *World) events(options []option, first option) []option {
	room := len(w.Actors) <= w.setup.workers()
	for i, h := range w.hooks {
		switch {
		case first.kind == event && first.n == i:
			for d := range w.lateness() {
				if h.sent == 0 {
					options = append(options, option{kind: eventLate, n: i, late: d})
				}
			}
			options = append(options, option{kind: eventLost, n: i})
		case h.waits() && room && (!h.due.After(w.Now) || w.setup.Adversarial):
			options = append(options, option{kind: event, n: i, at: w.Now})
		case h.sent > 0 && !h.repeated && room:
			options = append(options, option{kind: eventAgain, n: i, at: w.Now})
		}
	}
	return options
}

func (w *World) delayEvent(o option) {
	h, d := w.hooks[o.n], w.lateness()[o.late]
	h.due = w.Now.Add(d)
	w.happens("Stripe", fmt.Sprintf("sends %s only after %v", h, d))
}

// loseEvent lets Stripe never send an event, or never again. An operator asks instead.
func (w *World) loseEvent(o option) {
	h := w.hooks[o.n]
	h.over = true
	w.happens("Stripe", fmt.Sprintf("loses %s", h))
	w.untold(h)
}

// untold makes an operator ask about the order of an event that never arrived.
func (w *World) untold(h *hook) {
	if x := w.incidents.of(order.ID(h.event.Intent.OrderID())); x != nil && w.oracle.Ours(h.event.Intent.ID) {
		x.changed = true
	}
}

func (w *World) sendEvent(o option) {
	if o.kind == eventAgain || w.Current != nil {
		w.disturb()
	}
	h := w.hooks[o.n]
	h.repeated = h.repeated || o.kind == eventAgain
	w.Now = o.at
	var got answer
	again := ""
	if h.sent > 0 {
		again = "again"
	}
	h.sent++
	h.sending++
	w.start(task{
		kind: event, of: h.event.ID(),
		run:   func(k *Worker) { got = k.receiveEvent(h) },
		ended: func() { w.answered(h, got) },
	}, "Stripe", fmt.Sprintf("sends %s to webhook", h), again)
}

// mismatch is the endpoint's result for an event that disagrees with the row.
const mismatch = "mismatch"

// answer is what Stripe gets from the endpoint. The zero answer is none.
type answer struct {
	status int
	result string
}

// answered records how a delivery of an event ended.
//
// Two events that the endpoint accepts need an operator, because no run of the reconciler
// looks at a declined order. One is about an order under a lease, which is left to its
// worker; a worker that read "declined" just before the customer paid writes what was
// true then. The other disagrees with the row, and a metric asks for a person.
func (w *World) answered(h *hook, a answer) {
	h.sending--
	switch {
	case a.status/100 == 2:
		h.over = true
		if a.result == string(settle.HintLeased) || a.result == mismatch {
			w.untold(h)
		}
	case !h.over:
		h.failed++
		due, again := stripetest.Retry(h.created, w.Now, h.failed)
		h.due, h.over = due, !again
		if !again {
			w.untold(h)
		}
	}
}

// receiveEvent does what the deployed endpoint does with a request, and returns the
// answer if it arrives.
func (k *Worker) receiveEvent(h *hook) (got answer) {
	body := h.event.Body(h.created)
	r := &http.Request{
		Method: http.MethodPost, Body: io.NopCloser(bytes.NewReader(body)),
		Header: http.Header{"Stripe-Signature": {stripetest.Signature(body, k.world.Now, endpointSecret)}},
	}
	result, recorded := "", httptest.NewRecorder()
	follower := k.follower()
	endpoint := webhook.Endpoint{
		Secrets: []string{endpointSecret}, Follow: follower.Follow, Now: k.Now,
		Log: slog.New(slog.DiscardHandler), Count: func(r string) { result = r },
	}
	endpoint.ServeHTTP(recorded, r)
	c := oracle.Call{Name: oracle.Answer, Subject: strconv.Itoa(recorded.Code), Detail: result}
	_ = k.call(c, func() (response, error) {
		got = answer{recorded.Code, result}
		return ok(), nil
	})
	return got
}

func (k *Worker) follower() settle.Follower {
	return settle.Follower{Store: store{k}, Payments: payments{k}, Scope: scope, Now: k.Now}
}

// String returns the event as a history shows it.
func (h *hook) String() string {
	return h.event.ID() + ", " + h.event.Type + " of " + h.event.Intent.ID
}

func appendHooks(b []byte, all []*hook) []byte {
	for _, h := range all {
		b = appendNumbers(b, h.due.UnixNano(), h.created.UnixNano(), int64(h.failed), int64(h.sent),
			int64(h.sending), bit(h.over)<<1|bit(h.repeated))
	}
	return b
}
