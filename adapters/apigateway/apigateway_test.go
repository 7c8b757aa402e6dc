package apigateway_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"orderonce/adapters/apigateway"
)

type received struct {
	Method, URL, Host, RemoteAddr, Body string
	Header                              http.Header
}

func parse(t *testing.T, event string) events.APIGatewayV2HTTPRequest {
	t.Helper()
	var e events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal([]byte(event), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// post is an event of payload format 2.0. rest are further fields.
func post(rest string) string {
	return `{"version":"2.0","routeKey":"POST /stripe/webhook","rawPath":"/stripe/webhook","rawQueryString":"a=1&b=%20",` +
		`"headers":{"stripe-signature":"t=1,v1=00,v1=11","host":"api.example"},` +
		`"requestContext":{"http":{"method":"POST","path":"/stripe/webhook","sourceIp":"192.0.2.1"}},` + rest + `}`
}

func TestTheHandlerGetsTheRequestAsItWasSent(t *testing.T) {
	want := received{
		Method: http.MethodPost, URL: "/stripe/webhook?a=1&b=%20", Host: "api.example", RemoteAddr: "192.0.2.1",
		Header: http.Header{"Stripe-Signature": {"t=1,v1=00,v1=11"}, "Host": {"api.example"}},
	}
	for sent, body := range map[string]string{
		`"body":"{\"id\": 1}","isBase64Encoded":false`: `{"id": 1}`,
		`"body":"eyJpZCI6IDF9","isBase64Encoded":true`: `{"id": 1}`,
		`"body":"/wA=","isBase64Encoded":true`:         "\xff\x00",
		`"isBase64Encoded":false`:                      "",
	} {
		var got received
		handle := apigateway.Handle(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			got = received{r.Method, r.URL.String(), r.Host, r.RemoteAddr, string(body), r.Header}
		}))
		_, err := handle(t.Context(), parse(t, post(sent)))
		want.Body = body
		if diff := cmp.Diff(got, want); diff != "" || err != nil {
			t.Errorf("%s: error %v (-got +want):\n%s", sent, err, diff)
		}
	}
}

func TestTheAPIGetsTheHandlersResponse(t *testing.T) {
	for claim, tt := range map[string]struct {
		handler http.HandlerFunc
		want    events.APIGatewayV2HTTPResponse
	}{
		"nothing": {func(http.ResponseWriter, *http.Request) {}, events.APIGatewayV2HTTPResponse{StatusCode: 200}},
		"a status": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusAccepted)
				w.WriteHeader(http.StatusOK)
			},
			events.APIGatewayV2HTTPResponse{StatusCode: 202},
		},
		"text": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "été") },
			events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: "été"},
		},
		"bytes": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{0xff, 0}) },
			events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: "/wA=", IsBase64Encoded: true},
		},
		"headers": {
			func(w http.ResponseWriter, _ *http.Request) { w.Header()["Vary"] = []string{"Accept", "Origin"} },
			events.APIGatewayV2HTTPResponse{StatusCode: 200, Headers: map[string]string{"Vary": "Accept,Origin"}},
		},
	} {
		got, err := apigateway.Handle(tt.handler)(t.Context(), parse(t, post(`"body":""`)))
		if diff := cmp.Diff(got, tt.want, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%s: error %v, (-got +want):\n%s", claim, err, diff)
		}
	}
}

func TestAnEventThatIsNotOfAnHTTPAPIIsAnError(t *testing.T) {
	for _, event := range []string{
		post(`"body":"no base64!","isBase64Encoded":true`), `{"requestContext":{"http":{"method":"a b"}}}`,
	} {
		handle := apigateway.Handle(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s: served", event) }))
		if got, err := handle(t.Context(), parse(t, event)); err == nil {
			t.Errorf("%s: got %+v, want an error", event, got)
		}
	}
}

func TestTheHandlerGetsTheCallerThatTheAuthorizerReports(t *testing.T) {
	iam := func(arn, cognito string) string {
		return `{"iam":{"accessKey":"ASIAPRETEND","accountId":"123456789012","callerId":"AROAPRETEND:session","userArn":"` + arn +
			`","userId":"AROAPRETEND:session","principalOrgId":"o-pretend","cognitoIdentity":` + cognito + `}}`
	}
	principal := func(s string) apigateway.Caller { return apigateway.Caller{Principal: s} }
	const role = "arn:aws:sts::123456789012:assumed-role/"
	for claim, tt := range map[string]struct {
		authorizer string
		want       apigateway.Caller
	}{
		"an IAM user":                {iam("arn:aws:iam::123456789012:user/shop", "null"), principal("arn:aws:iam::123456789012:user/shop")},
		"a role without its session": {iam(role+"shop/i-0123", "null"), principal(role + "shop")},
		"a user of an identity pool": {
			iam(role+"pool/Cognito", `{"amr":[],"identityId":"eu-west-1:1","identityPoolId":"eu-west-1:2"}`),
			principal("eu-west-1:1"),
		},
		"the claims of a token": {
			`{"jwt":{"claims":{"sub":"user-1"},"scopes":null}}`,
			apigateway.Caller{Claims: map[string]string{"sub": "user-1"}},
		},
		"no authorizer":             {`null`, apigateway.Caller{}},
		"an authorizer of a Lambda": {`{"lambda":{"sub":"user-1"}}`, apigateway.Caller{}},
		"a token without claims":    {`{"jwt":{"claims":{},"scopes":null}}`, apigateway.Caller{}},
		"IAM without a user":        {iam("", "null"), apigateway.Caller{}},
	} {
		event := `{"rawPath":"/orders","headers":{"x-amzn-iam-arn":"arn:aws:iam::1:root"},` +
			`"requestContext":{"http":{"method":"GET"},"authorizer":` + tt.authorizer + `}}`
		handle := apigateway.Handle(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got, known := apigateway.CallerOf(r.Context())
			want := tt.want.Principal != "" || tt.want.Claims != nil
			if diff := cmp.Diff(got, tt.want); diff != "" || known != want {
				t.Errorf("%s: got known %t, want %t; caller (-got +want):\n%s", claim, known, want, diff)
			}
		}))
		if _, err := handle(t.Context(), parse(t, event)); err != nil {
			t.Error(err)
		}
	}
}
