// Package webhook is the endpoint of Stripe's webhooks: it verifies and parses an event,
// and says at which order to look. It sends nothing to Stripe.
package webhook

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/settle"
)

// MaxBody is the largest body of a webhook request. Stripe's events are far smaller.
const MaxBody = 256 << 10

// rowLate is how long a missing row is a reason for Stripe to send an event again. An
// older order has lost its row, by a restore or an erasure.
const rowLate = time.Hour

// Endpoint is the endpoint of Stripe's webhooks. An event is a hint to look at an order,
// so duplicates, old events and events out of order do no harm.
//
// A 5xx makes Stripe send the event again, for up to three days, and disable an endpoint
// that never succeeds (docs.stripe.com/webhooks). So it is only for what another delivery
// can mend.
type Endpoint struct {
	Secrets []string // of the endpoint; two while one is rolled
	Follow  func(context.Context, settle.Hint) (settle.Followed, order.Record, error)
	Now     func() time.Time
	Log     *slog.Logger
	Count   func(result string) // of each request
}

// The results of a request, beside those of settle.Follow. Each is a value of the metric
// Webhooks.
const (
	resultTooLarge    = "too_large"         // 413: the body has more than MaxBody bytes
	resultUnsigned    = "invalid_signature" // 400
	resultNotAnEvent  = "not_an_event"      // 400
	resultIgnored     = "ignored"           // 200: an event of another type, or without a PaymentIntent
	resultRowNotYet   = "row_not_yet"       // 503: no row, and the event is younger than an hour
	resultRowMissing  = "row_missing"       // 200: no row, and the event is older
	resultMismatch    = "mismatch"          // 200: the row and Stripe disagree; a person must look
	resultUnavailable = "unavailable"       // 503: the table or Stripe did not answer
	resultUnreadable  = "unreadable"        // 400: the body ended early
)

// response is the response to a request, and what is reported of it.
type response struct {
	status int
	result string
	err    error
	record order.Record // of the order, if it was loaded
}

// ServeHTTP verifies, parses and follows an event. The response has no body: Stripe shows
// it in the Dashboard, and a forger learns nothing from it.
func (h *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, out := h.receive(r)
	hint := e.hint()
	switch {
	case out.status != 0:
	case hint.Intent == "":
		out = response{status: http.StatusOK, result: resultIgnored}
	default:
		followed, record, err := h.Follow(r.Context(), hint)
		out = h.responseFor(e, followed, err)
		out.record = record
	}
	h.Count(out.result)
	level := slog.LevelInfo
	if out.err != nil {
		level = slog.LevelWarn
	}
	h.Log.LogAttrs(r.Context(), level, "webhook",
		slog.String("event_id", e.ID), slog.String("event_type", e.Type),
		slog.String("order_id", string(cmp.Or(out.record.OrderID, hint.OrderID))),
		slog.String("intent_id", string(hint.Intent)), slog.String("trace_id", out.record.Trace.ID()),
		slog.String("result", out.result), slog.Int("status", out.status), slog.Any("error", out.err))
	w.WriteHeader(out.status)
}

// receive reads the event of a request. The response is zero if the event is Stripe's.
func (h *Endpoint) receive(r *http.Request) (event, response) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, MaxBody))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return event{}, response{status: http.StatusRequestEntityTooLarge, result: resultTooLarge, err: err}
	}
	if err != nil {
		return event{}, response{status: http.StatusBadRequest, result: resultUnreadable, err: err}
	}
	if err := verify(body, r.Header.Get("Stripe-Signature"), h.Secrets, h.Now()); err != nil {
		return event{}, response{status: http.StatusBadRequest, result: resultUnsigned, err: err}
	}
	e, err := parse(body)
	if err != nil {
		return event{}, response{status: http.StatusBadRequest, result: resultNotAnEvent, err: err}
	}
	return e, response{}
}

func (h *Endpoint) responseFor(e event, followed settle.Followed, err error) response {
	_, mismatch := errors.AsType[*order.MismatchError](err)
	_, transition := errors.AsType[*order.TransitionError](err)
	switch {
	case err == nil:
		return response{status: http.StatusOK, result: string(followed)}
	case mismatch || transition:
		return response{status: http.StatusOK, result: resultMismatch, err: err}
	case !errors.Is(err, order.ErrNotFound):
		return response{status: http.StatusServiceUnavailable, result: resultUnavailable, err: err}
	case h.Now().Sub(e.created()) < rowLate:
		return response{status: http.StatusServiceUnavailable, result: resultRowNotYet, err: err}
	}
	return response{status: http.StatusOK, result: resultRowMissing, err: err}
}
