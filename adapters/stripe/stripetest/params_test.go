package stripetest_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"orderonce/adapters/stripe/stripetest"
)

// docs.stripe.com/keys: secret and restricted keys, test and live; error-low-level: 401
// for an invalid key.
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
			res := w.Do(w.now, r)
			if res.Status != c.want {
				t.Errorf("got %d, want %d", res.Status, c.want)
			}
			if strings.Contains(c.key, "live") && !strings.Contains(string(res.Body()), "LIVE KEY REFUSED") {
				t.Errorf("got %s, want LIVE KEY REFUSED", res.Body())
			}
			if c.key != "" && c.want == 401 && strings.Contains(string(res.Body()), c.key) {
				t.Errorf("got %s, want no key in it", res.Body())
			}
		})
	}
}

// docs.stripe.com/error-codes: parameter_unknown, parameter_missing,
// parameter_invalid_integer, amount_too_large, resource_missing;
// docs.stripe.com/currencies: special cases; changelog 2023-08-16: automatic methods and
// return_url.
func TestCreateValidation(t *testing.T) {
	t.Parallel()
	const redirects, never = "&automatic_payment_methods[enabled]=true", "&automatic_payment_methods[allow_redirects]=never"
	const off = redirects + never
	for form, want := range map[string]string{
		"amount=50&currency=usd":                                           "200 ",
		"amount=99999999&currency=USD":                                     "200 ",
		"amount=100&currency=isk":                                          "200 ",
		"amount=1230&currency=kwd":                                         "200 ",
		"amount=50&currency=jpy":                                           "200 ",
		"amount=50&currency=usd&description=x&capture_method=automatic":    "200 ",
		"currency=usd":                                                     "400 parameter_missing amount",
		"amount=1":                                                         "400 parameter_missing currency",
		"amount=0&currency=usd":                                            "400 parameter_invalid_integer amount",
		"amount=-5&currency=usd":                                           "400 parameter_invalid_integer amount",
		"amount=19.99&currency=usd":                                        "400 parameter_invalid_integer amount",
		"amount=100000000&currency=usd":                                    "400 amount_too_large amount",
		"amount=999999999999&currency=idr":                                 "200 ",
		"amount=1000000000000&currency=idr":                                "400 amount_too_large amount",
		"amount=99999999999&currency=lbp":                                  "200 ",
		"amount=100000000000&currency=lbp":                                 "400 amount_too_large amount",
		"amount=9999999999&currency=jpy":                                   "200 ",
		"amount=10000000000&currency=jpy":                                  "400 amount_too_large amount",
		"amount=999999999&currency=inr":                                    "200 ",
		"amount=1000000000&currency=inr":                                   "400 amount_too_large amount",
		"amount=100&currency=xcg":                                          "200 ",
		"amount=100&currency=bgn":                                          "400  currency",
		"amount=100000000&currency=zzz":                                    "400  currency",
		"amount=1&amount=2&currency=usd":                                   "400 parameter_invalid amount",
		"amount=1&currency=zzz":                                            "400  currency",
		"amount=1&currency=us":                                             "400  currency",
		"amount=50&currency=usd eur":                                       "400  currency",
		"amount=150&currency=ugx":                                          "400  amount",
		"amount=1234&currency=kwd":                                         "400  amount",
		"amount=50&currency=usd&amonut=2":                                  "400 parameter_unknown amonut",
		"amount=50&currency=usd&metadata=x":                                "400 parameter_unknown metadata",
		"amount=50&currency=usd&shipping[name]=x":                          "400 parameter_unknown shipping[name]",
		"amount=50&currency=usd&customer=bob":                              "400 resource_missing customer",
		"amount=50&currency=usd&payment_method=card":                       "400 resource_missing payment_method",
		"amount=50&currency=usd&payment_method=pm_card_chargeDeclinedTypo": "400 resource_missing payment_method",
		"amount=50&currency=usd&capture_method=manual":                     "400  capture_method",
		"amount=50&currency=usd&metadata[k]=" + strings.Repeat("v", 501):   "400  metadata",
		"amount=50&currency=usd&off_session=true":                          "400  off_session",
		"amount=50&currency=usd&confirm=true" + off:                        "400 payment_intent_unexpected_state payment_method",

		"amount=50&currency=usd&payment_method=pm_1&confirm=true":                                      "400  return_url",
		"amount=50&currency=usd&payment_method=pm_1&confirm=true" + redirects:                          "400  return_url",
		"amount=50&currency=usd&payment_method=pm_1&confirm=true" + redirects + "&return_url=http://x": "200 ",
		"amount=50&currency=usd&payment_method=pm_1&confirm=true&off_session=true":                     "200 ",
		"amount=50&currency=usd&payment_method=pm_1&confirm=true" + off:                                "200 ",
		"amount=50&currency=usd&payment_method=pm_1&confirm=true&payment_method_types[]=card":          "200 ",
		"amount=50&currency=usd&payment_method_types[]=card" + redirects:                               "400  automatic_payment_methods",
		"amount=50&currency=usd&payment_method=pm_1&confirm=true&error_on_requires_action=true" + off:  "400  error_on_requires_action",
		"amount=50&currency=usd&payment_method=pm_card_authenticationRequired&confirm=true&error_on_requires_action=true" +
			"&payment_method_types[0]=card": "402 authentication_required ",

		"amount=50&currency=usd" + never: "400 parameter_missing automatic_payment_methods[enabled]",
	} {
		t.Run(form[:min(len(form), 100)], func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Rules{})
			res := w.post(root, "", form)
			got := strconv.Itoa(res.Status) + " "
			if res.Error != nil {
				got += res.Error.Code + " " + res.Error.Param
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if res.Status == 400 && len(w.Intents()) != 0 {
				t.Error("a refused creation left an intent")
			}
		})
	}
}

