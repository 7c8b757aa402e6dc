package secretsmanager_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
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

// answering returns the configuration of a Secrets Manager that sends one response to
// every request, and the requests that it received.
func answering(t *testing.T, status int, body string) (cfg aws.Config, requests *[]string) {
	t.Helper()
	requests = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*requests = append(*requests, r.Header.Get("X-Amz-Target")+" "+string(in))
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return aws.Config{
		Region: "eu-west-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1, // the caller configures retries
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "pretend", SecretAccessKey: "pretend"}, nil
		}),
	}, requests
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
		t.Run(claim, func(t *testing.T) {
			cfg, requests := answering(t, tt.status, tt.response)
			got, err := secretsmanager.Read(t.Context(), cfg, arn)
			if got != tt.want || (err == nil) != (tt.err == "") {
				t.Fatalf("Read = %q, %v, want %q", got, err, tt.want)
			}
			// Without a stage or a version, Secrets Manager returns the version labeled
			// AWSCURRENT (API reference, GetSecretValue). A rotation's previous or
			// pending version must not be read.
			if diff := cmp.Diff(*requests, []string{`secretsmanager.GetSecretValue {"SecretId":"` + arn + `"}`}); diff != "" {
				t.Errorf("requests (-got +want):\n%s", diff)
			}
			if err == nil {
				return
			}
			text := err.Error()
			if !strings.HasPrefix(text, "read secret "+arn+": ") || !strings.Contains(text, tt.err) || strings.Contains(text, secret) {
				t.Errorf("error = %q, want the ARN and %q, and not the secret", text, tt.err)
			}
		})
	}
}
