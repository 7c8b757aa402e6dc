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
	"orderonce/domain/intake/intaketest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// world is a handler with an intake in memory behind it.
type world struct {
	*httpapi.Handler
	t *testing.T

	orders   *ordertest.Memory
	queueErr error
	caller   intake.Caller
	callErr  error
	sent     []order.ID
	traces   []order.Trace
	counted  []string
	log      bytes.Buffer
}

// now is a time in a zone of its own: clients get UTC.
func now() time.Time { return time.UnixMilli(1_790_000_000_000).In(time.FixedZone("", 3600)) }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, orders: new(ordertest.Memory), caller: "alice"}
	orders := &intake.Intake{Book: &intaketest.Memory{Orders: w.orders}, Queue: w, Owned: true, Now: now}
	w.Handler = httpapi.New(httpapi.Options{
		Put: orders.Put, Post: orders.Post, Get: orders.Get, Decode: decode,
		Caller: func(context.Context) (intake.Caller, error) { return w.caller, w.callErr },
		Log:    slog.New(slog.NewJSONHandler(&w.log, nil)), Count: func(r string) { w.counted = append(w.counted, r) },
	})
	return w
}

// Send implements intake.Queue.
func (w *world) Send(_ context.Context, o order.Order, _ time.Time, t order.Trace) error {
	if w.queueErr == nil {
		w.sent, w.traces = append(w.sent, o.ID()), append(w.traces, t)
	}
	return w.queueErr
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

// response is what a client gets.
type response struct {
	Status                            int
	Type, Location, RetryAfter, Cache string
	Body                              string
}

// do sends a request with a JSON body.
func (w *world) do(method, path, body string, header ...string) response {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	out := httptest.NewRecorder()
	w.ServeHTTP(out, r)
	return response{
		Status: out.Code, Type: out.Header().Get("Content-Type"), Location: out.Header().Get("Location"),
		RetryAfter: out.Header().Get("Retry-After"), Cache: out.Header().Get("Cache-Control"), Body: out.Body.String(),
	}
}

// claim lets a worker claim the order, and decline lets it decline it.
func (w *world) claim() order.Claim {
	w.t.Helper()
	l := order.Lease{Owner: "w", From: now(), Until: now().Add(time.Minute)}
	c, err := order.Begin(w.t.Context(), w.orders, ordertest.Order("O-1"), l, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) decline(c order.Claim) {
	w.t.Helper()
	out := order.Outcome{Status: order.Declined, Intent: "pi_canary", Failure: "insufficient_funds"}
	if err := errors.Join(
		c.Bind(w.t.Context(), w.orders, order.Intent{ID: "pi_canary", Mode: order.TestMode}, now()),
		c.Finish(w.t.Context(), w.orders, out, now()),
	); err != nil {
		w.t.Fatal(err)
	}
}

const (
	received = `{"orderId":"O-1","status":"received","amount":3998,"currency":"usd","history":[]}` + "\n"
	declined = `{"orderId":"O-1","status":"declined","amount":3998,"currency":"usd","failure":"insufficient_funds","history":[` +
		`{"seq":1,"type":"order.declined","from":"open","status":"declined","at":"2026-09-21T14:13:20Z","reason":"insufficient_funds"}]}` + "\n"
)

// object returns a response with an order, and failed one with a problem.
func object(status int, location, retryAfter, body string) response {
	return response{status, "application/json", location, retryAfter, "no-store", body}
}

func failed(status int, retryAfter, code, detail string) response {
	return response{status, "application/problem+json", "", retryAfter, "no-store", fmt.Sprintf(
		`{"title":%q,"status":%d,"code":%q,"detail":%s}`+"\n", http.StatusText(status), status, code, detail,
	)}
}

func TestAPutOrderIsReceivedAndThenAnsweredWithItsOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const location = "/orders/O-1"
	for i, tt := range []struct{ got, want response }{
		{got: w.do("GET", location, ""), want: failed(404, "", "not_found", `"order not found"`)},
		{got: w.do("PUT", location, "1"), want: object(202, location, "2", received)},
		{got: w.do("PUT", location, "1"), want: object(202, location, "2", received)},
		{got: w.do("GET", location, ""), want: object(200, "", "", received)},
		{got: w.do("PUT", location, "2"), want: failed(409, "", "conflict", `"order id already used with different content"`)},
	} {
		if diff := cmp.Diff(tt.got, tt.want); diff != "" {
			t.Errorf("request %d (-got +want):\n%s", i+1, diff)
		}
	}
	held := w.claim()
	want := object(202, location, "2", strings.Replace(received, "received", "open", 1))
	if diff := cmp.Diff(w.do("PUT", location, "1"), want); diff != "" {
		t.Errorf("while a worker holds it (-got +want):\n%s", diff)
	}
	w.decline(held)
	for method, want := range map[string]response{
		"PUT": object(200, location, "", declined), "GET": object(200, "", "", declined),
	} {
		if diff := cmp.Diff(w.do(method, location, "1"), want); diff != "" {
			t.Errorf("%s of the declined order (-got +want):\n%s", method, diff)
		}
	}
	if diff := cmp.Diff(w.sent, []order.ID{"O-1", "O-1"}); diff != "" {
		t.Errorf("sent (-got +want):\n%s", diff)
	}
}

func TestAPostIsAPutUnderTheIDOfCallerAndKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	post := func(body, key string) response { return w.do("POST", "/orders", body, "Idempotency-Key: "+key) }
	id := intake.IDFor("alice", "key-1")
	want := object(202, "/orders/"+string(id), "2", strings.Replace(received, "O-1", string(id), 1))
	for range 2 {
		if diff := cmp.Diff(post("1", "key-1"), want); diff != "" {
			t.Errorf("(-got +want):\n%s", diff)
		}
	}
	if got := w.do("GET", want.Location, ""); got.Status != http.StatusOK || got.Body != want.Body {
		t.Errorf("at its Location: got %+v, want the order", got)
	}
	if got := post("2", "key-1"); got.Status != http.StatusConflict {
		t.Errorf("other content under the key: got %d, want 409", got.Status)
	}
	w.caller = "bob"
	if got := post("2", "key-1"); got.Status != http.StatusAccepted || got.Location == want.Location {
		t.Errorf("the key of another caller: got %d at %s, want 202 elsewhere", got.Status, got.Location)
	}
}

