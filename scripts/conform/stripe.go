package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/smithy-go"
	"github.com/stripe/stripe-go/v76/webhook"

	"orderonce/adapters/stripe/stripetest"
)

const (
	intents = "/v1/payment_intents"
	refunds = "/v1/refunds"
)

// stripeRun calls Stripe. Every request has the API version of stripe-go v76.
type stripeRun struct{ *Run }

func stripeRule(id, says, source string, check func(stripeRun)) Rule {
	return Rule{ID: "stripe/" + id, Says: says, Source: source, Check: func(r *Run) { check(stripeRun{r}) }}
}

type answer struct {
	Status int
	Header http.Header
	Body   map[string]any
}

// StripeError is what a check did not expect of Stripe.
type stripeError struct{ answer }

func (e stripeError) Error() string        { return e.String() + ": " + e.text("error.message") }
func (e stripeError) HTTPStatusCode() int  { return e.Status }
func (e stripeError) ErrorCode() string    { return e.String() }
func (e stripeError) ErrorMessage() string { return e.text("error.message") }
func (e stripeError) ErrorFault() smithy.ErrorFault {
	return smithy.FaultUnknown
}

// text returns a member of the body, such as "error.code"; "" if there is none.
func (a answer) text(path string) string {
	at := any(a.Body)
	for name := range strings.SplitSeq(path, ".") {
		inside, _ := at.(map[string]any)
		at = inside[name]
	}
	switch v := at.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

func (a answer) ids() (ids []string) {
	list, _ := a.Body["data"].([]any)
	for _, o := range list {
		inside, _ := o.(map[string]any)
		ids = append(ids, fmt.Sprint(inside["id"]))
	}
	return ids
}

// String returns the response in one line: the status, the error, the status of the
// object, and whether it is replayed.
func (a answer) String() string {
	words := []string{strconv.Itoa(a.Status)}
	if kind := a.text("error.type"); kind == "idempotency_error" {
		words = append(words, kind)
	}
	for _, path := range []string{
		"error.code", "error.decline_code", "error.param", "error.payment_intent.status", "status",
	} {
		if word := a.text(path); word != "" {
			words = append(words, word)
		}
	}
	if a.Header.Get("Idempotent-Replayed") == "true" {
		words = append(words, "replayed")
	}
	return strings.Join(words, " ")
}

// send sends a request. It does not follow the rules of any client: a check repeats
// requests itself.
func (s stripeRun) send(method, path, key, form string) (answer, error) {
	target, body := strings.TrimSuffix(s.URL, "/")+path, io.Reader(strings.NewReader(form))
	if method == http.MethodGet {
		target, body = target+"?"+form, nil
	}
	request, err := http.NewRequestWithContext(s.Context, method, target, body)
	if err != nil {
		return answer{}, err
	}
	request.SetBasicAuth(s.Key, "")
	request.Header.Set("Stripe-Version", stripetest.APIVersion)
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	got, err := s.HTTP.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = got.Body.Close() }()
	a := answer{Status: got.StatusCode, Header: got.Header}
	text, err := io.ReadAll(got.Body)
	if err == nil && json.Unmarshal(text, &a.Body) != nil {
		err = fmt.Errorf("%s %s: status %d: not JSON", method, path, a.Status)
	}
	return a, err
}

// do sends a request again after a limit of the rate, as every client has to, and ends
// the check if Stripe does not accept the key, or does not know the path.
func (s stripeRun) do(method, path, key, form string) answer {
	for n := 0; ; n++ {
		a, err := s.send(method, path, key, form)
		s.Must(err)
		unknown := a.Status == http.StatusNotFound && a.text("error.code") == ""
		switch err := (stripeError{a}); {
		case unknown:
			a.Status = http.StatusNotImplemented
			s.Must(stripeError{a})
		case kindOf(err) == throttled && a.text("error.code") != "lock_timeout" && n < 4:
			s.Pass(time.Second / 4 << n)
			continue
		case kindOf(err) == throttled && a.text("error.code") != "lock_timeout", kindOf(err) == denied:
			s.Must(err)
		}
		return a
	}
}

