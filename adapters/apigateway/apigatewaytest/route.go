package apigatewaytest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// Account is the pretend AWS account of the callers.
const Account = "123456789012"

// Authorizer returns who sent a request, or the status with which the API refuses it. It
// verifies no signature.
type Authorizer func(*http.Request) (*Caller, int)

// Caller is who sent a request.
type Caller = events.APIGatewayV2HTTPRequestContextAuthorizerDescription

// IAM accepts a request with the header of a signature of version 4, as the AWS SDKs and
// curl --aws-sigv4 send it. The caller is an IAM user with the name of the access key.
func IAM(r *http.Request) (*Caller, int) {
	signed, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	name, _, found := strings.Cut(credential, "/")
	if !found || name == "" || !strings.HasPrefix(signed, "AWS4-HMAC-SHA256 ") {
		return nil, http.StatusForbidden
	}
	return &Caller{IAM: &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{
		AccessKey: name, AccountID: Account, UserARN: "arn:aws:iam::" + Account + ":user/" + name,
	}}, http.StatusOK
}

// JWT accepts a request with a bearer token, and takes the claims from its middle part.
func JWT(r *http.Request) (*Caller, int) {
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	parts := strings.Split(token, ".")
	if !found || len(parts) != 3 {
		return nil, http.StatusUnauthorized
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	claims := map[string]string{}
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return nil, http.StatusUnauthorized
	}
	caller := events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: claims}
	return &Caller{JWT: &caller}, http.StatusOK
}

func (a *API) authorize(key string, r *http.Request) (*Caller, int) {
	if authorizer := a.Authorizers[key]; authorizer != nil {
		return authorizer(r)
	}
	return nil, http.StatusOK
}

// route returns the key of the request's route and its path parameters. A route without
// parameters takes precedence.
func (a *API) route(r *http.Request) (key string, parameters map[string]string) {
	if exact := r.Method + " " + r.URL.Path; a.Routes[exact] != nil {
		return exact, nil
	}
	for key := range a.Routes {
		method, pattern, _ := strings.Cut(key, " ")
		if parameters, ok := match(pattern, r.URL.Path); ok && method == r.Method {
			return key, parameters
		}
	}
	return "", nil
}

// match returns the parameters of a path that has the pattern's segments.
func match(pattern, path string) (parameters map[string]string, ok bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	parameters = map[string]string{}
	for i, segment := range want {
		switch name, isParameter := strings.CutPrefix(segment, "{"); {
		case isParameter && got[i] != "":
			parameters[strings.TrimSuffix(name, "}")] = got[i]
		case segment != got[i]:
			return nil, false
		}
	}
	return parameters, true
}
