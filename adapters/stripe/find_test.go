package stripe_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
)

func TestFindSearchesForTheOrderInItsScope(t *testing.T) {
	t.Parallel()
	var got *http.Request
	p := serving(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		response{200, false, `{"object":"search_result","data":[]}`}.ServeHTTP(w, r)
	})
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
	p := serving(t, response{200, false, `{"data":[` + intentJSON("succeeded", null) +
		`,{"id":"pi_held","status":"requires_capture"}]}`}.ServeHTTP)
	found, err := p.Find(t.Context(), "ORD-1")
	want := []order.Intent{
		{
			ID: intentID, State: order.Succeeded, Total: order.Money{Amount: 2500, Currency: "eur"},
			OrderID: "ORD-1", Scope: "test", Fingerprint: "v1:0", Mode: order.TestMode,
		},
		{ID: "pi_held"}, // a status that this application never causes, but money may have moved
	}
	if diff := cmp.Diff(found, want); diff != "" || err != nil {
		t.Errorf("error %v (-got +want):\n%s", err, diff)
	}
}

func TestAFailedSearchIsNeverAnEmptyResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		response response
		want     order.ErrorKind
	}{
		"an unreadable body": {response{200, false, `{"data":`}, order.KindUnknown},
		"an intent without an id": {
			response{200, false, `{"data":[{"status":"succeeded"}]}`}, order.KindUnknown,
		},
		"a missing permission": {
			failure(403, `"type":"invalid_request_error"`, ""), order.KindMisconfigured,
		},
		"no search in this country": {
			failure(400, `"type":"invalid_request_error"`, ""), order.KindMisconfigured,
		},
		"402 with an intent": {failure(402, cardDeclined, declinedIntent()), order.KindMisconfigured},
		"a rate limit":       {failure(429, `"code":"rate_limit"`, ""), order.KindUnavailable},
		"a server error":     {failure(500, `"type":"api_error"`, ""), order.KindUnknown},
		"204":                {response{204, false, ""}, order.KindUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := serving(t, c.response.ServeHTTP).Find(t.Context(), "ORD-1")
			if got := kindOf(t, err); got != c.want || len(found) != 0 {
				t.Errorf("got %v, %s (%v), want %s", found, got, err, c.want)
			}
		})
	}
}

func TestAnIntentHasTheModeOfItsCharge(t *testing.T) {
	t.Parallel()
	for live, want := range map[string]order.Mode{"true": order.LiveMode, "false": order.TestMode} {
		text := strings.Replace(intentJSON("succeeded", null), `"livemode":false`, `"livemode":`+live, 1)
		i, err := serving(t, response{200, false, text}.ServeHTTP).Read(t.Context(), intentID)
		if err != nil || i.Mode != want {
			t.Errorf("livemode %s: got mode %q, %v, want %q", live, i.Mode, err, want)
		}
	}
}