func (s stripeRun) post(path, key, form string) answer { return s.do(http.MethodPost, path, key, form) }

func (s stripeRun) get(path, form string) answer { return s.do(http.MethodGet, path, "", form) }

func (s stripeRun) want(what string, got answer, want string) { s.Want(what, got.String(), want) }

// ok ends the check unless a request that the rule is not about succeeds.
func (s stripeRun) ok(got answer) answer {
	if got.Status != http.StatusOK {
		s.Must(stripeError{got})
	}
	return got
}

// form is what orderonce sends to create an intent with a payment method.
func (s stripeRun) form(method string) string {
	return "amount=1999&currency=usd&payment_method=" + method +
		"&automatic_payment_methods[enabled]=true&automatic_payment_methods[allow_redirects]=never" +
		"&capture_method=automatic&metadata[orderId]=" + s.Name("order") + "&metadata[scope]=conform"
}

// create creates an intent with a payment method under a key, which may be empty.
func (s stripeRun) create(key, method string) answer {
	return s.post(intents, s.key(key), s.form(method))
}

// key returns an idempotency key of this check, or none.
func (s stripeRun) key(name string) string {
	if name == "" {
		return ""
	}
	return s.Name(s.Rule.ID + "/" + name)
}

// made creates an intent that can be confirmed, and returns its id.
func (s stripeRun) made(method string) (id string) { return s.ok(s.create("", method)).text("id") }

// confirm confirms an intent off session, under a key, which may be empty.
func (s stripeRun) confirm(id, key string) answer {
	return s.post(intents+"/"+id+"/confirm", s.key(key), "off_session=true")
}

// try is confirm once, whatever comes of it.
func (s stripeRun) try(id, key string) (answer, error) {
	return s.send(http.MethodPost, intents+"/"+id+"/confirm", s.key(key), "off_session=true")
}

// paid returns the id of an intent of 19.99 USD that is paid.
func (s stripeRun) paid(method string) (id string) {
	id = s.made(method)
	s.ok(s.confirm(id, ""))
	return id
}

// refund refunds a part of a payment under a key, which may be empty.
func (s stripeRun) refund(intent, amount, key string) answer {
	return s.post(refunds, s.key(key), "payment_intent="+intent+"&amount="+amount+
		"&reason=requested_by_customer&metadata[refundId]="+amount)
}

// fail makes the double fail once as Stripe may at any time.
func (s stripeRun) fail(kind stripetest.FaultKind, on stripetest.Endpoint) {
	s.Double.(*stripetest.Server).Fail(stripetest.Fault{Kind: kind, On: on})
}

func (s stripeRun) change(f func(m *stripetest.Machine) error) {
	s.Double.(*stripetest.Server).Machine(func(m *stripetest.Machine) { s.Must(f(m)) })
}

// Summaries of responses, and test cards (docs.stripe.com/testing).
const (
	confirmable = "200 requires_confirmation"
	succeeded   = "200 succeeded"
	unexpected  = "400 payment_intent_unexpected_state"
	declined    = "402 card_declined generic_decline requires_payment_method"
	replayed    = " replayed"

	visa     = "pm_card_visa"
	declines = "pm_card_chargeDeclined"
)

const (
	keyPage      = "docs.stripe.com/api/idempotent_requests"
	lowLevel     = "docs.stripe.com/error-low-level"
	lifecycle    = "docs.stripe.com/payments/paymentintents/lifecycle"
	errorCodes   = "docs.stripe.com/error-codes"
	refundPage   = "docs.stripe.com/refunds"
	testingPage  = "docs.stripe.com/testing"
	pagination   = "docs.stripe.com/api/pagination"
	atAnyTime    = "Stripe does so at any time, and no request causes it"
	needEndpoint = "the check would need an endpoint on the internet: make smoke sees it after a deployment"
)

func stripeRules() []Rule {
	return slices.Concat(
		keyRules(), keyFaultRules(), intentRules(), intentEndRules(), parameterRules(), listRules(),
		refundRules(), refundEndRules(), webhookRules(),
	)
}

