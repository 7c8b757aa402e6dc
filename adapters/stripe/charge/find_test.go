package charge_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
)

func TestFindSearchesForTheOrderInItsScope(t *testing.T) {
	t.Parallel()
	var got *http.Request
	p := charge.New(rigtest.Serving(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		rigtest.OK(`{"object":"search_result","data":[]}`).ServeHTTP(w, r)
	}))
	found, err := p.Find(t.Context(), "ORD-1")
	if err != nil || len(found) != 0 {
		t.Fatalf("got %v, %v, want nothing found", found, err)
	}
	want := url.Values{"query": {"metadata['orderId']:'ORD-1' AND metadata['scope']:'test'"}}
	if diff := cmp.Diff(got.URL.Query(), want); diff != "" {
		t.Errorf("query (-got +want):\n%s", diff)
	}
	if got.Method != http.MethodGet || got.URL.Path != "/v1/payment_intents/search" {
		t.Errorf("got %s %s, want GET /v1/payment_intents/search", got.Method, got.URL.Path)
	}
	if key := got.Header.Get("Idempotency-Key"); key != "" {
		t.Errorf("sent idempotency key %q with a GET", key)
	}
}

func TestFindReturnsEveryIntentThatStripeFinds(t *testing.T) {
	t.Parallel()
	p := charge.New(rigtest.Serving(t, rigtest.OK(`{"data":[`+rigtest.Intent("succeeded", rigtest.Null)+
		`,{"id":"pi_held","status":"requires_capture"}]}`).ServeHTTP))
	found, err := p.Find(t.Context(), "ORD-1")
	want := []order.Intent{
		{
			ID: rigtest.IntentID, State: order.Succeeded, Total: order.Money{Amount: 2500, Currency: "eur"},
			OrderID: "ORD-1", Scope: "test", Fingerprint: "v1:0", Mode: order.TestMode,
		},
		{ID: "pi_held"}, // in a status that this application never causes, but money may have moved
	}
	if diff := cmp.Diff(found, want); diff != "" || err != nil {
		t.Errorf("error %v (-got +want):\n%s", err, diff)
	}
}

func TestAFailedSearchIsNeverAnEmptyResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		response rigtest.Response
		want     order.ErrorKind
	}{
		"an unreadable body": {rigtest.OK(`{"data":`), order.KindUnknown},
		"an intent without an id": {
			rigtest.OK(`{"data":[{"status":"succeeded"}]}`), order.KindUnknown,
		},
		"a missing permission": {
			rigtest.Failure(403, rigtest.InvalidRequest, ""), order.KindMisconfigured,
		},
		"no search in this country": {
			rigtest.Failure(400, rigtest.InvalidRequest, ""), order.KindMisconfigured,
		},
		"402 with an intent": {rigtest.Failure(402, rigtest.CardDeclined, rigtest.DeclinedIntent()), order.KindMisconfigured},
		"a rate limit":       {rigtest.Failure(429, `"code":"rate_limit"`, ""), order.KindUnavailable},
		"a server error":     {rigtest.Failure(500, rigtest.APIError, ""), order.KindUnknown},
		"204":                {rigtest.Raw(204, ""), order.KindUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := charge.New(rigtest.Serving(t, c.response.ServeHTTP)).Find(t.Context(), "ORD-1")
			if got := rigtest.KindOf(t, err); got != c.want || len(found) != 0 {
				t.Errorf("got %v, %s (%v), want %s", found, got, err, c.want)
			}
		})
	}
}

func TestAnIntentHasTheModeOfItsCharge(t *testing.T) {
	t.Parallel()
	for live, want := range map[string]order.Mode{"true": order.LiveMode, "false": order.TestMode} {
		text := strings.Replace(rigtest.Intent("succeeded", rigtest.Null), `"livemode":false`, `"livemode":`+live, 1)
		i, err := charge.New(rigtest.Serving(t, rigtest.OK(text).ServeHTTP)).Read(t.Context(), rigtest.IntentID)
		if err != nil || i.Mode != want {
			t.Errorf("livemode %s: got mode %q, %v, want %q", live, i.Mode, err, want)
		}
	}
}
