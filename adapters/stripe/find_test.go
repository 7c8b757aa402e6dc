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
	p := answering(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		said{200, false, `{"object":"search_result","data":[]}`}.ServeHTTP(w, r)
	})
	found, err := p.Find(t.Context(), "ORD-1")
	if err != nil || len(found) != 0 {
		t.Fatalf("got %v, %v, want nothing found", found, err)
	}
	want := url.Values{"query": {"metadata['orderId']:'ORD-1' AND metadata['scope']:'test'"}}
	if diff := cmp.Diff(got.URL.Query(), want); diff != "" || got.URL.Path != "/v1/payment_intents/search" || got.Method != "GET" {
		t.Errorf("sent %s %s (-got +want):\n%s", got.Method, got.URL, diff)
	}
	if key := got.Header.Get("Idempotency-Key"); key != "" {
		t.Errorf("sent idempotency key %q with a GET", key)
	}
}

func TestFindReportsEveryIntentItFinds(t *testing.T) {
	t.Parallel()
	p := answering(t, said{200, false, `{"data":[` + body("succeeded", none) +
		`,{"id":"pi_held","status":"requires_capture"}]}`}.ServeHTTP)
	found, err := p.Find(t.Context(), "ORD-1")
	want := []order.Intent{
		{
			ID: intentID, State: order.Succeeded, Total: order.Money{Amount: 2500, Currency: "eur"},
			OrderID: "ORD-1", Scope: "test", Fingerprint: "v1:0", Mode: order.TestMode,
		},
		{ID: "pi_held"}, // a state that this application never makes, but it may have moved money
	}
	if diff := cmp.Diff(found, want); diff != "" || err != nil {
		t.Errorf("error %v (-got +want):\n%s", err, diff)
	}
}

func TestAFailedFindIsNeverNothingFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said said
		want order.ErrorKind
	}{
		"an unreadable body":          {said{200, false, `{"data":`}, order.Unknown},
		"an intent without an id":     {said{200, false, `{"data":[{"status":"succeeded"}]}`}, order.Unknown},
		"no right to search":          {said{403, false, failure(`"type":"invalid_request_error"`)}, order.Misconfigured},
		"a country without search":    {said{400, false, failure(`"type":"invalid_request_error"`)}, order.Misconfigured},
		"too many searches":           {said{429, false, failure(`"code":"rate_limit"`)}, order.Unavailable},
		"a server error":              {said{500, false, failure(`"type":"api_error"`)}, order.Unknown},
		"a success without a message": {said{204, false, ""}, order.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := answering(t, c.said.ServeHTTP).Find(t.Context(), "ORD-1")
			if got := kindOf(t, err); got != c.want || len(found) != 0 {
				t.Errorf("got %v, trouble %s (%v), want %s", found, got, err, c.want)
			}
		})
	}
}

func TestAnIntentSaysWhetherItsMoneyIsReal(t *testing.T) {
	t.Parallel()
	for live, want := range map[string]order.Mode{"true": order.LiveMode, "false": order.TestMode} {
		text := strings.Replace(body("succeeded", none), `"livemode":false`, `"livemode":`+live, 1)
		i, err := answering(t, said{200, false, text}.ServeHTTP).Read(t.Context(), intentID)
		if err != nil || i.Mode != want {
			t.Errorf("livemode %s: got mode %q, %v, want %q", live, i.Mode, err, want)
		}
	}
}
