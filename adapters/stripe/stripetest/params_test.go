package stripetest_test

import (
	"strconv"
	"strings"
	"testing"

	"orderonce/adapters/stripe/stripetest"
)

// docs.stripe.com/keys: secret and restricted keys, test and live; error-low-level: 401 for an invalid key.
func TestAPIKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		only, key string
		want      int
	}{
		"a secret test key":       {"", "sk_test_a", 200},
		"a restricted test key":   {"", "rk_test_a", 200},
		"no key":                  {"", "", 401},
		"a word":                  {"", "secret", 401},
		"a publishable key":       {"", "pk_test_a", 401},
		"a live key":              {"", "sk_live_a", 401},
		"a live restricted key":   {"", "rk_live_a", 401},
		"the only key":            {"sk_test_a", "sk_test_a", 200},
		"not the only key":        {"sk_test_a", "sk_test_b", 401},
		"a live key, if the only": {"sk_live_a", "sk_live_a", 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Rules{Key: c.only})
			r := request("GET", root, "", "")
			r.APIKey = c.key
			answer := w.Do(w.now, r)
			if answer.Status != c.want {
				t.Errorf("got %d, want %d", answer.Status, c.want)
			}
			if strings.Contains(c.key, "live") && !strings.Contains(string(answer.Body()), "LIVE KEY REFUSED") {
				t.Errorf("a live key is refused in a whisper: %s", answer.Body())
			}
			if c.key != "" && c.want == 401 && strings.Contains(string(answer.Body()), c.key) {
				t.Errorf("the answer repeats the key: %s", answer.Body())
			}
		})
	}
}

// docs.stripe.com/error-codes: parameter_unknown, parameter_missing, parameter_invalid_integer, amount_too_large,
// resource_missing; docs.stripe.com/currencies: special cases; changelog 2023-08-16: automatic methods and return_url.
func TestCreateValidation(t *testing.T) {
	t.Parallel()
	const redirects, off = "&automatic_payment_methods[enabled]=true", "&automatic_payment_methods[allow_redirects]=never"
	for form, want := range map[string]string{
		"amount=1&currency=usd":                                           "200 ",
		"amount=99999999&currency=USD":                                    "200 ",
		"amount=100&currency=isk":                                         "200 ",
		"amount=1230&currency=kwd":                                        "200 ",
		"amount=1&currency=jpy":                                           "200 ",
		"amount=1&currency=usd&description=x&capture_method=automatic":    "200 ",
		"currency=usd":                                                    "400 parameter_missing amount",
		"amount=1":                                                        "400 parameter_missing currency",
		"amount=0&currency=usd":                                           "400 parameter_invalid_integer amount",
		"amount=-5&currency=usd":                                          "400 parameter_invalid_integer amount",
		"amount=19.99&currency=usd":                                       "400 parameter_invalid_integer amount",
		"amount=100000000&currency=usd":                                   "400 amount_too_large amount",
		"amount=1&amount=2&currency=usd":                                  "400 parameter_invalid amount",
		"amount=1&currency=zzz":                                           "400  currency",
		"amount=1&currency=us":                                            "400  currency",
		"amount=1&currency=usd eur":                                       "400  currency",
		"amount=150&currency=ugx":                                         "400  amount",
		"amount=1234&currency=kwd":                                        "400  amount",
		"amount=1&currency=usd&amonut=2":                                  "400 parameter_unknown amonut",
		"amount=1&currency=usd&metadata=x":                                "400 parameter_unknown metadata",
		"amount=1&currency=usd&shipping[name]=x":                          "400 parameter_unknown shipping[name]",
		"amount=1&currency=usd&customer=bob":                              "400 resource_missing customer",
		"amount=1&currency=usd&payment_method=card":                       "400 resource_missing payment_method",
		"amount=1&currency=usd&payment_method=pm_card_chargeDeclinedTypo": "400 resource_missing payment_method",
		"amount=1&currency=usd&capture_method=manual":                     "400  capture_method",
		"amount=1&currency=usd&metadata[k]=" + strings.Repeat("v", 501):   "400  metadata",
		"amount=1&currency=usd&off_session=true":                          "400  off_session",
		"amount=1&currency=usd&confirm=true" + off:                        "400 payment_intent_unexpected_state payment_method",

		"amount=1&currency=usd&payment_method=pm_1&confirm=true":                                      "400  return_url",
		"amount=1&currency=usd&payment_method=pm_1&confirm=true" + redirects:                          "400  return_url",
		"amount=1&currency=usd&payment_method=pm_1&confirm=true" + redirects + "&return_url=http://x": "200 ",
		"amount=1&currency=usd&payment_method=pm_1&confirm=true&off_session=true":                     "200 ",
		"amount=1&currency=usd&payment_method=pm_1&confirm=true" + off:                                "200 ",
		"amount=1&currency=usd&payment_method=pm_1&confirm=true&payment_method_types[]=card":          "200 ",
		"amount=1&currency=usd&payment_method=pm_1&confirm=true&error_on_requires_action=true" + off:  "400  error_on_requires_action",
		"amount=1&currency=usd&payment_method=pm_card_authenticationRequired&confirm=true&error_on_requires_action=true" +
			"&payment_method_types[0]=card": "402 authentication_required ",
	} {
		t.Run(form[:min(len(form), 100)], func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Rules{})
			answer := w.post(root, "", form)
			got := strconv.Itoa(answer.Status) + " "
			if answer.Error != nil {
				got += answer.Error.Code + " " + answer.Error.Param
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if answer.Status == 400 && len(w.Intents()) != 0 {
				t.Error("a refused creation left an intent")
			}
		})
	}
}

func TestOtherValidation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	id := w.create("pm_card_visa")
	for _, c := range []struct{ method, path, form, want string }{
		{"POST", root + "/" + id + "/confirm", "off_session=maybe", "400 invalid_request_error"},
		{"POST", root + "/" + id + "/confirm", "amount=1", "400 invalid_request_error parameter_unknown"},
		{"POST", root + "/" + id + "/confirm", "payment_method=card", "400 invalid_request_error resource_missing"},
		{"POST", root + "/" + id + "/confirm", "error_on_requires_action=true", "400 invalid_request_error"},
		{"POST", root + "/" + id + "/cancel", "cancellation_reason=boredom", "400 invalid_request_error"},
		{"GET", root, "limit=0", "400 invalid_request_error parameter_invalid_integer"},
		{"GET", root, "limit=101", "400 invalid_request_error parameter_invalid_integer"},
		{"GET", root, "starting_after=pi_9", "400 invalid_request_error resource_missing"},
		{"POST", root + "/" + id + "/capture", "", "404 invalid_request_error"},
		{"POST", root + "/" + id, "", "404 invalid_request_error"},
		{"DELETE", root + "/" + id, "", "404 invalid_request_error"},
		{"GET", root + id, "", "404 invalid_request_error"},
		{"GET", "/v1/charges", "", "404 invalid_request_error"},
	} {
		wantSum(t, c.method+" "+c.path+" "+c.form, w.Do(w.now, request(c.method, c.path, "", c.form)), c.want)
	}
	wantSum(t, "nothing happened to it", w.get(root+"/"+id), "200 requires_confirmation")
}
