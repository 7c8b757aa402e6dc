package stripetest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v76"

	"orderonce/adapters/stripe/stripetest"
)

// The contracts of payments, disputes and refunds test the double too, behind the
// adapter, the baselines with Stripe's own library, and scripts/conform asks it what it
// asks Stripe. The tests of this package cover the rules that those do not.

const (
	root     = "/v1/payment_intents"
	refunds  = "/v1/refunds"
	disputes = "/v1/disputes"
)

// Summaries of responses.
const (
	unexpectedState = "400 payment_intent_unexpected_state"
	notAnInteger    = "400 parameter_invalid_integer"
	unknownMethod   = "400 resource_missing payment_method"
	confirmable     = "200 requires_confirmation"
	succeeded       = "200 succeeded"
	replayed        = " replayed"
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

// create creates an intent with a card that succeeds, under a key.
func (w *world) create(key string) stripetest.Response {
	return w.post(root, key, creation("pm_card_visa"))
}

func (w *world) confirm(id, key string) stripetest.Response {
	return w.post(root+"/"+id+"/confirm", key, "off_session=true")
}

// pay creates and confirms an intent of 1999 usd.
func (w *world) pay(method string) (intent string) {
	intent = w.post(root, "", creation(method)).Intent.ID
	w.confirm(intent, "")
	return intent
}

// refund refunds a part of an intent's charge under a key.
func (w *world) refund(intent, amount, key string) stripetest.Response {
	return w.post(refunds, key, "payment_intent="+intent+"&amount="+amount+
		"&reason=requested_by_customer&metadata[orderId]=ORD1&metadata[refundId]="+key)
}

// want compares the summary of a response: the status, the error, the status of the
// intent or refund, and whether the response is replayed or lost.
func (w *world) want(claim string, r stripetest.Response, want string) {
	w.t.Helper()
	parts, intent := []string{strconv.Itoa(r.Status)}, r.Intent
	if r.Error != nil {
		parts = append(parts, r.Error.Code, r.Error.DeclineCode, r.Error.Param)
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
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	if got := strings.Join(parts, " "); got != want {
		w.t.Errorf("%s: got %q, want %q", claim, got, want)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// docs.stripe.com/api/idempotent_requests: keys can be removed "after they're at least 24
// hours old. We generate a new request if a key is reused after the original is pruned".
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		life, wait time.Duration
		want       string
	}{
		{time.Minute, time.Minute - 1, replayed},
		{time.Minute, time.Minute, ""},
		{-1, 0, ""},
	} {
		w := newWorld(t, stripetest.Rules{KeyLife: c.life})
		w.create("k")
		w.now = w.now.Add(c.wait)
		w.PruneKeys(w.now)
		w.want(fmt.Sprintf("a key of %v after %v", c.life, c.wait), w.create("k"), confirmable+c.want)
	}
	w := newWorld(t, stripetest.Rules{})
	w.create("k")
	w.Begin(w.now, request("POST", root, "running", creation("pm_card_visa")))
	w.ForgetKeys()
	w.want("a key that was forgotten", w.create("k"), confirmable)
	w.want("is not one in use", w.create("running"), "409 idempotency_key_in_use")
}

func TestFaultsMatch(t *testing.T) {
	w := newWorld(t, stripetest.Rules{})
	read := func() stripetest.Response { return w.get(root+"/pi_000001", "") }
	w.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Read, OrderID: "ORD2", Times: -1})
	w.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Read, OrderID: "ORD1", Times: 2})
	w.want("another endpoint", w.create("k"), confirmable)
	w.want("once", read(), "503")
	w.want("twice", read(), "503")
	w.want("three times", read(), confirmable)
	w.Heal()

	w.Fail(stripetest.Fault{Kind: stripetest.ServerErrorBeforeEffect})
	w.Fail(stripetest.Fault{Kind: stripetest.LoseResponse})
	w.want("a replayed response can be lost", w.create("k"), confirmable+replayed+" lost")
	w.want("a fault of the execution waits for one", read(), "500")

	// The second call is replayed and has no execution. The next one must not have its
	// fault instead.
	w.Fail(stripetest.Fault{Number: 2, Kind: stripetest.ServerErrorBeforeEffect, Times: -1})
	for _, c := range []struct{ key, want string }{{"k", confirmable + replayed}, {"other", confirmable}} {
		r := request("POST", root, c.key, creation("pm_card_visa"))
		r.Number = 2
		w.want("a fault of one call is removed with it", w.Do(w.now, r), c.want)
	}
}

