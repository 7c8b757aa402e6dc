package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/functions/internal/functiontest"
)

const endpointSecret = "whsec_pretend"

// environ returns a valid environment with changes.
func environ(url string, changes ...string) []string {
	return append(functiontest.Environ(url, "WEBHOOK_SECRETS="+endpointSecret+"\nwhsec_rolled"), changes...)
}

func TestEnvironment(t *testing.T) {
	const one, notSecrets = "WEBHOOK_SECRET_ARN, WEBHOOK_SECRETS: want exactly one of them", "WEBHOOK_SECRETS: want a signing secret"
	for change, want := range map[string]string{
		"WEBHOOK_SECRET_ARN=arn:aws:secretsmanager:eu-west-1:1:secret:webhook": one,
		"WEBHOOK_SECRETS=":                                 one,
		"STRIPE_TIMEOUT=0s":                                "STRIPE_TIMEOUT: want more than 0",
		"STRIPE_SECRET_KEY=":                               "STRIPE_SECRET_ARN, STRIPE_SECRET_KEY: want exactly one of them",
		"SCOPE=test":                                       "",
		"WEBHOOK_SECRETS=whsec_a":                          "",
		"WEBHOOK_SECRETS= whsec_a\nwhsec_b\n":              "",
		"WEBHOOK_SECRETS=whsec_a whsec_b whsec_c":          notSecrets,
		"WEBHOOK_SECRETS= \n":                              notSecrets,
		"WEBHOOK_SECRETS=sk_test_canary":                   notSecrets,
		"WEBHOOK_SECRETS=whsec_a canary":                   notSecrets,
		`WEBHOOK_SECRETS={"secret":"whsec_canary"}`:        notSecrets,
		"WEBHOOK_SECRETS=whsec_":                           notSecrets,
		"WEBHOOK_SECRETS=https://example.com/whsec_canary": notSecrets,
	} {
		_, err := wire(t.Context(), environ("http://127.0.0.1:1", change), io.Discard)
		if functiontest.Wrong(err, want) {
			t.Errorf("%q: got %v, want %q", change, err, want)
		}
	}
}

// A paid row agrees with a payment, so the only call is a strongly consistent Query. A
// row that shows no dispute costs a read of the intent, the list of its disputes and a
// transaction.
func TestWire(t *testing.T) {
	const query, key = "DynamoDB_20120810.Query orders", " sk_test_canary"
	responses := map[string]string{
		query: `{"Count":1,"Items":[{"orderId":{"S":"ORD-1"},"sk":{"S":"order"},"status":{"S":"paid"},` +
			`"fingerprint":{"S":"v1:0"},"attempt":{"N":"1"},"seq":{"N":"1"},"intentId":{"S":"pi_1"},"amount":{"N":"1998"},` +
			`"currency":{"S":"usd"},"createdAt":{"N":"1790000000000"},"updatedAt":{"N":"1790000000000"}}]}`,
		"GET /v1/payment_intents/pi_1" + key: `{"id":"pi_1","status":"succeeded","metadata":{"orderId":"ORD-1","scope":"test"}}`,
		"GET /v1/disputes" + key: `{"object":"list","data":[{"id":"du_1","payment_intent":"pi_1","status":"needs_response",` +
			`"created":1790000000}]}`,
	}
	c := functiontest.Serve(t, func(call, _ string) string { return responses[call] })
	var out bytes.Buffer
	handler, err := wire(t.Context(), environ(c.URL), &out)
	functiontest.Must(t, err)
	event := func(kind, object string) string {
		return `{"id":"evt_1","object":"event","type":"` + kind + `","created":1790000000,"data":{"object":` + object + `}}`
	}
	paid := event("payment_intent.succeeded", responses["GET /v1/payment_intents/pi_1"+key])
	for _, tt := range []struct {
		body, secret string
		status       int
		result       string
	}{
		{paid, endpointSecret, http.StatusOK, "agrees"},
		{paid, "whsec_rolled", http.StatusOK, "agrees"},
		{paid, "whsec_forged", http.StatusBadRequest, "invalid_signature"},
		{event("charge.dispute.created", `{"id":"du_1","payment_intent":"pi_1"}`), endpointSecret, http.StatusOK, "disputed"},
	} {
		out.Reset()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/stripe/webhook", strings.NewReader(tt.body))
		r.Header.Set("Stripe-Signature", stripetest.Signature([]byte(tt.body), time.Now(), tt.secret))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		metric := regexp.MustCompile(`"Result":"` + tt.result + `".*"Webhooks":\[1\]`)
		if w.Code != tt.status || !metric.MatchString(out.String()) ||
			strings.Contains(out.String(), `"Disputed":[1]`) != (tt.result == "disputed") {
			t.Errorf("signed with %s: got %d, want %d and the metric %s\n%s", tt.secret, w.Code, tt.status, tt.result, out.String())
		}
		if strings.Contains(out.String(), "canary") || strings.Contains(out.String(), "whsec") {
			t.Errorf("output contains a secret: %s", out.String())
		}
	}
	want := []string{
		query, query, "GET /v1/payment_intents/pi_1" + key, query, "GET /v1/disputes" + key, "DynamoDB_20120810.TransactWriteItems orders",
	}
	if diff := cmp.Diff(c.Calls(), want); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
}
