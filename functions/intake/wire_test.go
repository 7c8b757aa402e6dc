package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/apigateway"
	"orderonce/adapters/config"
	"orderonce/adapters/httpapi"
	"orderonce/domain/intake"
)

// complete returns a valid environment with changes, in which every service is at url.
func complete(url string, changes ...string) []string {
	return append([]string{
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=pretend", "AWS_SECRET_ACCESS_KEY=pretend", "AWS_ENDPOINT_URL=" + url,
		"ORDERS_TABLE=orders", "QUEUE_URL=" + url + "/1/orders", "SCOPE=test",
	}, changes...)
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"ORDERS_TABLE=":    "ORDERS_TABLE: want the name of the orders table",
		"QUEUE_URL=orders": "QUEUE_URL: want the URL of the order queue",
		"SCOPE=":           "SCOPE: want 1 to 32",
		"OWNER_CLAIM=sub":  "",
	} {
		_, err := config.Read[environment](complete("http://127.0.0.1:1", change))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", change, err, want)
		}
	}
}

const body = `{"customerId":"CUST987","currency":"usd","lines":[{"sku":"MUG","quantity":2,"unitAmount":999}],` +
	`"payment":{"customer":"cus_canary","method":"pm_canary"}}`

// event returns the event of a PUT by a caller, whom the authorizer reports as JSON.
func event(t *testing.T, authorizer string) (e events.APIGatewayV2HTTPRequest) {
	t.Helper()
	e.RawPath, e.Body = "/orders/O-1", body
	e.Headers = map[string]string{"content-type": "application/json"}
	e.RequestContext.HTTP.Method = http.MethodPut
	if err := json.Unmarshal([]byte(authorizer), &e.RequestContext.Authorizer); err != nil {
		t.Fatal(err)
	}
	return e
}

const (
	byIAM   = `{"iam":{"userArn":"arn:aws:sts::123456789012:assumed-role/shop/session-1"}}`
	byToken = `{"jwt":{"claims":{"iss":"https://issuer.invalid","sub":"user-1","client_id":"app-1","tenant":"shop",` +
		`"payer":"cus_canary","other":"cus_other"}}}`
)

// A new order costs a Query, a PutItem, a SendMessage and an UpdateItem.
func TestWire(t *testing.T) {
	t.Parallel()
	responses := map[string]string{
		"DynamoDB_20120810.Query": `{"Count":0,"Items":[]}`, "DynamoDB_20120810.PutItem": `{}`,
		"DynamoDB_20120810.UpdateItem": `{}`, "AmazonSQS.SendMessage": `{"MessageId":"1"}`,
	}
	var calls []string
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := r.Header.Get("X-Amz-Target")
		calls = append(calls, call)
		if body, _ := io.ReadAll(r.Body); call == "AmazonSQS.SendMessage" {
			sent = string(body)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.WriteString(w, responses[call])
	}))
	t.Cleanup(server.Close)
	var out bytes.Buffer
	handler, err := wire(t.Context(), complete(server.URL), &out)
	if err != nil {
		t.Fatal(err)
	}
	got, err := apigateway.Handle(handler)(t.Context(), event(t, byIAM))
	const want = `{"orderId":"O-1","status":"received","amount":1998,"currency":"usd","history":[]}` + "\n"
	if err != nil || got.StatusCode != http.StatusAccepted || got.Body != want {
		t.Errorf("got %+v, %v, want 202 and %s\n%s", got, err, want, out.String())
	}
	if diff := cmp.Diff(calls, []string{
		"DynamoDB_20120810.Query", "DynamoDB_20120810.PutItem", "AmazonSQS.SendMessage",
		"DynamoDB_20120810.UpdateItem",
	}); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
	if !strings.Contains(sent, "/1/orders") || !strings.Contains(sent, `\"orderId\":\"O-1\"`) {
		t.Errorf("got message %s, want the order in the queue of QUEUE_URL", sent)
	}
	if !strings.Contains(out.String(), `"Intake":[1]`) || !strings.Contains(out.String(), `"Result":"received"`) {
		t.Errorf("got output without the metric Intake: %s", out.String())
	}
	for _, never := range []string{"canary", "CUST987", "assumed-role", "session-1"} {
		if strings.Contains(out.String(), never) {
			t.Errorf("got output with %q: %s", never, out.String())
		}
	}
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		owner, authorizer string
		want              intake.Caller
		err               error
	}{
		"an IAM role":                       {"", byIAM, intake.NewCaller("iam", "arn:aws:sts::123456789012:assumed-role/shop"), nil},
		"a token's program, not its person": {"", byToken, intake.NewCaller("jwt", "https://issuer.invalid", "client_id", "app-1"), nil},
		"a token of a person alone":         {"", `{"jwt":{"claims":{"iss":"https://issuer.invalid","sub":"user-1"}}}`, "", httpapi.ErrForbidden},
		"a token's owner":                   {"tenant", byToken, intake.NewCaller("jwt", "https://issuer.invalid", "tenant", "shop"), nil},
		"a token without the owner":         {"client", byToken, "", httpapi.ErrForbidden},
		"an IAM role has no owner":          {"tenant", byIAM, "", httpapi.ErrForbidden},
		"a route that somebody left open":   {"", `null`, "", httpapi.ErrUnauthenticated},
		"an authorizer that reports nobody": {"tenant", `{"lambda":{"tenant":"shop"}}`, "", httpapi.ErrUnauthenticated},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			served := false
			_, err := apigateway.Handle(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				served = true
				if got, err := identify(tt.owner)(r.Context()); got != tt.want || !errors.Is(err, tt.err) {
					t.Errorf("got %q, %v, want %q, %v", got, err, tt.want, tt.err)
				}
			}))(t.Context(), event(t, tt.authorizer))
			if err != nil || !served {
				t.Errorf("got %v, served %t", err, served)
			}
		})
	}
}

