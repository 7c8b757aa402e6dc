// Package httpapi serves orders over HTTP: PUT /orders/{orderId}, POST /orders and GET
// /orders/{orderId}. It reads requests, calls package intake and writes responses; errors
// are problem details (RFC 9457). It does not know what is in an order, where a caller's
// identity comes from, and how a request reaches the handler.
//
// The key of a request is its business key: the client's own order id, or the caller's
// Idempotency-Key. API Gateway's request id, and every other id of a transport, is not
// one: a client that repeats a request gets a new one.
package httpapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"orderonce/adapters/internal/strictjson"
	"orderonce/domain/intake"
	"orderonce/domain/order"
)

// The errors of Options.Caller, and the last one of Accept.
var (
	ErrUnauthenticated = errors.New("no authenticated caller")
	ErrForbidden       = errors.New("token without the claim that names its owner")
	ErrPayer           = errors.New("payment.customer is not the one that the token names")
)

// Accept accepts an order of a caller. It may return ErrPayer.
type Accept func(context.Context, order.Order, intake.Caller, order.Trace) (intake.View, error)

// Options are what a Handler calls.
type Options struct {
	Put  Accept // of a client's own order id
	Post Accept // of an id that is intake.IDFor of the caller
	Get  func(context.Context, order.ID, intake.Caller) (intake.View, error)
	// Decode returns the order in a body. id is what its id must be. An
	// *order.InvalidError lists problems of fields, strictjson.ErrSyntax is a body that is
	// not JSON; any other error is one of the whole body. They are shown to the client.
	Decode func(body, id string) (order.Order, error)
	// Caller returns who sent the request of a context, ErrUnauthenticated or
	// ErrForbidden.
	Caller func(context.Context) (intake.Caller, error)
	Log    *slog.Logger
	Count  func(result string) // of each request
}

// Handler is the entrance of orders by HTTP.
type Handler struct {
	options Options
	mux     *http.ServeMux
}

// New returns a handler.
func New(o Options) *Handler {
	h := &Handler{options: o, mux: http.NewServeMux()}
	h.mux.HandleFunc("PUT /orders/{orderId}", h.serve(func(r *http.Request, c intake.Caller) answer {
		return h.put(r, c, r.PathValue("orderId"), o.Put)
	}))
	h.mux.HandleFunc("POST /orders", h.serve(h.post))
	h.mux.HandleFunc("GET /orders/{orderId}", h.serve(h.get))
	h.mux.HandleFunc("/", h.serve(missing))
	return h
}

// ServeHTTP answers a request. The API in front refuses those of other routes, but it
// decodes the path: "%2F" and "%2E" of an id arrive as slashes and dots. The mux would
// answer a path with dots with a redirect to another order.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path.Clean(r.URL.Path) != r.URL.Path {
		h.serve(missing)(w, r)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// missing answers a request whose path is not that of an order.
func missing(*http.Request, intake.Caller) answer {
	return problem(http.StatusNotFound, resultNotFound, order.ErrNotFound)
}

// serve returns the handler of a route: it requires a caller, even on a route that was
// left open, and writes, counts and logs the answer.
func (h *Handler) serve(handle func(*http.Request, intake.Caller) answer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := withTimeToAnswer(r.Context())
		defer cancel()
		r = r.WithContext(ctx)
		c, err := h.options.Caller(ctx)
		var a answer
		switch {
		case errors.Is(err, ErrForbidden):
			a = problem(http.StatusForbidden, resultForbidden, err)
		case err != nil || c == "":
			a = problem(http.StatusUnauthorized, resultUnauthenticated, ErrUnauthenticated)
		default:
			a = handle(r, c)
		}
		a.write(w)
		h.options.Count(a.result)
		h.log(r, c, a)
	}
}

// timeToAnswer is kept back of the time that a request has.
const timeToAnswer = time.Second

// withTimeToAnswer returns a context that ends before ctx, so that a client gets our
// answer if the table or the queue does not respond, and not that of the API.
func withTimeToAnswer(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(ctx, deadline.Add(-timeToAnswer))
	}
	return context.WithCancel(ctx)
}

