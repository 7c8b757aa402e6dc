package apigatewaytest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/apigateway/apigatewaytest"
)

type function = func(context.Context, []byte) ([]byte, error)

func serve(f function, r *http.Request) *httptest.ResponseRecorder {
	api := apigatewaytest.API{
		Routes: map[string]function{"POST /a": f}, Now: func() time.Time { return time.UnixMilli(1_790_000_000_000) },
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	return w
}

func post(t *testing.T, path, contentType, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	return r
}

func TestAnEventHasPayloadFormat2(t *testing.T) {
	r := post(t, "/a?b=1&c=%20", "application/json; charset=utf-8", `{"d":1}`)
	r.Header["X-Many"] = []string{"e", "f"}
	r.Header.Set("Cookie", "g=1; h=2")
	var got events.APIGatewayV2HTTPRequest
	serve(func(_ context.Context, event []byte) ([]byte, error) { return nil, json.Unmarshal(event, &got) }, r)
	want := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "POST /a", RawPath: "/a", RawQueryString: "b=1&c=%20", Cookies: []string{"g=1", "h=2"},
		Headers: map[string]string{
			"host": "example.com", "content-type": "application/json; charset=utf-8", "x-many": "e,f",
		},
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			RouteKey: "POST /a", Stage: "$default", TimeEpoch: 1_790_000_000_000,
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
				Method: "POST", Path: "/a", Protocol: "HTTP/1.1", SourceIP: "127.0.0.1",
			},
		},
		Body: `{"d":1}`,
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	for contentType, text := range map[string]bool{
		"application/problem+json": true, "text/plain": true, "application/octet-stream": false, "": false,
	} {
		want := map[bool]string{true: "\x00", false: "AA=="}[text]
		serve(func(_ context.Context, event []byte) ([]byte, error) { return nil, json.Unmarshal(event, &got) },
			post(t, "/a", contentType, "\x00"))
		if got.Body != want || got.IsBase64Encoded == text {
			t.Errorf("%q: got %q, in base64: %t, want %q", contentType, got.Body, got.IsBase64Encoded, want)
		}
	}
}

func TestTheAPIAnswersWhatAFunctionCannot(t *testing.T) {
	returns := func(out string, err error) function {
		return func(context.Context, []byte) ([]byte, error) { return []byte(out), err }
	}
	never := func(context.Context, []byte) ([]byte, error) { t.Error("the function was invoked"); return nil, nil }
	const internal = `{"message":"Internal Server Error"}`
	for claim, tt := range map[string]struct {
		function
		request *http.Request
		status  int
		body    string
	}{
		"no such route":             {never, post(t, "/b", "", ""), 404, `{"message":"Not Found"}`},
		"a body of more than 10 MB": {never, post(t, "/a", "", strings.Repeat("a", 10<<20+1)), 413, `{"message":"Request Entity Too Large"}`},
		"an error":                  {returns("", errors.New("x")), post(t, "/a", "", ""), 500, internal},
		"an invalid base64 body":    {returns(`{"statusCode":200,"isBase64Encoded":true,"body":"?"}`, nil), post(t, "/a", "", ""), 500, internal},
		"no status":                 {returns(`{"a":1}`, nil), post(t, "/a", "", ""), 200, `{"a":1}`},
		"bytes": {
			returns(`{"statusCode":202,"isBase64Encoded":true,"body":"/w=="}`, nil), post(t, "/a", "", ""), 202, "\xff",
		},
	} {
		if w := serve(tt.function, tt.request); w.Code != tt.status || w.Body.String() != tt.body {
			t.Errorf("%s: got %d %s, want %d %s", claim, w.Code, w.Body, tt.status, tt.body)
		}
	}
}

func TestAFunctionHasThirtySeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := serve(func(ctx context.Context, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, post(t, "/a", "", ""))
		if took := time.Since(began); w.Code != http.StatusServiceUnavailable || took != 30*time.Second {
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
