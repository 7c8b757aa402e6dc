package stripetest_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/stripe/stripetest"
)

const (
	root     = "/v1/payment_intents"
	refunds  = "/v1/refunds"
	disputes = "/v1/disputes"
)

// Summaries of responses.
const (
	declined         = "402 card_error card_declined "
	needsMethod      = " requires_payment_method"
	invalidRequest   = "400 invalid_request_error"
	unexpectedState  = invalidRequest + " payment_intent_unexpected_state"
	resourceMissing  = invalidRequest + " resource_missing"
	parameterUnknown = invalidRequest + " parameter_unknown"
	notAnInteger     = invalidRequest + " parameter_invalid_integer"
	keyInUse         = "409 invalid_request_error idempotency_key_in_use"
	lockTimeout      = "429 invalid_request_error lock_timeout"
	notFound         = "404 invalid_request_error"
	confirmable      = "200 requires_confirmation"
	succeeded        = "200 succeeded"
)

// world is a machine with a clock, and with methods that send requests.
type world struct {
	*stripetest.Machine
	t   *testing.T
	now time.Time
}

func newWorld(t *testing.T, rules stripetest.Rules) *world {
	t.Helper()
	return &world{Machine: stripetest.New(rules), t: t, now: time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)}
}

func (w *world) clone() *world { return &world{Machine: w.Clone(), t: w.t, now: w.now} }

// request returns a request with a test key. form is encoded as a query string.
func request(method, path, key, form string) stripetest.Request {
	values, err := url.ParseQuery(form)
	if err != nil {
		panic(err)
	}
	return stripetest.Request{Method: method, Path: path, APIKey: "sk_test_pretend", Key: key, Form: values}
}

// creation is the form that orderonce sends, with a payment method.
func creation(method string) string {
	return "amount=1999&currency=usd&customer=cus_1&payment_method=" + method +
		"&automatic_payment_methods[enabled]=true&automatic_payment_methods[allow_redirects]=never" +
		"&capture_method=automatic&metadata[orderId]=ORD1&metadata[scope]=test"
}

func (w *world) post(path, key, form string) stripetest.Response {
	return w.Do(w.now, request("POST", path, key, form))
}

func (w *world) get(path, form string) stripetest.Response {
	return w.Do(w.now, request("GET", path, "", form))
}

// confirm confirms an intent off session.
func (w *world) confirm(id, key string) stripetest.Response {
	return w.post(root+"/"+id+"/confirm", key, "off_session=true")
}

// createUnder creates an intent with a card that succeeds, under a key.
func (w *world) createUnder(key string) stripetest.Response {
	return w.post(root, key, creation("pm_card_visa"))
}

// create creates an unconfirmed intent and returns its id.
func (w *world) create(method string) string {
	w.t.Helper()
	res := w.post(root, "", creation(method))
	if res.Status != 200 {
		w.t.Fatalf("create with %s: %s", method, res.Body())
	}
	return res.Intent.ID
}

// pay creates and confirms an intent of 1999 usd.
func (w *world) pay(method string) (intent string) {
	w.t.Helper()
	intent = w.create(method)
	w.confirm(intent, "")
	return intent
}

// refund refunds a part of an intent's charge under a key.
func (w *world) refund(intent, amount, key string) stripetest.Response {
	return w.post(refunds, key, "payment_intent="+intent+"&amount="+amount+
		"&reason=requested_by_customer&metadata[orderId]=ORD1&metadata[refundId]="+key)
}

// ids returns the ids of a list without their zeros, and a + if there are more.
func ids(tb testing.TB, r stripetest.Response) string {
	tb.Helper()
	var page struct {
		More bool `json:"has_more"`
		Data []struct{ ID string }
	}
	must(tb, json.Unmarshal(r.Body(), &page))
	all := []string{}
	for _, o := range page.Data {
		_, number, _ := strings.Cut(o.ID, "_")
		all = append(all, strings.TrimLeft(number, "0"))
	}
	if page.More {
		all = append(all, "+")
	}
	return strings.Join(all, " ")
}

// want compares the summary of a response: the status, the error, the status of the
// intent or refund, and whether the response is replayed or lost.
func (w *world) want(claim string, got stripetest.Response, want string) {
	w.t.Helper()
	if text := summary(got); text != want {
		w.t.Errorf("%s: got %q, want %q", claim, text, want)
	}
}

func summary(r stripetest.Response) string {
	parts, intent := []string{strconv.Itoa(r.Status)}, r.Intent
	if r.Error != nil {
		parts = append(parts, r.Error.Type, r.Error.Code, r.Error.DeclineCode)
		intent = r.Error.Intent
	}
	if intent != nil {
		parts = append(parts, string(intent.Status))
	}
	if r.Refund != nil {
		parts = append(parts, string(r.Refund.Status))
	}
	if r.Replayed() {
		parts = append(parts, "replayed")
	}
	if r.Lost {
		parts = append(parts, "lost")
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// must ends the test on an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
