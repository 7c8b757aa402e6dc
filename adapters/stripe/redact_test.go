package stripe_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
)

// Stripe's messages may repeat the values of the request, such as a person's name in
// place of a customer's id.
func TestErrorsDoNotRepeatTheRequest(t *testing.T) {
	t.Parallel()
	for _, names := range [][2]string{
		{"john_smith", "jane_doe"}, {"john_smith", "john_smith_junior"}, {"a_b", "payment_method"}, {"cus_1", "cus_12"},
	} {
		customer, method := names[0], names[1]
		o := newOrder(t, method, payer(customer))
		key := order.PrepareKey(scope, o.ID())
		for _, message := range []string{
			"No such customer: '" + customer + "'",
			"No such customer: \"" + customer + "\"",
			"No such customer: `" + customer + "`",
			"No such customer: \u2018" + customer + "\u2019",
			"No such customer: \u201c" + customer + "\u201d",
			"No such customer: " + customer,
			"No such customer: " + customer + "; no such PaymentMethod: " + method,
			customer + " can't pay with '" + method + "'s card",
			"No such PaymentMethod: '" + method + "' (of (" + customer + "))",
			"id=" + customer + "&id=" + method,
			"'" + customer,
			"unclosed '" + method + " and " + customer,
			"Keys can only be used with the same parameters: '" + key.String() + "', " + key.String(),
			"Invalid API Key provided: " + testKey,
			"fingerprint " + string(o.Fingerprint()),
		} {
			_, err := responding(t, response{400, false, errorWithMessage(t, message)}).Prepare(t.Context(), o, key)
			if kindOf(t, err) != order.KindRefused {
				t.Fatalf("%q: got %v, want %s", message, err, order.KindRefused)
			}
			shown := strings.Replace(err.Error(), "prepare order ORD-1:", "", 1)
			for _, secret := range []string{customer, method, key.String(), testKey, string(o.Fingerprint())} {
				if strings.Contains(shown, secret) {
					t.Errorf("%q: got %q, want it without %q", message, err, secret)
				}
			}
		}
	}
}

// TestErrorsKeepThePublicPartsOfAMessage lists messages and what is left of them.
func TestErrorsKeepThePublicPartsOfAMessage(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"No such payment_intent: 'pi_3Pretend'":                          "No such payment_intent: 'pi_3Pretend'",
		"No such customer: 'john_smith'":                                 "No such customer: '[redacted]'",
		"No such customer: 'John Smith'":                                 "No such customer: '[redacted]'",
		"No such customer: ''":                                           "No such customer: '[redacted]'",
		"No such PaymentMethod: 'pm_1'; a similar object exists":         "No such PaymentMethod: '[redacted]'; a similar object exists",
		"Received unknown parameter: return_url":                         "Received unknown parameter: return_url",
		"You passed an empty string for 'payment_method'.":               "You passed an empty string for 'payment_method'.",
		"Missing `return_url` and `automatic_payment_methods[enabled]`.": "Missing `return_url` and `automatic_payment_methods[enabled]`.",
		"Invalid `metadata[john_smith]`.":                                "Invalid `[redacted]`.",
		"You can't confirm it because it's paid, and that's all.":        "You can't confirm it because it's paid, and that's all.",
		"account 'acct_1NuzflB0DBR1HOyc', request 'req_1'":               "account 'acct_1NuzflB0DBR1HOyc', request 'req_1'",
		"Having the 'rak_charge_read' permission would allow this.":      "Having the 'rak_charge_read' permission would allow this.",
		"The provided key 'rk_test_*****QzX' does not suffice.":          "The provided key '[redacted]' does not suffice.",
		"the key rk_test_*****QzX":                                       "the key rk_[redacted]",
		"secret 'pi_3Pretend_secret_2', pi_3Pretend_secret_2":            "secret '[redacted]', pi_[redacted]",
		"'a' 'b'":                    "'[redacted]' '[redacted]'",
		"'a''b'":                     "'[redacted]''[redacted]'",
		"'O'Brien' is no customer":   "'[redacted]' is no customer",
		"\"a 'b' c\" and d":          "\"[redacted]\" and d",
		"\u201ca\u201d \u201cb":      "\u201c[redacted]\u201d \u201c[redacted]",
		"it ends in '":               "it ends in '[redacted]",
		"'amount":                    "'[redacted]",
		"caf\u00e9'x' and \xff'y'":   "caf\u00e9'x' and \ufffd'[redacted]'",
		"order ORD-1 of 2500 eur":    "order ORD-1 of 2500 eur",
		"a\u2019pi_1, \u00b2cus_abc": "a\u2019pi_1, \u00b2cus_[redacted]",
	} {
		p := responding(t, response{400, false, errorWithMessage(t, message)})
		_, err := methods(t, p)["confirm"](t.Context())
		_, got, _ := strings.Cut(err.Error(), "status 400 invalid_request_error: ")
		if got = strings.TrimSuffix(got, " (request req_pretend)"); got != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
}