func keyRules() []Rule {
	return []Rule{
		stripeRule("key-replay", "the same key and parameters get the first answer again, marked as replayed",
			keyPage+`: "saving the resulting status code and body of the first request"`, func(s stripeRun) {
				first, again := s.create("k", visa), s.create("k", visa)
				s.want("first", first, confirmable)
				s.want("again", again, confirmable+replayed)
				s.Want("its object", again.text("id"), first.text("id"))
				s.Want("Original-Request", again.Header.Get("Original-Request"), first.Header.Get("Request-Id"))
			}),
		stripeRule("key-parameters", "other parameters under a key are an idempotency_error",
			keyPage+`: "compares incoming parameters to those of the original request and errors if they're not the same"`, func(s stripeRun) {
				s.ok(s.create("k", visa))
				s.want("another payment method", s.create("k", declines), "400 idempotency_error")
			}),
		stripeRule("key-endpoint", "another endpoint under a key is an idempotency_error",
			"docs.stripe.com/api/errors: a key is re-used on a request that does not match the first one's endpoint", func(s stripeRun) {
				s.want("confirm", s.confirm(s.ok(s.create("k", visa)).text("id"), "k"), "400 idempotency_error")
			}),
		stripeRule("key-validation", "a request whose validation fails leaves its key unused",
			keyPage+`: "if incoming parameters fail validation ... no idempotent result is saved"`, func(s stripeRun) {
				s.Want("invalid", s.post(intents, s.key("k"), "amount=0&currency=usd").Status, 400)
				s.want("valid, the same key", s.create("k", visa), confirmable)
			}),
		stripeRule("key-decline", "a decline is stored under its key and replayed",
			keyPage+`: "regardless of whether it succeeds or fails"`, func(s stripeRun) {
				id := s.made(declines)
				s.want("first", s.confirm(id, "k"), declined)
				s.want("again", s.confirm(id, "k"), declined+replayed)
			}),
		stripeRule("key-refusal", "a refusal of the execution is stored, and replayed when its cause is gone",
			lowLevel+`: "A request that returns a 400 sends back the same 400 if followed by a new request with the same key"`, func(s stripeRun) {
				id := s.ok(s.post(intents, "", "amount=1999&currency=usd")).text("id")
				s.want("without a payment method", s.confirm(id, "k"), unexpected+" requires_payment_method")
				s.want("another key, with one", s.post(intents+"/"+id+"/confirm", "", "off_session=true&payment_method="+visa), succeeded)
				s.want("again", s.confirm(id, "k"), unexpected+" requires_payment_method"+replayed)
			}),
	}
}

