package secretsmanager_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/secretsmanager"
)

const (
	arn    = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stripe-AbCdEf"
	secret = "sk_test_canary"
)

// service answers every request with one response, and keeps the requests.
type service struct {
	status   int
	body     string
	requests []string
}

func (s *service) Do(r *http.Request) (*http.Response, error) {
	in, err := io.ReadAll(r.Body)
	s.requests = append(s.requests, r.Header.Get("X-Amz-Target")+" "+string(in))
	body := io.NopCloser(strings.NewReader(s.body))
	return &http.Response{StatusCode: s.status, Header: http.Header{}, Body: body}, err
}

func TestRead(t *testing.T) {
	for claim, tt := range map[string]struct {
		status   int
		response string
		want     string // the secret, as it is
		err      string
	}{
		"plain text":                    {200, `{"SecretString":"` + secret + `\n"}`, secret + "\n", ""},
		"JSON":                          {200, `{"SecretString":"{\"key\":\"` + secret + `\"}"}`, `{"key":"` + secret + `"}`, ""},
		"an empty secret":               {200, `{"SecretString":""}`, "", "empty SecretString"},
		"a binary secret":               {200, `{"SecretBinary":"c2tfdGVzdF9jYW5hcnk="}`, "", "empty SecretString"},
		"a role without the permission": {400, `{"__type":"AccessDeniedException"}`, "", "AccessDeniedException"},
		"a service that fails":          {500, `{"__type":"InternalServiceError"}`, "", "InternalServiceError"},
		"a truncated response":          {200, `{"SecretString":"` + secret, "", "deserialization failed"},
	} {
		s := service{status: tt.status, body: tt.response}
		cfg := aws.Config{ // the caller configures retries
			Region: "eu-west-1", HTTPClient: &s, RetryMaxAttempts: 1, Credentials: aws.AnonymousCredentials{},
		}
		got, err := secretsmanager.Read(t.Context(), cfg, arn)
		text := fmt.Sprint(err)
		named := strings.HasPrefix(text, "read secret "+arn+": ") && strings.Contains(text, tt.err) && !strings.Contains(text, secret)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !named {
			t.Errorf("%s: got %q, %v, want %q, or the ARN and %q without the secret", claim, got, err, tt.want, tt.err)
		}
		// Without a stage or a version, Secrets Manager returns the version labeled
		// AWSCURRENT (API reference, GetSecretValue). A rotation's previous or pending
		// version must not be read.
		if diff := cmp.Diff(s.requests, []string{`secretsmanager.GetSecretValue {"SecretId":"` + arn + `"}`}); diff != "" {
			t.Errorf("%s: requests (-got +want):\n%s", claim, diff)
		}
	}
}