func TestARequestThatIsNotAnOrderIsRefused(t *testing.T) {
	t.Parallel()
	const noKey = `"want a header Idempotency-Key of 1 to 255 printable characters without blanks"`
	keyed := func(key string) response {
		id := string(intake.IDFor("alice", key))
		return object(202, "/orders/"+id, "2", strings.Replace(received, "O-1", id, 1))
	}
	invalid := func(errors string) response {
		return failed(422, "", "invalid", `"the body is not an order","errors":`+errors)
	}
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
			"PUT", "/orders/O-1", strings.Repeat(" ", httpapi.MaxBody) + "1", "",
			failed(413, "", "too_large", `"want a body of at most 262144 bytes"`),
		},
		"the largest body": {
			"PUT", "/orders/O-1", strings.Repeat(" ", httpapi.MaxBody-1) + "1", "Content-Type: application/json; charset=utf-8",
			object(202, "/orders/O-1", "2", received),
		},
		"a POST with the shortest key": {
			"POST", "/orders", "1", "Idempotency-Key: !", keyed("!"),
		},
		"a POST with the longest key": {
			"POST", "/orders", "1", "Idempotency-Key: " + strings.Repeat("~", 255), keyed(strings.Repeat("~", 255)),
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
		"a POST without a key":    {"POST", "/orders", "1", "", failed(400, "", "no_key", noKey)},
		"a POST with a long key":  {"POST", "/orders", "1", "Idempotency-Key: " + strings.Repeat("k", 256), failed(400, "", "no_key", noKey)},
		"a POST with a blank key": {"POST", "/orders", "1", "Idempotency-Key: a b", failed(400, "", "no_key", noKey)},
		// The API decodes a path, also "%2F" and "%2E" in an id.
		"a PUT of two segments":      {"PUT", "/orders/O-1/x", "1", "", failed(404, "", "not_found", `"order not found"`)},
		"a PUT of a path with dots":  {"PUT", "/orders/x/../O-1", "1", "", failed(404, "", "not_found", `"order not found"`)},
		"a PUT of no id":             {"PUT", "/orders/", "1", "", failed(404, "", "not_found", `"order not found"`)},
		"a GET of what is not an id": {"GET", "/orders/_", "", "", failed(404, "", "not_found", `"order not found"`)},
	} {
		w := newWorld(t)
		if diff := cmp.Diff(w.do(tt.method, tt.path, tt.body, tt.header), tt.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", claim, diff)
		}
		if want := tt.want.Status == http.StatusAccepted; len(w.sent) > 0 != want {
			t.Errorf("%s: got %q sent, want it sent: %t", claim, w.sent, want)
		}
	}
}