// A payer that is not the caller's is refused before anything is read or written.
func TestACallerMayBeBoundToItsPayer(t *testing.T) {
	t.Parallel()
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.WriteString(w, `{"Count":0,"Items":[],"MessageId":"1"}`)
	}))
	t.Cleanup(server.Close)
	for _, method := range []string{http.MethodPut, http.MethodPost} {
		for claim, want := range map[string]int{
			"payer": http.StatusAccepted, "other": http.StatusForbidden, "absent": http.StatusForbidden, "": http.StatusAccepted,
		} {
			handler, err := wire(t.Context(), complete(server.URL, "CUSTOMER_CLAIM="+claim), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			e := event(t, byToken)
			e.RequestContext.HTTP.Method, e.Headers["idempotency-key"] = method, "key-1"
			if method == http.MethodPost {
				e.RawPath = "/orders"
			}
			calls = 0
			got, err := apigateway.Handle(handler)(t.Context(), e)
			if err != nil || got.StatusCode != want || (calls > 0) != (want == http.StatusAccepted) {
				t.Errorf("%s, claim %q: got %+v, %v after %d calls, want %d", method, claim, got, err, calls, want)
			}
		}
	}
}

// registered is the response of DynamoDB to a Query for an order that another caller put.
const registered = `{"Count":1,"Items":[{"orderId":{"S":"O-1"},"sk":{"S":"intake"},"fingerprint":{"S":"v1:0"},"amount":{"N":"1998"},` +
	`"currency":{"S":"usd"},"caller":{"S":"another"},"createdAt":{"N":"1790000000000"}}]}`

func TestAnOwnerClaimHidesTheOrdersOfOthers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.WriteString(w, registered)
	}))
	t.Cleanup(server.Close)
	for change, want := range map[string]int{"OWNER_CLAIM=": http.StatusOK, "OWNER_CLAIM=tenant": http.StatusNotFound} {
		handler, err := wire(t.Context(), complete(server.URL, change), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		e := event(t, byToken)
		e.RequestContext.HTTP.Method = http.MethodGet
		if got, err := apigateway.Handle(handler)(t.Context(), e); err != nil || got.StatusCode != want {
			t.Errorf("%s: got %+v, %v, want %d", change, got, err, want)
		}
	}
}