// docs.stripe.com/currencies, "Minimum charge amount by currency";
// docs.stripe.com/error-codes: amount_too_small.
func TestSmallAmounts(t *testing.T) {
	t.Parallel()
	const anyAmount, small = "200 requires_payment_method", "400 invalid_request_error amount_too_small"
	for currency, least := range map[string]int64{
		"usd": 50, "eur": 50, "jpy": 50, "krw": 50, "idr": 50, "gbp": 30, "aed": 200, "pln": 200, "dkk": 250, "nok": 300, "sek": 300,
		"hkd": 400, "mxn": 1000, "thb": 1000, "czk": 1500, "huf": 17_500, "kes": 1, "isk": 100, "kwd": 10,
	} {
		w := newWorld(t, stripetest.Rules{})
		form := func(amount int64) string { return fmt.Sprintf("amount=%d&currency=%s", amount, currency) }
		if got := summary(w.post(root, "", form(least))); got != anyAmount {
			t.Errorf("%s: got %q, want %q", form(least), got, anyAmount)
		}
		if least < 30 || currency == "isk" { // these have no minimum charge amount
			continue
		}
		if got := summary(w.post(root, "", form(least-1))); got != small {
			t.Errorf("%s: got %q, want %q", form(least-1), got, small)
		}
	}
}

// Stripe's test names are a list; a name that is not on it must not turn into a card that
// succeeds.
func TestUnknownTestNames(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]bool{
		"pm_card_de": true, "pm_card_th_credit": true, "pm_card_gb_debit": true, "pm_card_ae_mastercard": true, "pm_canaryCard": true,
		"pm_card_visaa": false, "pm_card_": false, "pm_card_d": false, "pm_card_DE": false, "pm_card_de_": false, "pm_card_de_gold": false,
		"pm_card_visa_chargeDeclinedFraudulent": false, "pm_card_chargeDeclinedTypo": false, "pm_card_takesDays": false,
		"pm_usBankAccount_success": false, "pm_usBankAccount_": false, "pm_": false, "tok_visa": false,
	} {
		res := newWorld(t, stripetest.Rules{}).post(root, "", creation(method))
		if got := res.Status == 200; got != want {
			t.Errorf("%s: got %s, want it known: %t", method, summary(res), want)
			continue
		}
		if text := "No such PaymentMethod: '" + method + "'"; !want && res.Error.Message != text {
			t.Errorf("got %q, want %q", res.Error.Message, text)
		}
	}
}