// docs.stripe.com/keys: secret and restricted keys, test and live; error-low-level: 401
// for an invalid key.
func TestAPIKeys(t *testing.T) {
	for _, c := range []struct {
		only, key string
		want      int
	}{
		{"", "sk_test_a", 200},
		{"", "rk_test_a", 200},
		{"", "", 401},
		{"", "pk_test_a", 401},
		{"", "rk_live_a", 401},
		{"sk_test_a", "sk_test_a", 200},
		{"sk_test_a", "sk_test_b", 401},
		{"sk_live_a", "sk_live_a", 401},
	} {
		r := request("GET", root, "", "")
		r.APIKey = c.key
		w := newWorld(t, stripetest.Rules{Key: c.only})
		res := w.Do(w.now, r)
		body, live := string(res.Body()), strings.Contains(c.key, "live")
		if res.Status != c.want || strings.Contains(body, "LIVE KEY REFUSED") != live {
			t.Errorf("%+v: got %d, %s", c, res.Status, body)
		}
		if c.key != "" && c.want == 401 && strings.Contains(body, c.key) {
			t.Errorf("%+v: got %s, want no key in it", c, body)
		}
	}
}

// A mistake of the adapter's is refused, and never ignored. docs.stripe.com/error-codes;
// docs.stripe.com/currencies: special cases, minimum and maximum amounts.
func TestValidation(t *testing.T) {
	const intent, enabled = root + "/pi_000001", "automatic_payment_methods[enabled]"
	const usd, unexpected = root + "?amount=50&currency=usd&", unexpectedState + " payment_method"
	tests := map[string]string{
		"POST " + root + "?amount=1&amount=2&currency=usd":                  "400 parameter_invalid amount",
		"POST " + usd + "payment_method=pm_":                                unknownMethod,
		"POST " + usd + "payment_method=tok_visa":                           unknownMethod,
		"POST " + usd + "payment_method=pm_usBankAccount_success":           unknownMethod,
		"POST " + usd + "customer=bob":                                      "400 resource_missing customer",
		"POST " + usd + "confirm=true":                                      unexpected,
		"POST " + usd + "off_session=true":                                  "400 off_session",
		"POST " + usd + "payment_method=pm_1&confirm=true":                  "400 off_session",
		"POST " + usd + "capture_method=manual":                             "400 capture_method",
		"POST " + usd + "automatic_payment_methods[allow_redirects]=never":  "400 parameter_missing " + enabled,
		"POST " + usd + "payment_method=pm_1&confirm=true&off_session=true": succeeded,

		"POST " + intent + "/confirm?":                                     "400 off_session",
		"POST " + intent + "/confirm?off_session=true&payment_method=card": "400 resource_missing payment_method",
		"POST " + intent + "/capture?":                                     "404",
		"GET " + intent + "?expand[0]=latest_charge&expand[1]=invoice":     "400",
		"GET " + root + "?created[gte]=x":                                  notAnInteger + " created[gte]",
		"GET " + root + "?starting_after=pi_9":                             "400 resource_missing starting_after",
		"GET " + root + "/search?query=status:'succeeded'":                 "400 query",
		"GET " + disputes + "?payment_intent=pi_9":                         "400 resource_missing payment_intent",
		"GET " + refunds + "/re_9?":                                        "404 resource_missing id",
		"POST " + refunds + "?":                                            "400 parameter_missing payment_intent",
		"POST " + refunds + "?payment_intent=pi_9&amount=1":                "400 resource_missing payment_intent",
		"POST " + refunds + "?payment_intent=pi_000001&amount=1.5":         notAnInteger + " amount",
		"POST " + refunds + "?payment_intent=pi_000001&reason=why":         "400 reason",
	}
	const tooLarge, tooSmall, created = "400 amount_too_large amount", "400 amount_too_small amount", "200 requires_payment_method"
	for amount, want := range map[string]string{
		"50&currency=USD": created, "0&currency=usd": notAnInteger + " amount",
		"1&currency=zzz": "400 currency", "50&currency=usd eur": "400 currency", "100&currency=isk": created,
		"150&currency=ugx": "400 amount", "1230&currency=kwd": created, "1234&currency=kwd": "400 amount",
		"99999999&currency=usd": created, "1000000000000&currency=idr": tooLarge,
		"17500&currency=huf": created, "17499&currency=huf": tooSmall, "1&currency=kes": created,
	} {
		tests["POST "+root+"?amount="+amount] = want
	}
	for _, claim := range slices.Sorted(maps.Keys(tests)) {
		w := newWorld(t, stripetest.Rules{})
		w.create("")
		method, target, _ := strings.Cut(claim, " ")
		path, form, _ := strings.Cut(target, "?")
		w.want(claim, w.Do(w.now, request(method, path, "", form)), tests[claim])
		if created := len(w.Intents()) - 1; created != strings.Count(tests[claim], "200") {
			t.Errorf("%s: created %d intents", claim, created)
		}
	}
}

