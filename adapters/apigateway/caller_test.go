package apigateway_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/apigateway"
)

func TestTheHandlerGetsTheCallerThatTheAuthorizerReports(t *testing.T) {
	t.Parallel()
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
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			event := `{"rawPath":"/orders","headers":{"x-amzn-iam-arn":"arn:aws:iam::1:root"},` +
				`"requestContext":{"http":{"method":"GET"},"authorizer":` + tt.authorizer + `}}`
			handle := apigateway.Handle(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got, known := apigateway.CallerOf(r.Context())
				want := tt.want.Principal != "" || tt.want.Claims != nil
				if diff := cmp.Diff(got, tt.want); diff != "" || known != want {
					t.Errorf("got known %t, want %t; caller (-got +want):\n%s", known, want, diff)
				}
			}))
			if _, err := handle(t.Context(), parse(t, event)); err != nil {
				t.Error(err)
			}
		})
	}
}
