package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/scripts/orders/cloud"
)

// serveStripe serves one response for each path, and records the requests.
func serveStripe(t *testing.T, status int, responses map[string]string) (c cloud.StripeEnv, requests *[]string) {
	t.Helper()
	requests = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form, _ := io.ReadAll(r.Body)
		*requests = append(*requests, fmt.Sprintf("%s %s %s %s", r.Method, r.URL.Path, form, r.Header.Get("Idempotency-Key")))
		w.Header().Set("Stripe-Should-Retry", "false")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, responses[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	return cloud.StripeEnv{Key: config.NewSecret("sk_test_pretend"), Address: config.URL(server.URL)}, requests
}

func TestCreatePayer(t *testing.T) {
	t.Parallel()
	t.Run("a customer and Stripe's test card are created, each under a key of this order", func(t *testing.T) {
		t.Parallel()
		c, requests := serveStripe(t, http.StatusOK, map[string]string{
			"/v1/customers": `{"id":"cus_New"}`, "/v1/payment_methods/pm_card_visa/attach": `{"id":"pm_New"}`,
		})
		got, err := cloud.NewPayers(c).Create(t.Context(), "dev/smoke/SMOKE-1")
		if want := (cloud.Payer{Customer: "cus_New", Method: "pm_New"}); err != nil || got != want {
			t.Errorf("payer %v, %v, want %v", got, err, want)
		}
		want := []string{
			"POST /v1/customers description=dev%2Fsmoke%2FSMOKE-1 dev/smoke/SMOKE-1/customer",
			"POST /v1/payment_methods/pm_card_visa/attach customer=cus_New dev/smoke/SMOKE-1/method",
		}
		if diff := cmp.Diff(*requests, want); diff != "" {
			t.Errorf("- got, + want:\n%s", diff)
		}
	})
	for claim, tt := range map[string]struct {
		status         int
		response, want string
	}{
		"a restricted key: the error names the flags for an existing payer": {
			http.StatusForbidden, `{"error":{"type":"invalid_request_error","message":"This key may not."}}`,
			"create a customer at Stripe: status 403: This key may not.; name an existing payer with --customer and --method",
		},
		"a wrong key: the error has Stripe's message": {
			http.StatusUnauthorized, `{"error":{"type":"invalid_request_error","message":"Invalid API Key"}}`,
			"create a customer at Stripe: status 401: Invalid API Key",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			c, requests := serveStripe(t, tt.status, map[string]string{"/v1/customers": tt.response})
			_, err := cloud.NewPayers(c).Create(t.Context(), "dev/smoke/SMOKE-1")
			if err == nil || err.Error() != tt.want || len(*requests) != 1 ||
				strings.Contains(err.Error(), "sk_test_") {
				t.Errorf("error = %v after %q, want %q", err, *requests, tt.want)
			}
		})
	}
}