func keyFaultRules() []Rule {
	return []Rule{
		offline(atAnyTime, stripeRule("key-500", "a 500 is stored under its key and replayed, whether or not the card was charged",
			keyPage+`: "including 500 errors"`, func(s stripeRun) {
				for _, kind := range []stripetest.FaultKind{stripetest.ServerErrorBeforeEffect, stripetest.ServerErrorAfterEffect} {
					id := s.made(visa)
					s.fail(kind, stripetest.Confirm)
					s.want(string(kind), s.confirm(id, string(kind)), "500")
					s.want(string(kind)+", again", s.confirm(id, string(kind)), "500"+replayed)
					charged := kind == stripetest.ServerErrorAfterEffect
					s.Want(string(kind)+", paid", s.get(intents+"/"+id, "").text("status") == "succeeded", charged)
				}
			})),
		offline(atAnyTime, stripeRule("key-before", "what is refused before the execution leaves its key unused: 401, 409, 429, 503",
			lowLevel+`: rate limiters "run before the API's idempotency layer"`, func(s stripeRun) {
				for _, kind := range []stripetest.FaultKind{
					stripetest.Unauthorized, stripetest.KeyInUse, stripetest.LockTimeout, stripetest.RateLimited, stripetest.Unavailable,
				} {
					id := s.made(visa)
					s.fail(kind, stripetest.Confirm)
					refused, err := s.try(id, string(kind))
					again, err2 := s.try(id, string(kind))
					s.Must(errors.Join(err, err2))
					s.Want(string(kind), refused.Status > 400, true)
					s.want(string(kind)+", again", again, succeeded)
				}
			})),
		offline(atAnyTime, stripeRule("key-lost", "a key whose answer was lost replays it",
			keyPage+`: "if a request ... does not respond due to a network connection error"`, func(s stripeRun) {
				id := s.made(visa)
				s.fail(stripetest.LoseResponse, stripetest.Confirm)
				_, err := s.try(id, "k")
				s.Want("lost", err != nil, true)
				s.want("again", s.confirm(id, "k"), succeeded+replayed)
			})),
		{
			ID: "stripe/key-life", Says: "a key younger than 24 hours is kept; a pruned key is a new request",
			Source: keyPage + `: removed "after they're at least 24 hours old. We generate a new request if a key is reused ` +
				`after the original is pruned"`,
			Wait:  24*time.Hour - time.Minute,
			Begin: func(r *Run) string { s := stripeRun{r}; return s.Prefix + " " + s.ok(s.create("k", visa)).text("id") },
			Check: func(r *Run) { keyLife(stripeRun{r}) },
		},
		stripeRule("key-length", "a key of more than 255 characters is refused",
			keyPage+`: "up to 255 characters long"`, func(s stripeRun) {
				s.Want("256", s.post(intents, strings.Repeat("k", 256), s.form(visa)).Status, 400)
			}),
		stripeRule("key-concurrent", "of requests at once under one key one executes, and the others get 409 or its answer",
			errorCodes+", idempotency_key_in_use", keyConcurrent),
	}
}

// keyLife looks at a key that is one minute short of 24 hours old, and then, on a double,
// at one of 24 hours. Stripe may prune a key then, and need not.
func keyLife(s stripeRun) {
	prefix, first, _ := strings.Cut(s.State, " ")
	s.Prefix = prefix
	again := s.create("k", visa)
	s.want("23:59 later", again, confirmable+replayed)
	s.Want("its object", again.text("id"), first)
	if s.double() {
		s.Pass(time.Minute)
		s.want("24:00 later", s.create("k", visa), confirmable)
	}
}

// keyConcurrent sends the same request eight times at once. A double gets slow for it.
func keyConcurrent(s stripeRun) {
	if server, is := s.Double.(*stripetest.Server); is {
		server.Fail(stripetest.Fault{Kind: stripetest.Latency, On: stripetest.Create, Delay: 200 * time.Millisecond})
	}
	var all sync.WaitGroup
	answers, errs := make([]answer, 8), make([]error, 8)
	for i := range answers {
		all.Go(func() {
			answers[i], errs[i] = s.send(http.MethodPost, intents, s.key("k"), s.form(visa))
		})
	}
	all.Wait()
	executed, inUse := 0, 0
	for i, a := range answers {
		s.Must(errs[i])
		switch a.String() {
		case confirmable:
			executed++
		case "409 idempotency_key_in_use":
			inUse++
		case confirmable + replayed:
		default:
			s.Want("one of eight", a.String(), confirmable)
		}
	}
	s.Want("executed", executed, 1)
	if s.double() {
		s.Want("refused as in use", inUse, 7)
	}
}

