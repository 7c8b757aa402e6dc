package apigatewaytest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/apigateway/apigatewaytest"
)

type function = func(context.Context, []byte) ([]byte, error)

func serve(t *testing.T, f function) *httptest.ResponseRecorder {
	t.Helper()
	api := apigatewaytest.API{
		Routes: map[string]function{"POST /a": f}, Now: func() time.Time { return time.UnixMilli(1_790_000_000_000) },
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a", http.NoBody))
	return w
}

// What an event has of a request is a rule of scripts/conform.
func TestTheAPIAnswersWhatAFunctionCannot(t *testing.T) {
	for out, want := range map[string]string{
		"": `500 {"message":"Internal Server Error"}`,
		`{"statusCode":202,"isBase64Encoded":true,"body":"/w=="}`: "202 \xff",
	} {
		w := serve(t, func(context.Context, []byte) ([]byte, error) { return []byte(out), nil })
		if got := fmt.Sprint(w.Code, " ", w.Body); got != want {
			t.Errorf("%s: got %s, want %s", out, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := serve(t, func(ctx context.Context, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if took := time.Since(began); w.Code != http.StatusServiceUnavailable || took != apigatewaytest.Timeout {
			t.Errorf("got %d after %v, want 503 after 30s", w.Code, took)
		}
	})
}

// routed is what a function gets of a request's route.
type routed struct {
	Key, Caller string
	Parameters  map[string]string
}

func TestARouteHasParametersAndAnAuthorizer(t *testing.T) {
	var got routed
	invoke := func(_ context.Context, event []byte) ([]byte, error) {
		var e events.APIGatewayV2HTTPRequest
		err := json.Unmarshal(event, &e)
		got = routed{Key: e.RouteKey, Parameters: e.PathParameters}
		if a := e.RequestContext.Authorizer; a != nil && a.IAM != nil {
			got.Caller = a.IAM.UserARN
		} else if a != nil {
			got.Caller = a.JWT.Claims["sub"]
		}
		return []byte(`{"statusCode":204}`), err
	}
	const byIAM, byToken, open = "PUT /orders/{orderId}", "GET /orders/{orderId}", "GET /orders/open"
	api := apigatewaytest.API{
		Routes:      map[string]function{byIAM: invoke, byToken: invoke, open: invoke},
		Authorizers: map[string]apigatewaytest.Authorizer{byIAM: apigatewaytest.IAM, byToken: apigatewaytest.JWT},
		Now:         func() time.Time { return time.UnixMilli(1_790_000_000_000) },
	}
	const signed = "AWS4-HMAC-SHA256 Credential=shop/20260102/eu-west-1/execute-api/aws4_request, SignedHeaders=host, Signature=0"
	token := func(claims string) string {
		return "Bearer e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".signature"
	}
	id := map[string]string{"orderId": "O-1"}
	for _, tt := range []struct {
		claim, method, path, authorization string
		status                             int
		want                               routed
	}{
		{"signed", "PUT", "/orders/O-1", signed, 204, routed{byIAM, "arn:aws:iam::123456789012:user/shop", id}},
		{"not signed", "PUT", "/orders/O-1", "", 403, routed{}},
		{"a token in place of a signature", "PUT", "/orders/O-1", token(`{}`), 403, routed{}},
		{"a token", "GET", "/orders/O-1", token(`{"sub":"user-1"}`), 204, routed{byToken, "user-1", id}},
		{"no token", "GET", "/orders/O-1", "", 401, routed{}},
		{"a token that is not JSON", "GET", "/orders/O-1", token("?"), 401, routed{}},
		{"an open route", "GET", "/orders/open", "", 204, routed{Key: open}},
		{"another method", "DELETE", "/orders/O-1", signed, 404, routed{}},
		{"a longer path", "PUT", "/orders/O-1/lines", signed, 404, routed{}},
		{"an empty parameter", "PUT", "/orders/", signed, 404, routed{}},
	} {
		got = routed{}
		r := httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, http.NoBody)
		r.Header.Set("Authorization", tt.authorization)
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		if diff := cmp.Diff(got, tt.want); diff != "" || w.Code != tt.status {
			t.Errorf("%s: got %d, want %d; route (-got +want):\n%s", tt.claim, w.Code, tt.status, diff)
		}
	}
}
