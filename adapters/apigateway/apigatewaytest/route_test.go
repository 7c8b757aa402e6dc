package apigatewaytest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/apigateway/apigatewaytest"
)

// routed is what a function gets of a request's route.
type routed struct {
	Key, Caller string
	Parameters  map[string]string
}

func TestARouteHasParametersAndAnAuthorizer(t *testing.T) {
	t.Parallel()
	var got routed
	function := func(_ context.Context, event []byte) ([]byte, error) {
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
		Routes:      map[string]func(context.Context, []byte) ([]byte, error){byIAM: function, byToken: function, open: function},
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
		{"a credential without a name", "PUT", "/orders/O-1", "AWS4-HMAC-SHA256 Credential=/", 403, routed{}},
		{"a token", "GET", "/orders/O-1", token(`{"sub":"user-1"}`), 204, routed{byToken, "user-1", id}},
		{"no token", "GET", "/orders/O-1", "", 401, routed{}},
		{"a token that is not JSON", "GET", "/orders/O-1", token("?"), 401, routed{}},
		{"a token of two parts", "GET", "/orders/O-1", "Bearer e30.e30", 401, routed{}},
		{"an open route", "GET", "/orders/open", "", 204, routed{Key: open}},
		{"another method", "DELETE", "/orders/O-1", signed, 404, routed{}},
		{"a longer path", "PUT", "/orders/O-1/lines", signed, 404, routed{}},
		{"an empty parameter", "PUT", "/orders/", signed, 404, routed{}},
		{"another path", "PUT", "/carts/O-1", signed, 404, routed{}},
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