// TestErrorsKeepParameterNames quotes every parameter that Stripe may require of our
// requests, and some other words.
func TestErrorsKeepParameterNames(t *testing.T) {
	t.Parallel()
	const names = `amount currency customer payment_method payment_method_types payment_method_data payment_method_options
		payment_method_configuration capture_method confirmation_method confirm automatic_payment_methods enabled
		allow_redirects off_session return_url error_on_requires_action setup_future_usage mandate mandate_data metadata
		orderId scope fingerprint description expand latest_charge intent payment_intent idempotency_key query
		metadata[orderId] expand[] automatic_payment_methods[allow_redirects] rak_charge_read rak_payment_intent_write
		pi_3Pretend req_1 acct_1`
	const others = `john_smith john Smith 4242 pm_1 cus_1 pi_1_secret_2 amounts metadata[john] [] rak_ rak_john
		xpi_1 pi_ api_1 rak_a_readx`
	for list, shown := range map[string]bool{names: true, others: false} {
		for word := range strings.FieldsSeq(list) {
			want := "see '" + word + "'"
			if !shown {
				want = "see '[redacted]'"
			}
			p := responding(t, response{400, false, errorWithMessage(t, "see '"+word+"'")})
			_, err := methods(t, p)["confirm"](t.Context())
			if err == nil || !strings.Contains(err.Error(), ": "+want+" (request") {
				t.Errorf("%s: got %v, want %s", word, err, want)
			}
		}
	}
}

func TestErrorsKeepValuesThatAreNotPersonal(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]string{
		"prepare": "amount 2500 eur, capture_method automatic, enabled true, allow_redirects never, order ORD-1, scope test",
		"confirm": "off_session true",
	} {
		_, err := methods(t, responding(t, response{400, false, errorWithMessage(t, message)}))[name](t.Context())
		if err == nil || !strings.Contains(err.Error(), ": "+message+" (request") {
			t.Errorf("%s: got %v, want it to contain %q", name, err, message)
		}
	}
}

// A proxy may send parts of a request back in a response that is not HTTP, and net/http
// quotes it in its error.
func TestNetworkErrorsDoNotRepeatTheRequest(t *testing.T) {
	t.Parallel()
	o := newOrder(t, "jane_doe", payer("john_smith"))
	for text, want := range map[string]string{
		`malformed HTTP response "{\"customer\":\"john_smith\",\"name\":\"Smith\"}"`: "malformed HTTP response [redacted]",
		"malformed MIME header line: john_smith Bearer " + testKey:                   "malformed MIME header line: [redacted] Bearer [redacted]",
		"dial tcp 127.0.0.1:1: connect: connection refused":                          "dial tcp 127.0.0.1:1: connect: connection refused",
		`one " alone`: `one "[redacted]`,
		`""`:          "[redacted]",
	} {
		cause := errors.New(text)
		p := newPayments(t, "https://proxy.test/john", roundTripFunc(func(*http.Request) (*http.Response, error) {
			return nil, cause
		}))
		_, err := p.Prepare(t.Context(), o, order.PrepareKey(scope, o.ID()))
		if got, want := err.Error(), "unknown: prepare order ORD-1: "+want; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if !errors.Is(err, cause) {
			t.Errorf("%q: got %v, want it to wrap its cause", text, err)
		}
	}
}

// FuzzErrorsDoNotRepeatTheRequest holds for every message around the values of a request.
func FuzzErrorsDoNotRepeatTheRequest(f *testing.F) {
	f.Add("No such customer: '", "'")
	f.Add("can't find ", "'s")
	f.Add("`", "")
	f.Add("\u2018\xff", "\u2019")
	f.Fuzz(func(t *testing.T, before, after string) {
		o := newOrder(t, "jane_doe", payer("john_smith"))
		res := response{400, false, errorWithMessage(t, before+"john_smith"+after+"jane_doe"+before)}
		_, err := responding(t, res).Prepare(t.Context(), o, order.PrepareKey(scope, o.ID()))
		if strings.Contains(before+after, "john") || strings.Contains(before+after, "jane") {
			return
		}
		if got := err.Error(); strings.Contains(got, "john_smith") || strings.Contains(got, "jane_doe") {
			t.Errorf("got %q, want it without the values of the request", got)
		}
	})
}

func TestErrorsDoNotRepeatAnAPIKeyOfAnyForm(t *testing.T) {
	t.Parallel()
	const odd = "hunter2hunter2"
	res := response{401, false, errorWithMessage(t, "Invalid API Key provided: "+odd)}
	p := stripe.New(stripe.Options{Key: odd + "\n", Transport: roundTripFunc(res.roundTrip)})
	for name, call := range methods(t, p) {
		if _, err := call(t.Context()); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want an error without the key", name, err)
		}
	}
}