// docs.stripe.com/api/payment_intents/list: newest first, "limit can range between 1 and
// 100"; docs.stripe.com/api/pagination: starting_after is an object id.
func TestLists(t *testing.T) {
	w := newWorld(t, stripetest.Rules{RefundLag: time.Minute})
	first, second := w.pay("pm_card_visa"), w.pay("pm_card_amex")
	for range 12 {
		w.refund(first, "1", "")
	}
	for _, intent := range []string{first, second, first, first} {
		_, err := w.OpenDispute(w.now, intent)
		must(t, err)
	}
	const charge = "expand[]=latest_charge.refunds"
	const all = "re_000012 re_000011 re_000010 re_000009 re_000008 re_000007 re_000006 re_000005 re_000004 re_000003"
	for _, c := range []struct{ path, form, ids, contains string }{
		{refunds, "", "", ""}, // within the lag
		{root, "expand[]=data.latest_charge", "pi_000002 pi_000001", `"amount_refunded":12`},
		{disputes, "payment_intent=" + first, "du_000004 du_000003 du_000001", ""},
		{disputes, "starting_after=du_000003&limit=1", "du_000002 more", ""},
		{refunds, "", all + " more", ""},
		{refunds, "limit=100&payment_intent=" + first, all + " re_000002 re_000001", ""},
		{root + "/" + first, charge, "", `"has_more":true,"object":"list","url":"/v1/charges/ch_000001/refunds"`},
		{root + "/" + first, "expand[]=customer", "", `"email":"1@customers.invalid"`},
		{root + "/" + second, "expand[]=latest_charge", "", `"disputed":true`},
	} {
		body := w.get(c.path, c.form).Body()
		var page struct {
			More bool `json:"has_more"`
			Data []struct{ ID string }
		}
		must(t, json.Unmarshal(body, &page))
		ids := []string{}
		for _, o := range page.Data {
			ids = append(ids, o.ID)
		}
		if page.More {
			ids = append(ids, "more")
		}
		if got := strings.Join(ids, " "); got != c.ids || !strings.Contains(string(body), c.contains) {
			t.Errorf("%s?%s: got %q, want %q and %s in %s", c.path, c.form, got, c.ids, c.contains, body)
		}
		if c.path == refunds {
			w.now = w.now.Add(time.Minute)
		}
	}
}

// The bank changes a refund as docs.stripe.com/refunds has it.
func TestARefundIsNotChangedTwice(t *testing.T) {
	w := newWorld(t, stripetest.Rules{})
	made := w.refund(w.pay("pm_card_visa"), "1000", "a").Refund
	pending := w.ChangeRefund(made.ID, stripetest.RefundPending)
	must(t, w.ChangeRefund(made.ID, stripetest.RefundFailed))
	revived, unknown := w.ChangeRefund(made.ID, stripetest.RefundSucceeded), w.ChangeRefund("re_9", stripetest.RefundFailed)
	for _, err := range []error{pending, revived, unknown} {
		if !errors.Is(err, stripetest.ErrNotAllowed) {
			t.Errorf("got %v, want %v", err, stripetest.ErrNotAllowed)
		}
	}
	if now := w.get(refunds+"/"+made.ID, "").Refund; now.Failure == "" {
		t.Errorf("got %+v, want the reason of its failure", now)
	}
	// support.stripe.com/questions/deprecation-of-fractional-isk-charges-and-refunds.
	id := w.post(root, "", "amount=200000&currency=isk&payment_method=pm_card_visa&confirm=true&off_session=true").Intent.ID
	w.want("a fraction", w.refund(id, "150", ""), "400 invalid_charge_amount_no_decimal_compatible amount")
	w.want("what is left", w.post(refunds, "", "payment_intent="+id), succeeded)
}

