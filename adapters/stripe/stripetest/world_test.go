package stripetest_test

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/stripe/stripetest"
)

const root = "/v1/payment_intents"

// Summaries of responses.
const (
	declined               = "402 card_error card_declined "
	requiresAuthentication = "402 card_error authentication_required authentication_required requires_payment_method"
	genericDecline         = declined + "generic_decline requires_payment_method"
	unexpectedState        = "400 invalid_request_error payment_intent_unexpected_state"
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

func (w *world) get(path string) stripetest.Response {
	return w.Do(w.now, request("GET", path, "", ""))
}

func (w *world) confirm(id, key string) stripetest.Response {
	return w.post(root+"/"+id+"/confirm", key, "off_session=true")
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

// summary is the part of a response that most tests compare: the status, the error, the
// intent's status, and whether the response is replayed or lost.
func summary(r stripetest.Response) string {
	parts, intent := []string{strconv.Itoa(r.Status)}, r.Intent
	if r.Error != nil {
		parts = append(parts, r.Error.Type, r.Error.Code, r.Error.DeclineCode)
		intent = r.Error.Intent
	}
	if intent != nil {
		parts = append(parts, string(intent.Status))
	}
	if r.Replayed() {
		parts = append(parts, "replayed")
	}
	if r.Lost {
		parts = append(parts, "lost")
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}
