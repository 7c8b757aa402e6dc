package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/httpapi"
	"orderonce/adapters/internal/strictjson"
	"orderonce/domain/intake"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// world is a handler whose intake returns view and err for each order.
type world struct {
	t      *testing.T
	view   intake.View
	err    error
	caller intake.Caller
	who    error // of Caller

	calls    []string
	deadline time.Time // of the last call
	counted  []string
	log      bytes.Buffer
}

// ends is the deadline of every request.
func ends() time.Time { return time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC) }

func (w *world) accept(by string) httpapi.Accept {
	return func(ctx context.Context, o order.Order, c intake.Caller, trace order.Trace) (intake.View, error) {
		w.deadline, _ = ctx.Deadline()
		w.calls = append(w.calls, strings.TrimSpace(fmt.Sprint(by, " ", o.ID(), " ", c, " ", trace)))
		w.view.OrderID, w.view.Total = o.ID(), o.Total()
		return w.view, w.err
	}
}

// decode returns the order of ordertest, with the quantity of the body. Any other body is
// an error.
func decode(body, id string) (order.Order, error) {
	d := ordertest.Draft(order.ID(id))
	if !json.Valid([]byte(body)) {
		return order.Order{}, fmt.Errorf("decode: %w", strictjson.ErrSyntax)
	}
	if err := json.Unmarshal([]byte(body), &d.Lines[0].Quantity); err != nil {
		return order.Order{}, errors.New("not a quantity")
	}
	return order.New(d)
}

type response struct {
	Status                            int
	Type, Location, RetryAfter, Cache string
	Body                              string
}

// do sends a request with a JSON body.
func (w *world) do(method, path, body string, header ...string) response {
	w.t.Helper()
	h := httpapi.New(httpapi.Options{
		Put: w.accept("put"), Post: w.accept("post"), Decode: decode,
		Get: func(ctx context.Context, id order.ID, c intake.Caller) (intake.View, error) {
			return w.accept("get")(ctx, ordertest.Order(id), c, "")
		},
		Caller: func(context.Context) (intake.Caller, error) { return w.caller, w.who },
		Log:    slog.New(slog.NewJSONHandler(&w.log, nil)), Count: func(r string) { w.counted = append(w.counted, r) },
	})
	ctx, cancel := context.WithDeadline(w.t.Context(), ends())
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, one := range header {
		name, value, _ := strings.Cut(one, ": ")
		r.Header.Set(name, value)
	}
	out := httptest.NewRecorder()
	h.ServeHTTP(out, r)
	return response{
		Status: out.Code, Type: out.Header().Get("Content-Type"), Location: out.Header().Get("Location"),
		RetryAfter: out.Header().Get("Retry-After"), Cache: out.Header().Get("Cache-Control"), Body: out.Body.String(),
	}
}

// object returns a response with an order, and failed one with a problem.
func object(status int, location, retryAfter, rest string) response {
	body := `{"orderId":"O-1","status":` + rest + "}\n"
	return response{status, "application/json", location, retryAfter, "no-store", body}
}

func failed(status int, retryAfter, code, detail string) response {
	return response{status, "application/problem+json", "", retryAfter, "no-store", fmt.Sprintf(
		`{"title":%q,"status":%d,"code":%q,"detail":%s}`+"\n", http.StatusText(status), status, code, detail,
	)}
}

const total = `"amount":3998,"currency":"usd",`