// docs.stripe.com/keys: a key belongs to an account and cannot access another one's
// objects.
func TestAccounts(t *testing.T) {
	t.Parallel()
	const ours, restricted, theirs = "sk_test_ours", "rk_test_ours", "sk_test_theirs"
	testScenarios(t, map[string]scenario{"an account has its own intents and keys": {exchanges: func(w *world) []exchange {
		as := func(apiKey, method, path, key, form string) stripetest.Response {
			r := request(method, path, key, form)
			r.APIKey = apiKey
			return w.Do(w.now, r)
		}
		id := as(ours, "POST", root, "k", creation("pm_card_visa")).Intent.ID
		exchanges := []exchange{
			{as(theirs, "POST", root, "k", "amount=50&currency=usd"), "200 requires_payment_method"},
			{as(theirs, "GET", root+"/"+id, "", ""), "404 invalid_request_error resource_missing"},
			{as(theirs, "POST", root+"/"+id+"/confirm", "", ""), "404 invalid_request_error resource_missing"},
			{as(theirs, "GET", root, "", "starting_after="+id), resourceMissing},
			{as(restricted, "GET", root+"/"+id, "", ""), confirmable},
			{as(restricted, "POST", root, "k", creation("pm_card_visa")), confirmable + " replayed"},
		}
		if got := as(theirs, "GET", root, "", "").List.Intents; len(got) != 1 || got[0].ID == id {
			w.t.Errorf("they list %v, want their own intent", got)
		}
		return exchanges
	}}})
}

func TestOtherValidation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	id := w.create("pm_card_visa")
	for _, c := range []struct{ method, path, form, want string }{
		{"POST", root + "/" + id + "/confirm", "off_session=maybe", "400 invalid_request_error"},
		{"POST", root + "/" + id + "/confirm", "amount=1", parameterUnknown},
		{"POST", root + "/" + id + "/confirm", "off_session=true&expand[]=latest_charge", parameterUnknown},
		{"POST", root + "/" + id + "/confirm", "payment_method=card", resourceMissing},
		{"POST", root + "/" + id + "/confirm", "error_on_requires_action=true", "400 invalid_request_error"},
		{"POST", root + "/" + id + "/cancel", "cancellation_reason=boredom", "400 invalid_request_error"},
		{"GET", root, "limit=0", "400 invalid_request_error parameter_invalid_integer"},
		{"GET", root, "limit=101", "400 invalid_request_error parameter_invalid_integer"},
		{"GET", root, "starting_after=pi_9", resourceMissing},
		{"POST", root + "/" + id + "/capture", "", "404 invalid_request_error"},
		{"POST", root + "/" + id, "", "404 invalid_request_error"},
		{"DELETE", root + "/" + id, "", "404 invalid_request_error"},
		{"GET", root + id, "", "404 invalid_request_error"},
		{"GET", "/v1/charges", "", "404 invalid_request_error"},
		{"GET", root + "/search", "query=status:'succeeded'", "400 invalid_request_error"},
		{"GET", root + "/search", "", "400 invalid_request_error parameter_missing"},
		{"GET", root + "/search", "query=metadata['a']:'b'&page=2", parameterUnknown},
	} {
		if got := summary(w.Do(w.now, request(c.method, c.path, "", c.form))); got != c.want {
			t.Errorf("%s: got %q, want %q", c.method+" "+c.path+" "+c.form, got, c.want)
		}
	}
	if got := summary(w.read(id)); got != confirmable {
		t.Errorf("the intent afterwards: got %q, want %q", got, confirmable)
	}
	if got := w.get("/v1/charges").Error.Message; !strings.Contains(got, "Not modeled") {
		t.Errorf("the list of charges says %q, want that it is not modeled", got)
	}
}