func intentRules() []Rule {
	return []Rule{
		stripeRule("intent-new", "a new intent requires a confirmation, or a payment method if it has none",
			lifecycle, func(s stripeRun) {
				s.want("with", s.create("", visa), confirmable)
				s.want("without", s.post(intents, "", "amount=1999&currency=usd"), "200 requires_payment_method")
			}),
		stripeRule("intent-paid", "a confirmed intent has received its amount, and names its charge",
			lifecycle, func(s stripeRun) {
				got := s.confirm(s.made(visa), "")
				s.want("confirmed", got, succeeded)
				s.Want("amount_received", got.text("amount_received"), "1999")
				s.Want("latest_charge", strings.SplitAfter(got.text("latest_charge"), "_")[0], "ch_")
			}),
		stripeRule("intent-twice", "a paid intent is not confirmed again: 400, with the intent inside, at any age",
			errorCodes+", payment_intent_unexpected_state", func(s stripeRun) {
				id := s.paid(visa)
				again := s.confirm(id, "")
				s.want("again", again, unexpected+" succeeded")
				s.Want("the intent inside", again.text("error.payment_intent.id"), id)
			}),
		stripeRule("intent-decline", "a decline is a 402 with its reason and the intent, which has lost its payment method",
			"docs.stripe.com/declines/codes; "+lifecycle, func(s stripeRun) {
				id := s.made("pm_card_chargeDeclinedInsufficientFunds")
				got := s.confirm(id, "")
				s.want("declined", got, "402 card_declined insufficient_funds requires_payment_method")
				s.Want("type", got.text("error.type"), "card_error")
				s.Want("payment_method", got.text("error.payment_intent.payment_method"), "")
				s.Want("last_payment_error", s.get(intents+"/"+id, "").text("last_payment_error.decline_code"), "insufficient_funds")
			}),
		stripeRule("intent-reason", "some reasons of a decline are the code itself",
			errorCodes+": expired_card, incorrect_cvc, processing_error", func(s stripeRun) {
				s.want("expired", s.confirm(s.made("pm_card_chargeDeclinedExpiredCard"), ""),
					"402 expired_card expired_card requires_payment_method")
			}),
		stripeRule("intent-customer", "off session, a bank that wants the customer declines: authentication_required",
			"docs.stripe.com/api/payment_intents/confirm, off_session; docs.stripe.com/declines/codes", func(s stripeRun) {
				s.want("confirmed", s.confirm(s.made("pm_card_authenticationRequired"), ""),
					"402 authentication_required authentication_required requires_payment_method")
			}),
	}
}

func intentEndRules() []Rule {
	return []Rule{
		stripeRule("intent-later", "a declined intent can still be paid with another payment method, and not without one",
			lifecycle, func(s stripeRun) {
				id := s.made(declines)
				s.confirm(id, "")
				s.want("without", s.confirm(id, ""), unexpected+" requires_payment_method")
				s.want("with", s.post(intents+"/"+id+"/confirm", "", "off_session=true&payment_method="+visa), succeeded)
			}),
		stripeRule("intent-cancel", "a canceled intent is never paid",
			"docs.stripe.com/api/payment_intents/cancel", func(s stripeRun) {
				id := s.made(visa)
				s.want("canceled", s.post(intents+"/"+id+"/cancel", "", ""), "200 canceled")
				s.want("confirmed", s.confirm(id, ""), unexpected+" canceled")
			}),
		stripeRule("intent-cancel-paid", "a paid intent is not canceled",
			"docs.stripe.com/api/payment_intents/cancel", func(s stripeRun) {
				s.want("canceled", s.post(intents+"/"+s.paid(visa)+"/cancel", "", ""), unexpected+" succeeded")
			}),
		offline("the test bank account needs a mandate of a customer", stripeRule("intent-processing",
			"a payment that takes days is processing, and is neither confirmed again nor paid yet",
			"docs.stripe.com/payments/payment-methods/bank-debits", func(s stripeRun) {
				id := s.made("pm_usBankAccount_processing")
				s.want("confirmed", s.confirm(id, ""), "200 processing")
				s.want("again", s.confirm(id, ""), unexpected+" processing")
			})),
		stripeRule("intent-metadata", "an intent keeps its metadata",
			"docs.stripe.com/metadata", func(s stripeRun) {
				s.Want("orderId", s.get(intents+"/"+s.paid(visa), "").text("metadata.orderId"), s.Name("order"))
			}),
	}
}

