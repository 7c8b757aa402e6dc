package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda"
)

// stripeSays serves one answer for each path, and notes what was asked.
func stripeSays(t *testing.T, status int, answers map[string]string) (c stripeConfig, asked *[]string) {
	t.Helper()
	asked = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form, _ := io.ReadAll(r.Body)
		*asked = append(*asked, fmt.Sprintf("%s %s %s %s", r.Method, r.URL.Path, form, r.Header.Get("Idempotency-Key")))
		w.Header().Set("Stripe-Should-Retry", "false")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answers[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	return stripeConfig{Key: lambda.NewSecret("sk_test_pretend"), Address: lambda.Address(server.URL)}, asked
}

func TestNewPayer(t *testing.T) {
	t.Parallel()
	t.Run("a customer is made and Stripe's test card attached, each under a key of this order", func(t *testing.T) {
		t.Parallel()
		c, asked := stripeSays(t, http.StatusOK, map[string]string{
			"/v1/customers": `{"id":"cus_New"}`, "/v1/payment_methods/pm_card_visa/attach": `{"id":"pm_New"}`,
		})
		got, err := newTill(c).newPayer(t.Context(), "dev/smoke/SMOKE-1")
		if want := (payer{"cus_New", "pm_New"}); err != nil || got != want {
			t.Errorf("payer %v, %v, want %v", got, err, want)
		}
		want := []string{
			"POST /v1/customers description=dev%2Fsmoke%2FSMOKE-1 dev/smoke/SMOKE-1/customer",
			"POST /v1/payment_methods/pm_card_visa/attach customer=cus_New dev/smoke/SMOKE-1/method",
		}
		if diff := cmp.Diff(*asked, want); diff != "" {
			t.Errorf("- asked, + want:\n%s", diff)
		}
	})
	for claim, tt := range map[string]struct {
		status       int
		answer, want string
	}{
		"a key that may not is told what else there is": {
			http.StatusForbidden, `{"error":{"type":"invalid_request_error","message":"This key may not."}}`,
			"make a customer at Stripe: Stripe says 403: This key may not.; name a payer that is there with --customer and --method",
		},
		"a wrong key is told so": {
			http.StatusUnauthorized, `{"error":{"type":"invalid_request_error","message":"Invalid API Key"}}`,
			"make a customer at Stripe: Stripe says 401: Invalid API Key",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			c, asked := stripeSays(t, tt.status, map[string]string{"/v1/customers": tt.answer})
			_, err := newTill(c).newPayer(t.Context(), "dev/smoke/SMOKE-1")
			if err == nil || err.Error() != tt.want || len(*asked) != 1 || strings.Contains(err.Error(), "sk_test_") {
				t.Errorf("error = %v after %q, want %q", err, *asked, tt.want)
			}
		})
	}
}
