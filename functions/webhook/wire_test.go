package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/stripe/stripetest"
)

const endpointSecret = "whsec_pretend"

// paidRow is the response of DynamoDB to a Query for a paid order.
const paidRow = `{"Count":1,"Items":[{"orderId":{"S":"ORD-1"},"sk":{"S":"order"},"status":{"S":"paid"},` +
	`"fingerprint":{"S":"v1:0"},"attempt":{"N":"1"},"seq":{"N":"1"},"intentId":{"S":"pi_1"},"amount":{"N":"1998"},` +
	`"currency":{"S":"usd"},"createdAt":{"N":"1790000000000"},"updatedAt":{"N":"1790000000000"}}]}`

// complete returns a valid environment with changes, in which every service is at url.
func complete(url string, changes ...string) []string {
	return append([]string{
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=pretend", "AWS_SECRET_ACCESS_KEY=pretend", "AWS_ENDPOINT_URL=" + url,
		"ORDERS_TABLE=orders", "SCOPE=test", "STRIPE_SECRET_KEY=sk_test_canary", "STRIPE_API_BASE=" + url,
		"WEBHOOK_SECRETS=" + endpointSecret + "\nwhsec_rolled",
	}, changes...)
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct{ change, want string }{
		"both secrets of the endpoint": {
			"WEBHOOK_SECRET_ARN=arn:aws:secretsmanager:eu-west-1:1:secret:webhook", "WEBHOOK_SECRET_ARN, WEBHOOK_SECRETS: want exactly one of them",
		},
		"no secret of the endpoint": {"WEBHOOK_SECRETS=", "WEBHOOK_SECRET_ARN, WEBHOOK_SECRETS: want exactly one of them"},
		"no time for Stripe":        {"STRIPE_TIMEOUT=0s", "STRIPE_TIMEOUT: want more than 0"},
		"no Stripe key":             {"STRIPE_SECRET_KEY=", "STRIPE_SECRET_ARN, STRIPE_SECRET_KEY: want exactly one of them"},
		"a complete environment":    {"SCOPE=test", ""},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			_, err := config.Read[environment](complete("http://127.0.0.1:1", tt.change))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestTheSigningSecretsAreCheckedAtTheStart(t *testing.T) {
	t.Parallel()
	for secrets, want := range map[string]string{
		"whsec_a": "", "whsec_a whsec_b": "", " whsec_a\nwhsec_b\n": "",
		"whsec_a whsec_b whsec_c":          "WEBHOOK_SECRETS: want one signing secret",
		" \n":                              "WEBHOOK_SECRETS: want one signing secret",
		"sk_test_canary":                   "WEBHOOK_SECRETS: want signing secrets",
		"whsec_a canary":                   "WEBHOOK_SECRETS: want signing secrets",
		`{"secret":"whsec_canary"}`:        "WEBHOOK_SECRETS: want signing secrets",
		"whsec_canary,whsec_canary":        "WEBHOOK_SECRETS: want signing secrets",
		"whsec_":                           "WEBHOOK_SECRETS: want signing secrets",
		"https://example.com/whsec_canary": "WEBHOOK_SECRETS: want signing secrets",
	} {
		_, err := wire(t.Context(), complete("http://127.0.0.1:1", "WEBHOOK_SECRETS="+secrets), io.Discard)
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.HasPrefix(got, want) || strings.Contains(got, "canary") {
			t.Errorf("secrets %q: got %v, want %q", secrets, err, want)
		}
	}
}

// A paid row agrees with the event, so the only call is a strongly consistent Query.
func TestWire(t *testing.T) {
	t.Parallel()
	var calls []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls = append(calls, r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Amz-Target"))
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = w.Write([]byte(paidRow))
	}))
	t.Cleanup(server.Close)
	var out bytes.Buffer
	handler, err := wire(t.Context(), complete(server.URL), &out)
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"id":"evt_1","object":"event","type":"payment_intent.succeeded","created":1790000000,"data":{"object":` +
		`{"id":"pi_1","status":"succeeded","metadata":{"orderId":"ORD-1","scope":"test"}}}}`)
	for _, secret := range []string{endpointSecret, "whsec_rolled", "whsec_forged"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/stripe/webhook", bytes.NewReader(body))
		r.Header.Set("Stripe-Signature", stripetest.Signature(body, time.Now(), secret))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		want := http.StatusOK
		if secret == "whsec_forged" {
			want = http.StatusBadRequest
		}
		if w.Code != want {
			t.Errorf("signed with %s: got %d, want %d\n%s", secret, w.Code, want, out.String())
		}
	}
	if diff := cmp.Diff(calls, []string{"POST / DynamoDB_20120810.Query", "POST / DynamoDB_20120810.Query"}); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
	var results []string
	for line := range strings.Lines(out.String()) {
		var metric struct {
			Result   string
			Webhooks []float64
		}
		if err := json.Unmarshal([]byte(line), &metric); err != nil {
			t.Errorf("line %q: %v", line, err)
		}
		if metric.Webhooks != nil {
			results = append(results, metric.Result)
		}
	}
	if diff := cmp.Diff(results, []string{"agrees", "agrees", "invalid_signature"}); diff != "" {
		t.Errorf("metric Webhooks, results (-got +want):\n%s", diff)
	}
	if strings.Contains(out.String(), "canary") || strings.Contains(out.String(), "whsec") {
		t.Errorf("output contains a secret: %s", out.String())
	}
}

// A row that shows no dispute costs a read of the intent, the list of its disputes and a
// transaction.
func TestAnOpenDisputeIsCounted(t *testing.T) {
	t.Parallel()
	responses := map[string]string{
		"GET /v1/payment_intents/pi_1 ": `{"id":"pi_1","status":"succeeded","metadata":{"orderId":"ORD-1","scope":"test"}}`,
		"GET /v1/disputes ": `{"object":"list","data":[{"id":"du_1","payment_intent":"pi_1","status":"needs_response",` +
			`"created":1790000000}]}`,
		"POST / DynamoDB_20120810.Query":              paidRow,
		"POST / DynamoDB_20120810.TransactWriteItems": `{}`,
	}
	var calls []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := r.Method + " " + r.URL.Path + " " + r.Header.Get("X-Amz-Target")
		calls = append(calls, call)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = w.Write([]byte(responses[call]))
	}))
	t.Cleanup(server.Close)
	var out bytes.Buffer
	handler, err := wire(t.Context(), complete(server.URL), &out)
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"id":"evt_1","object":"event","type":"charge.dispute.created","created":1790000000,"data":{"object":` +
		`{"id":"du_1","payment_intent":"pi_1","status":"needs_response"}}}`)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/stripe/webhook", bytes.NewReader(body))
	r.Header.Set("Stripe-Signature", stripetest.Signature(body, time.Now(), endpointSecret))
	handler.ServeHTTP(httptest.NewRecorder(), r)
	if diff := cmp.Diff(calls, []string{
		"GET /v1/payment_intents/pi_1 ", "POST / DynamoDB_20120810.Query", "GET /v1/disputes ",
		"POST / DynamoDB_20120810.TransactWriteItems",
	}); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
	for _, want := range []string{`"Disputed":[1]`, `"Result":"disputed"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got output without %s: %s", want, out.String())
		}
	}
}