func parameterRules() []Rule {
	refuses := func(id, says, source, form, want string) Rule {
		return stripeRule(id, says, source, func(s stripeRun) { s.want(form, s.post(intents, "", form), want) })
	}
	return []Rule{
		refuses("parameter-unknown", "an unknown parameter is refused", errorCodes, "amount=50&currency=usd&amonut=2",
			"400 parameter_unknown amonut"),
		refuses("parameter-missing", "a missing amount is refused", errorCodes, "currency=usd", "400 parameter_missing amount"),
		refuses("amount-integer", "an amount is an integer in minor units", "docs.stripe.com/currencies",
			"amount=19.99&currency=usd", "400 parameter_invalid_integer amount"),
		refuses("amount-small", "an amount below the currency's minimum is refused", "docs.stripe.com/currencies",
			"amount=49&currency=usd", "400 amount_too_small amount"),
		refuses("amount-large", "an amount has at most eight digits", "docs.stripe.com/currencies",
			"amount=100000000&currency=usd", "400 amount_too_large amount"),
		refuses("method-missing", "a payment method that does not exist is refused", errorCodes,
			"amount=50&currency=usd&payment_method=pm_card_visaa", "400 resource_missing payment_method"),
		stripeRule("intent-missing", "an intent that does not exist is a 404 with code resource_missing",
			errorCodes, func(s stripeRun) {
				s.want("read", s.get(intents+"/pi_000000000000000000000000", ""), "404 resource_missing intent")
			}),
		stripeRule("metadata-limit", "a value of metadata has at most 500 characters",
			"docs.stripe.com/metadata", func(s stripeRun) {
				s.Want("501", s.post(intents, "", "amount=50&currency=usd&metadata[k]="+strings.Repeat("v", 501)).Status, 400)
			}),
		stripeRule("api-key", "a key that is not valid is a 401",
			lowLevel, func(s stripeRun) {
				s.Key = "pk_test_pretend" // of the wrong kind, whatever the endpoint's keys are
				got, err := s.send(http.MethodGet, intents, "", "")
				s.Must(err)
				s.Want("status", got.Status, 401)
			}),
		stripeRule("version", "an answer has the version that its request asks for, and a request id",
			"docs.stripe.com/api/versioning; docs.stripe.com/api/request_ids", func(s stripeRun) {
				got := s.get(intents, "limit=1")
				s.Want("Stripe-Version", got.Header.Get("Stripe-Version"), stripetest.APIVersion)
				s.Want("Request-Id", strings.HasPrefix(got.Header.Get("Request-Id"), "req_"), true)
			}),
	}
}

func listRules() []Rule {
	return []Rule{
		stripeRule("list-order", "a list has the newest first, and what was just made at once",
			"docs.stripe.com/api/payment_intents/list", func(s stripeRun) {
				older := s.made(visa)
				s.Pass(time.Second)
				newer := s.made(visa)
				var own []string
				for _, id := range s.ok(s.get(intents, "limit=100")).ids() {
					if id == older || id == newer {
						own = append(own, id)
					}
				}
				s.Want("order", own, []string{newer, older})
			}),
		stripeRule("list-pages", "a page continues after the object that starting_after names",
			pagination, func(s stripeRun) {
				intent := s.paid(visa)
				for _, amount := range []string{"1", "2", "3"} {
					s.ok(s.refund(intent, amount, ""))
					s.Pass(time.Second)
				}
				of := "payment_intent=" + intent
				first := s.get(refunds, of+"&limit=2")
				s.Want("has_more", first.text("has_more"), "true")
				s.Want("first page", len(first.ids()), 2)
				rest := s.get(refunds, of+"&limit=2&starting_after="+first.ids()[1])
				s.Want("second page", len(rest.ids()), 1)
				s.Want("has_more at the end", rest.text("has_more"), "false")
			}),
		stripeRule("list-limit", "a page has at most 100 objects",
			pagination+`: "limit can range between 1 and 100"`, func(s stripeRun) {
				s.want("101", s.get(intents, "limit=101"), "400 parameter_invalid_integer limit")
			}),
		stripeRule("list-created", "a list can be limited to a half-open interval of creation times",
			"docs.stripe.com/api/payment_intents/list, created", func(s stripeRun) {
				created := s.ok(s.create("", visa))
				id, at := created.text("id"), created.text("created")
				next, _ := strconv.ParseInt(at, 10, 64)
				within := s.get(intents, fmt.Sprintf("limit=100&created[gte]=%s&created[lt]=%d", at, next+1))
				before := s.get(intents, "limit=100&created[lt]="+at)
				s.Want("within", slices.Contains(within.ids(), id), true)
				s.Want("before", slices.Contains(before.ids(), id), false)
			}),
		stripeRule("search", "a search by metadata finds an intent, at Stripe within an hour",
			"docs.stripe.com/search: not for read-after-write", func(s stripeRun) {
				id, query := s.made(visa), url.QueryEscape("metadata['orderId']:'"+s.Name("order")+"'")
				s.Want("found", s.Until(func() bool {
					return slices.Contains(s.ok(s.get(intents+"/search", "query="+query)).ids(), id)
				}), true)
			}),
	}
}