// docs.stripe.com/api/events/types. The object of an event is as it was then. What a
// person or the bank may not do has no event.
func TestEvents(t *testing.T) {
	w := newWorld(t, stripetest.Rules{})
	paid, bounced := w.pay("pm_card_visa"), w.pay("pm_usBankAccount_processing")
	must(t, w.Settle(w.now, bounced, false))
	must(t, w.EditInDashboard(w.now, bounced))
	must(t, w.CancelInDashboard(w.now, bounced))
	must(t, w.ChangeRefund(w.refund(paid, "1000", "a").Refund.ID, stripetest.RefundFailed))
	d, err := w.OpenDispute(w.now, paid)
	must(t, err)
	must(t, w.CloseDispute(d.ID, false))
	_, unpaid := w.OpenDispute(w.now, bounced)
	for i, err := range []error{
		w.Settle(w.now, bounced, true), w.Settle(w.now, "pi_9", true), w.CustomerPays(w.now, bounced), w.CloseDispute(d.ID, true), unpaid,
	} {
		if !errors.Is(err, stripetest.ErrNotAllowed) {
			t.Errorf("change %d: got %v, want %v", i, err, stripetest.ErrNotAllowed)
		}
	}
	var got []string
	for _, e := range w.Events() {
		var body stripe.Event
		must(t, json.Unmarshal(e.Body(w.now), &body))
		o := body.Data.Object
		got = append(got, fmt.Sprint(body.Type, " ", o["id"], " ", o["status"], " ", o["payment_intent"]))
	}
	want := []string{
		"payment_intent.succeeded pi_000001 succeeded <nil>",
		"payment_intent.processing pi_000002 processing <nil>",
		"payment_intent.payment_failed pi_000002 requires_payment_method <nil>",
		"payment_intent.canceled pi_000002 canceled <nil>",
		"refund.created re_000001 succeeded pi_000001",
		"charge.refunded ch_000001 succeeded pi_000001",
		"refund.updated re_000001 failed pi_000001",
		"refund.failed re_000001 failed pi_000001",
		"charge.dispute.created du_000001 needs_response pi_000001",
		"charge.dispute.closed du_000001 lost pi_000001",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func (w *world) state() string { return string(w.AppendState(w.now, nil)) }

// Each step is taken by a clone, whose original must not change. A search that takes two
// different states for one misses histories.
func TestEveryChangeThatCanMatterLaterChangesTheState(t *testing.T) {
	w := newWorld(t, stripetest.Rules{})
	id := w.post(root, "", creation("pm_card_authenticationRequired")).Intent.ID
	seen := map[string]string{w.state(): "the beginning"}
	var ticket stripetest.Ticket
	for _, step := range []struct {
		name string
		do   func(*world)
	}{
		{"a fault", func(w *world) {
			w.Fail(stripetest.Fault{Kind: stripetest.Garbage, On: stripetest.List, Times: 2})
		}},
		{"a fault used once", func(w *world) { w.get(root, "") }},
		{"a fault of a call", func(w *world) { w.Fail(stripetest.Fault{Kind: stripetest.Garbage, Number: 99}) }},
		{"a begun call", func(w *world) {
			ticket, _ = w.Begin(w.now, request("POST", root+"/"+id+"/confirm", "k", "off_session=true"))
		}},
		{"its effect", func(w *world) { w.Effect(w.now, ticket) }},
		{"its end", func(w *world) { w.End(w.now, ticket) }},
		{"an older key", func(w *world) { w.now = w.now.Add(time.Hour) }},
		{"an expired key", func(w *world) { w.now = w.now.Add(24 * time.Hour) }},
		{"a payment", func(w *world) { must(t, w.CustomerPays(w.now, id)) }},
		{"a dispute", func(w *world) { _, _ = w.OpenDispute(w.now, id) }},
		{"its end", func(w *world) { must(t, w.CloseDispute("du_000001", true)) }},
		{"a refund", func(w *world) { _, _ = w.RefundInDashboard(w.now, id, 10) }},
		{"its failure", func(w *world) { must(t, w.ChangeRefund("re_000001", stripetest.RefundFailed)) }},
		{"a failed request for one", func(w *world) {
			w.Fail(stripetest.Fault{Kind: stripetest.ServerErrorBeforeEffect, On: stripetest.CreateRefund})
			w.post(refunds, "r", "payment_intent="+id)
		}},
		{"its execution", func(w *world) { w.RollForward(w.now) }},
		{"another intent", func(w *world) { w.create("") }},
		{"a deleted customer", func(w *world) { w.DeleteCustomer("cus_1") }},
	} {
		before, next := w.state(), w.clone()
		step.do(next)
		if w.state() != before {
			t.Errorf("%s changes the original of a clone", step.name)
		}
		w = next
		if earlier, known := seen[w.state()]; known {
			t.Errorf("after %s: got the state after %s, want another", step.name, earlier)
		}
		seen[w.state()] = step.name
	}
}

func TestReadsRefusalsRequestIDsAndTheDateDoNotChangeTheState(t *testing.T) {
	w := newWorld(t, stripetest.Rules{})
	other := w.clone()
	other.now = other.now.AddDate(1, 2, 3)
	other.get(root, "")
	other.post(root, "bad", "amount=0")
	for _, each := range []*world{w, other} {
		each.pay("pm_card_chargeDeclined")
		each.now = each.now.Add(time.Hour)
	}
	if w.state() != other.state() {
		t.Errorf("states differ:\n%q\n%q", w.state(), other.state())
	}
}
