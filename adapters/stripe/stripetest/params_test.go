package stripetest_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

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
		"a publishable key":       {"", "pk_test_a", 401},
		"a live key":              {"", "sk_live_a", 401},
		"a live restricted key":   {"", "rk_live_a", 401},
		"the only key":            {"sk_test_a", "sk_test_a", 200},
		"not the only key":        {"sk_test_a", "sk_test_b", 401},
		"a live key, if the only": {"sk_live_a", "sk_live_a", 401},
	} {
		w := newWorld(t, stripetest.Rules{Key: c.only})
		res := w.as(c.key, "GET", root, "", "")
		if res.Status != c.want {
			t.Errorf("%s: got %d, want %d", name, res.Status, c.want)
		}
		if strings.Contains(c.key, "live") != strings.Contains(string(res.Body()), "LIVE KEY REFUSED") {
			t.Errorf("%s: got %s, want LIVE KEY REFUSED for a live key", name, res.Body())
		}
		if c.key != "" && c.want == 401 && strings.Contains(string(res.Body()), c.key) {
			t.Errorf("%s: got %s, want no key in it", name, res.Body())
		}
	}
}

// docs.stripe.com/error-codes: parameter_unknown, parameter_missing,
// parameter_invalid_integer, amount_too_large, resource_missing;
// docs.stripe.com/currencies: special cases, minimum and maximum amounts.
func TestCreateValidation(t *testing.T) {
	t.Parallel()
	const ok, tooLarge, tooSmall = "200 ", "400 amount_too_large amount", "400 amount_too_small amount"
	const badCurrency, badAmount = "400  currency", "400 parameter_invalid_integer amount"
	tests := map[string]string{
		"currency=usd":                          "400 parameter_missing amount",
		"amount=1":                              "400 parameter_missing currency",
		"amount=1&amount=2&currency=usd":        "400 parameter_invalid amount",
		"amount=50&currency=usd eur":            badCurrency,
		"amount=50&currency=usd&amonut=2":       "400 parameter_unknown amonut",
		"amount=50&currency=usd&metadata=x":     "400 parameter_unknown metadata",
		"amount=50&currency=usd&expand[]=x":     "400 parameter_unknown expand[]",
		"amount=50&currency=usd&customer=bob":   "400 resource_missing customer",
		"amount=50&currency=usd&description=x":  ok,
		"amount=50&currency=usd&confirm=true":   "400 payment_intent_unexpected_state payment_method",
		"amount=50&currency=usd&confirm=maybe":  "400  confirm",
		"amount=50&currency=usd&off_session=no": "400  off_session",

		"amount=50&currency=usd&payment_method=card":                               "400 resource_missing payment_method",
		"amount=50&currency=usd&capture_method=manual":                             "400  capture_method",
		"amount=50&currency=usd&metadata[k]=" + strings.Repeat("v", 501):           "400  metadata",
		"amount=50&currency=usd&payment_method=pm_1&confirm=true":                  "400  off_session",
		"amount=50&currency=usd&payment_method=pm_1&confirm=true&off_session=true": ok,
		"amount=50&currency=usd&automatic_payment_methods[allow_redirects]=never":  "400 parameter_missing automatic_payment_methods[enabled]",
		"amount=50&currency=usd&automatic_payment_methods[enabled]=false":          "400  automatic_payment_methods[enabled]",
	}
	for amount, want := range map[string]string{
		"50 usd": ok, "50 USD": ok, "0 usd": badAmount, "-5 usd": badAmount, "19.99 usd": badAmount,
		"1 zzz": badCurrency, "100000000 zzz": badCurrency, "1 us": badCurrency, "100 bgn": badCurrency, "100 xcg": ok,
		"100 isk": ok, "150 ugx": "400  amount", "1230 kwd": ok, "1234 kwd": "400  amount",
		"99999999 usd": ok, "100000000 usd": tooLarge, "999999999999 idr": ok, "1000000000000 idr": tooLarge,
		"99999999999 lbp": ok, "100000000000 lbp": tooLarge, "9999999999 jpy": ok, "10000000000 jpy": tooLarge,
		"999999999 inr": ok, "1000000000 inr": tooLarge,
		"49 usd": tooSmall, "49 eur": tooSmall, "30 gbp": ok, "29 gbp": tooSmall, "250 dkk": ok, "249 dkk": tooSmall,
		"17500 huf": ok, "17499 huf": tooSmall, "1 kes": ok,
	} {
		number, currency, _ := strings.Cut(amount, " ")
		tests["amount="+number+"&currency="+currency] = want
	}
	for form, want := range tests {
		w := newWorld(t, stripetest.Rules{})
		res := w.post(root, "", form)
		got := strconv.Itoa(res.Status) + " "
		if res.Error != nil {
			got += res.Error.Code + " " + res.Error.Param
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", form, got, want)
		}
		if res.Status == 400 && len(w.Intents()) != 0 {
			t.Errorf("%s: a refused creation left an intent", form)
		}
	}
}

