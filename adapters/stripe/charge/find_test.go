package charge_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
)

func TestFindReturnsEveryIntentOfTheOrderInItsScope(t *testing.T) {
	t.Parallel()
	const want = "GET /v1/payment_intents/search metadata['orderId']:'ORD-1' AND metadata['scope']:'test'"
	p := charge.New(rigtest.Serving(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Method + " " + r.URL.Path + " " + r.FormValue("query"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		live := strings.Replace(rigtest.Intent("succeeded", rigtest.Null), `"livemode":false`, `"livemode":true`, 1)
		rigtest.OK(`{"data":[`+live+`,{"id":"pi_held","status":"requires_capture"}]}`).ServeHTTP(w, r)
	}))
	found, err := p.Find(t.Context(), "ORD-1")
	if diff := cmp.Diff(found, []order.Intent{
		{
			ID: rigtest.IntentID, State: order.Succeeded, Total: order.Money{Amount: 2500, Currency: "eur"},
			OrderID: "ORD-1", Scope: "test", Fingerprint: "v1:0", Mode: order.LiveMode,
		},
		{ID: "pi_held"}, // in a status that this application never causes, but money may have moved
	}); diff != "" || err != nil {
		t.Errorf("error %v (-got +want):\n%s", err, diff)
	}
}

func TestAFailedSearchIsNeverAnEmptyResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		response rigtest.Response
		want     order.ErrorKind
	}{
		"an unreadable body":        {rigtest.OK(`{"data":`), order.KindUnknown},
		"no list":                   {rigtest.OK(`{}`), order.KindUnknown},
		"an intent without an id":   {rigtest.OK(`{"data":[{"status":"succeeded"}]}`), order.KindUnknown},
		"204":                       {rigtest.Raw(204, ""), order.KindUnknown},
		"no search in this country": {rigtest.Failure(400, rigtest.InvalidRequest, ""), order.KindMisconfigured},
		"402 with an intent":        {rigtest.Failure(402, rigtest.CardDeclined, rigtest.DeclinedIntent()), order.KindMisconfigured},
		"a rate limit":              {rigtest.Failure(429, `"code":"rate_limit"`, ""), order.KindUnavailable},
	} {
		found, err := charge.New(rigtest.Responding(t, c.response)).Find(t.Context(), "ORD-1")
		if got := rigtest.KindOf(t, err); got != c.want || len(found) != 0 || strings.Contains(err.Error(), "nil") {
			t.Errorf("%s: got %v, %s (%v), want %s", name, found, got, err, c.want)
		}
	}
}
