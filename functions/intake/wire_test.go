package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/apigateway"
	"orderonce/adapters/config"
	"orderonce/adapters/httpapi"
	"orderonce/domain/intake"
	"orderonce/functions/internal/functiontest"
)

func TestEnvironment(t *testing.T) {
	for change, want := range map[string]string{
		"ORDERS_TABLE=":    "ORDERS_TABLE: want the name of the orders table",
		"QUEUE_URL=orders": "QUEUE_URL: want the URL of the order queue",
		"SCOPE=":           "SCOPE: want 1 to 32",
	} {
		_, err := config.Read[environment](functiontest.Environ("", change))
		if functiontest.Wrong(err, want) {
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
	functiontest.Must(t, json.Unmarshal([]byte(authorizer), &e.RequestContext.Authorizer))
	return e
}

const (
	byIAM   = `{"iam":{"userArn":"arn:aws:sts::123456789012:assumed-role/shop/session-1"}}`
	byToken = `{"jwt":{"claims":{"iss":"https://issuer.invalid","sub":"user-1","client_id":"app-1","tenant":"shop",` +
		`"payer":"cus_canary","other":"cus_other"}}}`
)

// send sends an event to the function in an environment with a change. The table has the
// items found. It returns the calls, and what was sent to the queue.
func send(t *testing.T, e events.APIGatewayV2HTTPRequest, found, change string) (
	got events.APIGatewayV2HTTPResponse, out *functiontest.Output, calls []string, sent string,
) {
	t.Helper()
	c := functiontest.Serve(t, func(call, body string) string {
		if strings.HasPrefix(call, "AmazonSQS.SendMessage") {
			sent = body
		}
		return `{"Count":1,"Items":[` + found + `],"MessageId":"1"}`
	})
	out = new(functiontest.Output)
	handler, err := wire(t.Context(), functiontest.Environ(c.URL, change), out)
	functiontest.Must(t, err)
	got, err = apigateway.Handle(handler)(t.Context(), e)
	functiontest.Must(t, err)
	return got, out, c.Calls(), sent
}

// A new order costs a Query, a PutItem, a SendMessage and an UpdateItem.
func TestWire(t *testing.T) {
	t.Parallel()
	got, out, calls, sent := send(t, event(t, byIAM), "", "")
	const want = `{"orderId":"O-1","status":"received","amount":1998,"currency":"usd","history":[]}` + "\n"
	if got.StatusCode != http.StatusAccepted || got.Body != want {
		t.Errorf("got %+v, want 202 and %s\n%s", got, want, out)
	}
	if diff := cmp.Diff(calls, []string{
		"DynamoDB_20120810.Query orders", "DynamoDB_20120810.PutItem orders",
		"AmazonSQS.SendMessage https://sqs.example/1/live", "DynamoDB_20120810.UpdateItem orders",
	}); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
	if !strings.Contains(sent, `\"orderId\":\"O-1\"`) {
		t.Errorf("got message %s, want the order", sent)
	}
	if part := out.Lacks(`"Intake":[1]`, `"Result":"received"`); part != "" {
		t.Errorf("want %s in the output:\n%s", part, out)
	}
	for _, never := range []string{"CUST987", "assumed-role", "session-1"} {
		if strings.Contains(out.String(), never) {
			t.Errorf("got output with %q: %s", never, out)
		}
	}
}

func TestIdentify(t *testing.T) {
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
		served := false
		_, err := apigateway.Handle(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			served = true
			if got, err := identify(tt.owner)(r.Context()); got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("%s: got %q, %v, want %q, %v", claim, got, err, tt.want, tt.err)
			}
		}))(t.Context(), event(t, tt.authorizer))
		if err != nil || !served {
			t.Errorf("%s: got %v, served %t", claim, err, served)
		}
	}
}

// A payer that is not the caller's is refused before anything is read or written.
func TestACallerMayBeBoundToItsPayer(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPut, http.MethodPost} {
		for claim, want := range map[string]int{
			"payer": http.StatusAccepted, "other": http.StatusForbidden, "absent": http.StatusForbidden, "": http.StatusAccepted,
		} {
			e := event(t, byToken)
			e.RequestContext.HTTP.Method, e.Headers["idempotency-key"] = method, "key-1"
			if method == http.MethodPost {
				e.RawPath = "/orders"
			}
			got, _, calls, _ := send(t, e, "", "CUSTOMER_CLAIM="+claim)
			if got.StatusCode != want || (len(calls) > 0) != (want == http.StatusAccepted) {
				t.Errorf("%s, claim %q: got %+v after %d calls, want %d", method, claim, got, len(calls), want)
			}
		}
	}
}

func TestAnOwnerClaimHidesTheOrdersOfOthers(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]int{"OWNER_CLAIM=": http.StatusOK, "OWNER_CLAIM=tenant": http.StatusNotFound} {
		const found = `{"orderId":{"S":"O-1"},"sk":{"S":"intake"},"fingerprint":{"S":"v1:0"},"amount":{"N":"1998"},` +
			`"currency":{"S":"usd"},"caller":{"S":"another"},"createdAt":{"N":"1790000000000"}}`
		e := event(t, byToken)
		e.RequestContext.HTTP.Method = http.MethodGet
		if got, _, _, _ := send(t, e, found, change); got.StatusCode != want {
			t.Errorf("%s: got %+v, want %d", change, got, want)
		}
	}
}