func refundRules() []Rule {
	return []Rule{
		stripeRule("refund-part", "a part is refunded, and the intent stays succeeded",
			refundPage, func(s stripeRun) {
				intent := s.paid(visa)
				s.want("refund", s.refund(intent, "500", ""), succeeded)
				read := s.get(intents+"/"+intent, "expand[]=latest_charge")
				s.want("intent", read, succeeded)
				s.Want("amount_refunded", read.text("latest_charge.amount_refunded"), "500")
			}),
		stripeRule("refund-key", "a refund under the same key is the same refund",
			keyPage, func(s stripeRun) {
				intent := s.paid(visa)
				first, again := s.refund(intent, "500", "k"), s.refund(intent, "500", "k")
				s.want("again", again, succeeded+replayed)
				s.Want("its id", again.text("id"), first.text("id"))
				s.Want("refunds", len(s.get(refunds, "payment_intent="+intent).ids()), 1)
			}),
		stripeRule("refund-over", "more than what is left is refused",
			"docs.stripe.com/api/refunds/create", func(s stripeRun) {
				intent := s.paid(visa)
				s.ok(s.refund(intent, "1500", ""))
				s.want("500 of 499", s.refund(intent, "500", ""), "400 amount")
			}),
		stripeRule("refund-all", "what is entirely refunded is not refunded again",
			errorCodes+", charge_already_refunded", func(s stripeRun) {
				intent := s.paid(visa)
				s.Want("all", s.ok(s.post(refunds, "", "payment_intent="+intent)).text("amount"), "1999")
				s.want("again", s.refund(intent, "1", ""), "400 charge_already_refunded")
			}),
		stripeRule("refund-unpaid", "an intent that is not paid is not refunded",
			"docs.stripe.com/api/refunds/create", func(s stripeRun) {
				s.Want("status", s.refund(s.made(visa), "1", "").Status, 400)
			}),
	}
}

func refundEndRules() []Rule {
	return []Rule{
		stripeRule("refund-list", "the refunds of an intent are listed with their own metadata, the newest first, at once",
			"docs.stripe.com/api/refunds/list; consistency is not documented", func(s stripeRun) {
				intent := s.paid(visa)
				older := s.ok(s.refund(intent, "1", "")).text("id")
				s.Pass(time.Second)
				newer := s.ok(s.refund(intent, "2", "")).text("id")
				s.Want("ids", s.get(refunds, "payment_intent="+intent).ids(), []string{newer, older})
				s.Want("metadata", s.get(refunds+"/"+newer, "").text("metadata.refundId"), "2")
			}),
		stripeRule("refund-pending", "a refund that a bank takes days for is pending, and counts as refunded",
			testingPage+", pm_card_pendingRefund", func(s stripeRun) {
				intent := s.paid("pm_card_pendingRefund")
				s.want("refund", s.refund(intent, "1999", ""), "200 pending")
				s.want("another", s.refund(intent, "1", ""), "400 charge_already_refunded")
			}),
		stripeRule("refund-fails", "a refund that succeeded may fail later, and gives its amount back",
			testingPage+", pm_card_refundFail; "+refundPage, func(s stripeRun) {
				intent := s.paid("pm_card_refundFail")
				id := s.ok(s.refund(intent, "500", "")).text("id")
				if s.double() {
					s.change(func(m *stripetest.Machine) error { return m.ChangeRefund(id, stripetest.RefundFailed) })
				}
				s.Want("failed", s.Until(func() bool { return s.get(refunds+"/"+id, "").text("status") == "failed" }), true)
				read := s.get(intents+"/"+intent, "expand[]=latest_charge")
				s.Want("amount_refunded", read.text("latest_charge.amount_refunded"), "0")
			}),
		stripeRule("dispute", "a disputed charge is listed by its intent, and is not refunded",
			testingPage+", pm_card_createDispute; "+errorCodes+", charge_disputed", func(s stripeRun) {
				intent := s.paid("pm_card_createDispute")
				if server, is := s.Double.(*stripetest.Server); is {
					s.change(func(m *stripetest.Machine) error { _, err := m.OpenDispute(server.Now(), intent); return err })
				}
				s.Want("listed", s.Until(func() bool { return len(s.get("/v1/disputes", "payment_intent="+intent).ids()) == 1 }), true)
				s.want("refund", s.refund(intent, "1", ""), "400 charge_disputed")
			}),
	}
}