// docs.stripe.com/keys: a key belongs to an account and cannot access another one's
// objects.
func TestAccounts(t *testing.T) {
	t.Parallel()
	const ours, restricted, theirs = "sk_test_ours", "rk_test_ours", "sk_test_theirs"
	testScenarios(t, map[string]scenario{"an account has its own intents and keys": {exchanges: func(w *world) []exchange {
		id := w.as(ours, "POST", root, "k", creation("pm_card_visa")).Intent.ID
		exchanges := []exchange{
			{w.as(theirs, "POST", root, "k", "amount=50&currency=usd"), "200 requires_payment_method"},
			{w.as(theirs, "GET", root+"/"+id, "", ""), notFound + " resource_missing"},
			{w.as(theirs, "POST", root+"/"+id+"/confirm", "", ""), notFound + " resource_missing"},
			{w.as(theirs, "GET", root, "", "starting_after="+id), resourceMissing},
			{w.as(theirs, "POST", refunds, "", "payment_intent="+id), resourceMissing},
			{w.as(theirs, "GET", disputes, "", "payment_intent="+id), resourceMissing},
			{w.as(restricted, "GET", root+"/"+id, "", ""), confirmable},
			{w.as(restricted, "POST", root, "k", creation("pm_card_visa")), confirmable + " replayed"},
		}
		if got := ids(w.t, w.as(theirs, "GET", root, "", "")); got != "2" {
			w.t.Errorf("they list %v, want their own intent", got)
		}
		return exchanges
	}}})
}

// docs.stripe.com/expand and docs.stripe.com/stripe-apps/reference/permissions: what is
// expanded needs its permission.
func TestPermissions(t *testing.T) {
	t.Parallel()
	const restricted = "rk_test_pretend"
	for _, c := range []struct{ lacks, key, path, form, want string }{
		{"rak_charge_read", restricted, root + "/pi_000001", "expand[]=latest_charge", forbidden},
		{"rak_charge_read", restricted, root + "/pi_000001", "", succeeded},
		{"rak_charge_read", "sk_test_pretend", root + "/pi_000001", "expand[]=latest_charge", succeeded},
		{"rak_charge_read", restricted, root, "expand[]=data.latest_charge", forbidden},
		{"rak_charge_read", restricted, refunds, "", forbidden},
		{"rak_charge_read", restricted, disputes, "", "200"},
		{"rak_customer_read", restricted, root + "/pi_000001", "expand[]=customer", forbidden},
		{"rak_customer_read", restricted, root + "/pi_000001", "expand[]=latest_charge", succeeded},
		{"rak_dispute_read", restricted, disputes, "", forbidden},
	} {
		w := newWorld(t, stripetest.Rules{Lacks: c.lacks})
		w.pay("pm_card_visa")
		got := w.as(c.key, "GET", c.path, "", c.form)
		if summary(got) != c.want || got.Error != nil && !strings.Contains(got.Error.Message, "Having the '"+c.lacks+"'") {
			t.Errorf("%+v: got %s", c, got.Body())
		}
	}
}