// log writes the line of a request. An id that is not an order id may be anything, so it
// is not logged.
func (h *Handler) log(r *http.Request, c intake.Caller, a answer) {
	level := slog.LevelInfo
	if a.result == resultUnavailable {
		level = slog.LevelWarn
	}
	h.options.Log.LogAttrs(r.Context(), level, "intake",
		slog.String("method", r.Method), slog.String("order_id", string(a.orderID)),
		slog.String("caller", string(c)), slog.String("trace_id", traceOf(r).ID()),
		slog.String("result", a.result), slog.Int("status", a.status), slog.Any("error", a.err))
}

func traceOf(r *http.Request) order.Trace { return order.ParseTrace(r.Header.Get("Traceparent")) }

// put answers a PUT, or a POST whose id is known.
func (h *Handler) put(r *http.Request, c intake.Caller, id string, accept Accept) answer {
	body, bad := read(r)
	if bad.status != 0 {
		return bad
	}
	o, err := h.options.Decode(string(body), id)
	if errors.Is(err, strictjson.ErrSyntax) {
		return problem(http.StatusBadRequest, resultMalformed, errMalformed)
	}
	if err != nil {
		return invalid(err)
	}
	v, err := accept(r.Context(), o, c, traceOf(r))
	return viewed(v, o.ID(), err)
}

// read reads the body of a request, which must say that it is JSON. The answer is zero if
// it does.
func read(r *http.Request) ([]byte, answer) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // one that is not valid is not JSON
	if kind != "application/json" {
		return nil, problem(http.StatusUnsupportedMediaType, resultMediaType, errMediaType)
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, strictjson.MaxBody))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, problem(http.StatusRequestEntityTooLarge, resultTooLarge, errTooLarge)
	}
	if err != nil {
		return nil, problem(http.StatusBadRequest, resultMalformed, errMalformed)
	}
	return body, answer{}
}

// post answers a POST. The caller and its key make the order id, so a repeated request
// is a PUT of the same order.
func (h *Handler) post(r *http.Request, c intake.Caller) answer {
	key := r.Header.Get("Idempotency-Key")
	if !validKey(key) {
		return problem(http.StatusBadRequest, resultNoKey, errNoKey)
	}
	return h.put(r, c, string(intake.IDFor(c, key)), h.options.Post)
}

// validKey reports whether s has 1 to 255 printable ASCII characters without blanks.
func validKey(s string) bool {
	other := func(c rune) bool { return c <= ' ' || c > '~' }
	return s != "" && len(s) <= 255 && !strings.ContainsFunc(s, other)
}

func (h *Handler) get(r *http.Request, c intake.Caller) answer {
	id := r.PathValue("orderId")
	if !order.ValidID(id) {
		return missing(r, c)
	}
	v, err := h.options.Get(r.Context(), order.ID(id), c)
	a := viewed(v, order.ID(id), err)
	if err == nil {
		a = answer{status: http.StatusOK, result: resultFound, body: a.body, orderID: a.orderID}
	}
	return a
}

// viewed returns the answer after a call of package intake: if it succeeded, that to a
// PUT or POST of a valid order.
func viewed(v intake.View, id order.ID, err error) (a answer) {
	switch {
	case errors.Is(err, order.ErrConflict):
		a = problem(http.StatusConflict, resultConflict, order.ErrConflict)
	case errors.Is(err, ErrPayer):
		a = problem(http.StatusForbidden, resultForbidden, ErrPayer)
	case errors.Is(err, order.ErrNotFound):
		a = problem(http.StatusNotFound, resultNotFound, order.ErrNotFound)
	case err != nil:
		a = problem(http.StatusServiceUnavailable, resultUnavailable, errUnavailable)
		a.err, a.retryAfter = err, retryUnavailable
	default:
		a = answer{status: http.StatusOK, result: resultRepeated, body: represent(v)}
		a.location = "/orders/" + string(v.OrderID)
		if v.Sent {
			a.result = resultReceived
		}
		if !v.Settled() {
			a.status, a.retryAfter = http.StatusAccepted, retryAccepted
		}
	}
	a.orderID = id
	return a
}
