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
	declined         = "402 card_error card_declined "
	needsMethod      = " requires_payment_method"
	genericDecline   = declined + "generic_decline" + needsMethod
	unexpectedState  = "400 invalid_request_error payment_intent_unexpected_state"
	resourceMissing  = "400 invalid_request_error resource_missing"
	parameterUnknown = "400 invalid_request_error parameter_unknown"
	keyInUse         = "409 invalid_request_error idempotency_key_in_use"
	confirmable      = "200 requires_confirmation"
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

func (w *world) read(id string) stripetest.Response { return w.get(root + "/" + id) }

// confirm confirms an intent off session, with more parameters.
func (w *world) confirm(id, key string, more ...string) stripetest.Response {
	return w.post(root+"/"+id+"/confirm", key, strings.Join(append([]string{"off_session=true"}, more...), "&"))
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

// exchange is the response to a request, and the summary that it must have.
type exchange struct {
	got  stripetest.Response
	want string
}

// scenario is a sequence of requests to a new machine, and the number of charges that
// succeed.
type scenario struct {
	charges   int
	exchanges func(*world) []exchange
}

// testScenarios runs each scenario as a subtest.
func testScenarios(t *testing.T, scenarios map[string]scenario) {
	t.Helper()
	for claim, tt := range scenarios {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Rules{})
			for i, e := range tt.exchanges(w) {
				if got := summary(e.got); got != e.want {
					t.Errorf("response %d: got %q, want %q", i+1, got, e.want)
				}
			}
			if got := w.Charges("ORD1"); len(got) != tt.charges {
				t.Errorf("got charges %v, want %d", got, tt.charges)
			}
		})
	}
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

// must ends the test on an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