func TestOtherValidation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	id := w.create("pm_card_visa")
	for _, c := range []struct{ method, path, form, want string }{
		{"POST", root + "/" + id + "/confirm", "", invalidRequest},
		{"POST", root + "/" + id + "/confirm", "off_session=maybe", invalidRequest},
		{"POST", root + "/" + id + "/confirm", "amount=1", parameterUnknown},
		{"POST", root + "/" + id + "/confirm", "off_session=true&expand[]=latest_charge", parameterUnknown},
		{"POST", root + "/" + id + "/confirm", "off_session=true&payment_method=card", resourceMissing},
		{"POST", root + "/" + id + "/cancel", "cancellation_reason=boredom", invalidRequest},
		{"GET", root + "/" + id, "expand[]=charges", invalidRequest},
		{"GET", root + "/" + id, "expand[0]=latest_charge&expand[1]=payment_method", invalidRequest},
		{"GET", root, "expand[]=latest_charge", invalidRequest},
		{"GET", root, "limit=0", notAnInteger},
		{"GET", root, "limit=101", notAnInteger},
		{"GET", root, "created[gte]=x", notAnInteger},
		{"GET", root, "created[gt]=1", parameterUnknown},
		{"GET", root, "starting_after=pi_9", resourceMissing},
		{"GET", disputes, "starting_after=du_000009", resourceMissing},
		{"GET", disputes, "payment_intent=pi_000009", resourceMissing},
		{"GET", disputes, "intent=pi_000001", parameterUnknown},
		{"GET", refunds + "/re_nope", "", notFound + " resource_missing"},
		{"POST", root + "/" + id + "/capture", "", notFound},
		{"POST", root + "/" + id, "", notFound},
		{"DELETE", root + "/" + id, "", notFound},
		{"GET", root + id, "", notFound},
		{"GET", "/v1/charges", "", notFound},
		{"GET", root + "/search", "query=status:'succeeded'", invalidRequest},
		{"GET", root + "/search", "", invalidRequest + " parameter_missing"},
		{"GET", root + "/search", "query=metadata['a']:'b'&page=2", parameterUnknown},
	} {
		if got := summary(w.Do(w.now, request(c.method, c.path, "", c.form))); got != c.want {
			t.Errorf("%s: got %q, want %q", c.method+" "+c.path+" "+c.form, got, c.want)
		}
	}
	if got := summary(w.read(id)); got != confirmable {
		t.Errorf("the intent afterwards: got %q, want %q", got, confirmable)
	}
}

// docs.stripe.com/api/payment_intents/list: newest first, "limit can range between 1 and
// 100"; docs.stripe.com/api/pagination: starting_after is an object id.
func TestLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{SearchLag: time.Minute, RefundLag: time.Minute})
	first, second := w.pay("pm_card_visa"), w.pay("pm_card_amex")
	w.post(root, "", "amount=50&currency=usd&customer=cus_b")
	for range 12 {
		w.refund(first, "1", "")
	}
	w.refund(second, "1", "")
	for _, intent := range []string{first, second, first, first} {
		_, err := w.OpenDispute(w.now, intent)
		must(t, err)
	}
	const found, charge = "query=metadata['orderId']:'ORD1' AND metadata['scope']:'test'", "expand[]=latest_charge.refunds"
	for path, form := range map[string]string{root + "/search": found, refunds: ""} {
		if got := ids(t, w.get(path, form)); got != "" {
			t.Errorf("%s within the lag: got %v, want none", path, got)
		}
	}
	w.now = w.now.Add(time.Minute)
	since := fmt.Sprint(w.now.Add(-time.Minute).Unix())
	for _, c := range []struct{ path, form, want string }{
		{root, "", "3 2 1"},
		{root, "customer=cus_1&limit=1", "2 +"},
		{root, "customer=cus_1&limit=2", "2 1"},
		{root, "customer=cus_1&starting_after=pi_000002", "1"},
		{root, "customer=cus_none", ""},
		{root, "created[gte]=" + since, "3 2 1"},
		{root, "created[lt]=" + since, ""},
		{root + "/search", found, "2 1"},
		{root + "/search", "query=metadata['orderId']:'ORD2'", ""},
		{disputes, "", "4 3 2 1"},
		{disputes, "payment_intent=" + first, "4 3 1"},
		{disputes, "starting_after=du_000003&limit=1", "2 +"},
		{refunds, "", "13 12 11 10 9 8 7 6 5 4 +"},
		{refunds, "limit=100&payment_intent=" + first, "12 11 10 9 8 7 6 5 4 3 2 1"},
		{refunds, "payment_intent=" + second, "13"},
		{refunds, "starting_after=re_000003", "2 1"},
	} {
		if got := ids(t, w.get(c.path, c.form)); got != c.want {
			t.Errorf("%s?%s: got %v, want %v", c.path, c.form, got, c.want)
		}
	}
	for path, want := range map[string]string{
		root + "?expand[]=data.latest_charge":           `"amount_refunded":12`,
		root + "/" + first + "?" + charge:               `"has_more":true,"object":"list","url":"/v1/charges/ch_000001/refunds"`,
		root + "/pi_000003?" + charge:                   `"latest_charge":null`,
		root + "/" + first + "?expand[]=customer":       `"email":"1@customers.invalid"`,
		root + "/pi_000003?expand[]=customer":           `"email":"b@customers.invalid"`,
		root + "/" + second + "?expand[]=latest_charge": `"disputed":true`,
	} {
		before, form, _ := strings.Cut(path, "?")
		if got := w.get(before, form).Body(); !strings.Contains(string(got), want) {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	w.DeleteCustomer("cus_b")
	if got := w.get(root+"/pi_000003", "expand[]=customer").Body(); !strings.Contains(string(got), `"deleted":true`) {
		t.Errorf("got %s, want a deleted customer", got)
	}
}