func TestNobodyIsServedWithoutAnIdentity(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		caller intake.Caller
		err    error
		want   response
	}{
		"unauthenticated": {"", httpapi.ErrUnauthenticated, failed(401, "", "unauthenticated", `"no authenticated caller"`)},
		"nobody":          {"", nil, failed(401, "", "unauthenticated", `"no authenticated caller"`)},
		"without a claim": {"", httpapi.ErrForbidden, failed(403, "", "forbidden", `"token without the claim that names its owner"`)},
	} {
		w := newWorld(t)
		w.caller, w.callErr = tt.caller, tt.err
		for _, got := range []response{
			w.do("PUT", "/orders/O-1", "1"), w.do("POST", "/orders", "1", "Idempotency-Key: k"), w.do("GET", "/orders/O-1", ""),
		} {
			if diff := cmp.Diff(got, tt.want); diff != "" || len(w.sent) > 0 {
				t.Errorf("%s: got %q sent (-got +want):\n%s", claim, w.sent, diff)
			}
		}
	}
}

func TestAnotherCallersOrderIsNotFoundAndItsIDIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do("PUT", "/orders/O-1", "1")
	w.caller = "bob"
	if get, put := w.do("GET", "/orders/O-1", ""), w.do("PUT", "/orders/O-1", "1"); get.Status != 404 || put.Status != 409 {
		t.Errorf("got %d and %d, want 404 and 409", get.Status, put.Status)
	}
}

func TestAQueueThatIsDownIsUnavailableAndTheRepetitionIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queueErr = errors.New("canary: connection refused")
	got := w.do("PUT", "/orders/O-1", "1")
	want := failed(503, "5", "unavailable", `"the table or the queue did not answer: send the same request again"`)
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	w.queueErr = nil
	if got := w.do("PUT", "/orders/O-1", "1"); got.Status != http.StatusAccepted || len(w.sent) != 1 {
		t.Errorf("got %d and %q sent, want 202 and the order", got.Status, w.sent)
	}
}

func TestARequestKeepsTimeToAnswer(t *testing.T) {
	t.Parallel()
	ends := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	ctx, cancel := context.WithDeadline(t.Context(), ends)
	defer cancel()
	var got time.Time
	h := httpapi.New(httpapi.Options{
		Caller: func(context.Context) (intake.Caller, error) { return "alice", nil },
		Get: func(ctx context.Context, _ order.ID, _ intake.Caller) (intake.View, error) {
			got, _ = ctx.Deadline()
			return intake.View{}, order.ErrNotFound
		},
		Log: slog.New(slog.DiscardHandler), Count: func(string) {},
	})
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/orders/O-1", http.NoBody))
	if want := ends.Add(-time.Second); !got.Equal(want) {
		t.Errorf("got a deadline %v, want %v", got, want)
	}
}

func TestARequestIsLoggedAndCounted(t *testing.T) {
	t.Parallel()
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	w := newWorld(t)
	w.do("PUT", "/orders/O-1", "1", "Traceparent: "+trace)
	w.do("PUT", "/orders/jane%20doe", "canary")
	w.do("GET", "/orders/jane%20doe", "")
	w.queueErr = errors.New("connection refused")
	w.do("PUT", "/orders/O-2", "1")
	if diff := cmp.Diff(w.counted, []string{"received", "malformed", "not_found", "unavailable"}); diff != "" {
		t.Errorf("counted (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(w.traces, []order.Trace{trace}); diff != "" {
		t.Errorf("traces (-got +want):\n%s", diff)
	}
	for _, want := range []string{
		`"level":"INFO","msg":"intake","method":"PUT","order_id":"O-1","caller":"alice","trace_id":"0af7651916cd43dd8448eb211c80319c",` +
			`"result":"received","status":202,"error":null`,
		`"level":"WARN","msg":"intake","method":"PUT","order_id":"O-2"`, `put order \"O-2\": connection refused`,
	} {
		if !strings.Contains(w.log.String(), want) {
			t.Errorf("got a log without %s:\n%s", want, w.log.String())
		}
	}
	for _, never := range []string{"jane", "canary"} {
		if strings.Contains(w.log.String(), never) {
			t.Errorf("got a log with %q:\n%s", never, w.log.String())
		}
	}
}