func TestTheAnswerToAnOrder(t *testing.T) {
	const location = "/orders/O-1"
	record := func(s order.Status, failure string, events ...order.Event) order.Record {
		return order.Record{OrderID: "O-1", Status: s, Failure: failure, Events: events}
	}
	cet := time.UnixMilli(1_790_000_000_000).In(time.FixedZone("", 3600)) // clients get UTC
	declined := record(order.Declined, "insufficient_funds", order.Event{
		Seq: 1, From: order.Open, To: order.Declined, At: cet, Failure: "insufficient_funds", Intent: "pi_canary",
	})
	const ended = `"declined",` + total + `"failure":"insufficient_funds","history":[{"seq":1,"type":"order.declined",` +
		`"from":"open","status":"declined","at":"2026-09-21T14:13:20Z","reason":"insufficient_funds"}]`
	accepted := func(body string) response { return object(202, location, "2", body) }
	found := func(body string) response { return object(200, "", "", body) }
	received, open := `"received",`+total+`"history":[]`, `"open",`+total+`"history":[]`
	conflict := failed(409, "", "conflict", `"order id already used with different content"`)
	missing := failed(404, "", "not_found", `"order not found"`)
	payer := failed(403, "", "forbidden", `"payment.customer is not the one that the token names"`)
	down := failed(503, "5", "unavailable", `"the table or the queue did not answer: send the same request again"`)
	for claim, tt := range map[string]struct {
		view     intake.View
		err      error
		put, get response
		counted  string // of the put
	}{
		"sent":            {intake.View{Queued: true, Sent: true}, nil, accepted(received), found(received), "received"},
		"sent before":     {intake.View{Queued: true}, nil, accepted(received), found(received), "repeated"},
		"in work":         {intake.View{Record: record(order.Open, "")}, nil, accepted(open), found(open), "repeated"},
		"declined":        {intake.View{Record: declined}, nil, object(200, location, "", ended), found(ended), "repeated"},
		"other content":   {intake.View{}, fmt.Errorf("put: %w", order.ErrConflict), conflict, conflict, "conflict"},
		"another's":       {intake.View{}, fmt.Errorf("get: %w", order.ErrNotFound), missing, missing, "not_found"},
		"another payer":   {intake.View{}, httpapi.ErrPayer, payer, payer, "forbidden"},
		"the queue fails": {intake.View{}, errors.New("canary: connection refused"), down, down, "unavailable"},
	} {
		w := &world{t: t, view: tt.view, err: tt.err, caller: "alice"}
		for method, want := range map[string]response{"PUT": tt.put, "GET": tt.get} {
			w.counted = nil
			if diff := cmp.Diff(w.do(method, location, "1"), want); diff != "" {
				t.Errorf("%s, %s (-got +want):\n%s", claim, method, diff)
			}
			if method == "PUT" && w.counted[0] != tt.counted {
				t.Errorf("%s: counted as %s, want %s", claim, w.counted, tt.counted)
			}
		}
	}
}

func TestAPostIsAPutUnderTheIDOfCallerAndKey(t *testing.T) {
	for _, caller := range []intake.Caller{"alice", "bob"} {
		for _, key := range []string{"!", strings.Repeat("~", 255)} {
			w := &world{t: t, caller: caller}
			got, id := w.do("POST", "/orders", "1", "Idempotency-Key: "+key), string(intake.IDFor(caller, key))
			if got.Status != http.StatusAccepted || got.Location != "/orders/"+id || w.calls[0] != "post "+id+" "+string(caller) {
				t.Errorf("%s, %.9s: got %+v, %q, want order %s", caller, key, got, w.calls, id)
			}
		}
	}
}