func webhookRules() []Rule {
	const page = "docs.stripe.com/webhooks"
	return []Rule{
		offline(needEndpoint, stripeRule("webhook-signature", "an event is signed over its raw body and the time, with the endpoint's secret",
			page+", Verify webhook signatures", func(s stripeRun) {
				for _, got := range s.events(nil, visa) {
					_, err := webhook.ConstructEventWithOptions(got.body, got.signature, secret, webhook.ConstructEventOptions{IgnoreTolerance: true})
					s.Want("signature", err, nil)
				}
			})),
		offline(needEndpoint, stripeRule("webhook-again", "an event is sent again until its endpoint answers with a 2xx, for three days",
			page+": for up to three days", func(s stripeRun) {
				s.Want("times", len(s.events([]int{500, 302, 200}, visa)), 3)
				began, all := s.Now(), s.events(slices.Repeat([]int{500}, 100), visa)
				hours := all[len(all)-1].at.Sub(began).Hours()
				s.Want("the last one is sent after one to three days", 24 < hours && hours <= 72, true)
			})),
		offline(needEndpoint, stripeRule("webhook-types", "a payment and a decline have the types of their outcomes",
			"docs.stripe.com/api/events/types", func(s stripeRun) {
				var types []string
				for _, got := range s.events(nil, visa, declines) {
					types = append(types, answer{Body: got.parsed}.text("type"))
				}
				slices.Sort(types) // Stripe does not promise an order
				s.Want("types", types, []string{"payment_intent.payment_failed", "payment_intent.succeeded"})
			})),
	}
}

// received is a request to a webhook endpoint.
type received struct {
	at        time.Time
	body      []byte
	signature string
	parsed    map[string]any
}

const secret = "whsec_pretend"

// events confirms payments at a double whose webhooks an endpoint gets, and returns what
// came within four days. The endpoint answers with these statuses, and then with 200.
func (s stripeRun) events(statuses []int, methods ...string) (all []received) {
	server := s.Double.(*stripetest.Server)
	known := 0
	server.Machine(func(m *stripetest.Machine) { known = len(m.Events()) })
	var mu sync.Mutex
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got := received{at: s.Now(), body: body, signature: r.Header.Get("Stripe-Signature")}
		_ = json.Unmarshal(body, &got.parsed)
		mu.Lock()
		defer mu.Unlock()
		if all = append(all, got); len(all) <= len(statuses) {
			w.WriteHeader(statuses[len(all)-1])
		}
	}))
	defer endpoint.Close()
	for _, method := range methods {
		s.confirm(s.made(method), "")
	}
	hooks := &stripetest.Webhooks{Server: server, URL: endpoint.URL, Secret: secret, Deliveries: func(e stripetest.Event) []time.Duration {
		return []time.Duration{0}[:min(1, max(0, e.Number-known))]
	}}
	ctx, stop := context.WithCancel(s.Context)
	var sending sync.WaitGroup
	sending.Go(func() { hooks.Run(ctx) })
	for range 96 {
		for !hooks.Idle() {
			time.Sleep(time.Millisecond)
		}
		s.Pass(time.Hour)
	}
	stop()
	sending.Wait()
	return all
}