func TestARequestThatIsNotAnOrderIsRefused(t *testing.T) {
	invalid := func(errors string) response {
		return failed(422, "", "invalid", `"the body is not an order","errors":`+errors)
	}
	noKey := failed(400, "", "no_key", `"want a header Idempotency-Key of 1 to 255 printable characters without blanks"`)
	missing := failed(404, "", "not_found", `"order not found"`)
	for claim, tt := range map[string]struct {
		method, path, body, header string
		want                       response
	}{
		"truncated JSON": {"PUT", "/orders/O-1", `{`, "", failed(400, "", "malformed", `"want one JSON value as the body"`)},
		"no type": {
			"PUT", "/orders/O-1", "1", "Content-Type: ",
			failed(415, "", "unsupported_media_type", `"want a body of application/json"`),
		},
		"a large body": {
			"PUT", "/orders/O-1", strings.Repeat(" ", strictjson.MaxBody) + "1", "",
			failed(413, "", "too_large", `"want a body of at most 262144 bytes"`),
		},
		"not a quantity": {"PUT", "/orders/O-1", `"x"`, "", invalid(`[{"pointer":"#","detail":"not a quantity"}]`)},
		"invalid fields": {"PUT", "/orders/_", "0", "", invalid(
			`[{"pointer":"#/orderId","detail":"want 1 to 64 letters, digits, '.', '_' or '-', ` +
				`the first a letter or a digit, and not a card number, got \"_\""},` +
				`{"pointer":"#/lines/0/quantity","detail":"want 1 to 1000000, got 0"}]`,
		)},
		"a total that no charge can hold": {"PUT", "/orders/O-1", "1000000", "", invalid(
			`[{"pointer":"#/lines","detail":"want at most 99999999 in usd: the lines add up to more than one charge can hold"}]`,
		)},
		"a POST without a key":    {"POST", "/orders", "1", "", noKey},
		"a POST with a long key":  {"POST", "/orders", "1", "Idempotency-Key: " + strings.Repeat("k", 256), noKey},
		"a POST with a blank key": {"POST", "/orders", "1", "Idempotency-Key: a b", noKey},
		// The API decodes a path, also "%2F" and "%2E" in an id.
		"a PUT of two segments":      {"PUT", "/orders/O-1/x", "1", "", missing},
		"a PUT of a path with dots":  {"PUT", "/orders/x/../O-1", "1", "", missing},
		"a PUT of no id":             {"PUT", "/orders/", "1", "", missing},
		"a GET of what is not an id": {"GET", "/orders/_", "", "", missing},
	} {
		w := &world{t: t, caller: "alice"}
		if diff := cmp.Diff(w.do(tt.method, tt.path, tt.body, tt.header), tt.want); diff != "" || len(w.calls) > 0 {
			t.Errorf("%s: got %q called (-got +want):\n%s", claim, w.calls, diff)
		}
	}
	w := &world{t: t, caller: "alice"}
	largest, header := strings.Repeat(" ", strictjson.MaxBody-1)+"1", "Content-Type: application/json; charset=utf-8"
	if got := w.do("PUT", "/orders/O-1", largest, header); got.Status != http.StatusAccepted {
		t.Errorf("the largest body: got %+v, want 202", got)
	}
}

func TestNobodyIsServedWithoutAnIdentity(t *testing.T) {
	unauthenticated := failed(401, "", "unauthenticated", `"no authenticated caller"`)
	forbidden := failed(403, "", "forbidden", `"token without the claim that names its owner"`)
	for err, want := range map[error]response{
		httpapi.ErrUnauthenticated: unauthenticated, nil: unauthenticated, httpapi.ErrForbidden: forbidden,
	} {
		w := &world{t: t, who: err}
		for _, got := range []response{
			w.do("PUT", "/orders/O-1", "1"), w.do("POST", "/orders", "1", "Idempotency-Key: k"), w.do("GET", "/orders/O-1", ""),
			w.do("GET", "/", ""),
		} {
			if diff := cmp.Diff(got, want); diff != "" || len(w.calls) > 0 {
				t.Errorf("%v: got %q called (-got +want):\n%s", err, w.calls, diff)
			}
		}
	}
}

func TestARequestKeepsTimeToAnswer(t *testing.T) {
	w := &world{t: t, caller: "alice"}
	w.do("GET", "/orders/O-1", "")
	if want := ends().Add(-time.Second); !w.deadline.Equal(want) {
		t.Errorf("got a deadline %v, want %v", w.deadline, want)
	}
}

// An id that is not an order id may be anything, so it is not logged.
func TestARequestIsLogged(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	w := &world{t: t, view: intake.View{Sent: true}, caller: "alice"}
	w.do("PUT", "/orders/O-1", "1", "Traceparent: "+trace)
	w.do("PUT", "/orders/jane%20doe", "canary")
	w.do("GET", "/orders/jane%20doe", "")
	w.err = errors.New("connection refused")
	w.do("PUT", "/orders/O-2", "1")
	if diff := cmp.Diff(w.calls, []string{"put O-1 alice " + trace, "put O-2 alice"}); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
	for _, want := range []string{
		`"level":"INFO","msg":"intake","method":"PUT","order_id":"O-1","caller":"alice","trace_id":"0af7651916cd43dd8448eb211c80319c",` +
			`"result":"received","status":202,"error":null`,
		`"level":"WARN","msg":"intake","method":"PUT","order_id":"O-2"`, `connection refused`,
	} {
		if !strings.Contains(w.log.String(), want) {
			t.Errorf("got a log without %s:\n%s", want, w.log.String())
		}
	}
	if log := w.log.String(); strings.Contains(log, "jane") || strings.Contains(log, "canary") {
		t.Errorf("got a log with personal data:\n%s", log)
	}
}
