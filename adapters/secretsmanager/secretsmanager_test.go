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

// answering is a Secrets Manager that gives one answer, and notes what it was asked for.
func answering(t *testing.T, status int, body string) (cfg aws.Config, asked *[]string) {
	t.Helper()
	asked = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*asked = append(*asked, r.Header.Get("X-Amz-Target")+" "+string(in))
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return aws.Config{
		Region: "eu-west-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1, // what is retried, and how often, is the caller's choice
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "pretend", SecretAccessKey: "pretend"}, nil
		}),
	}, asked
}

func TestRead(t *testing.T) {
	t.Parallel()
	refused := func(kind string) string { return `{"__type":"` + kind + `","Message":"no"}` }
	for claim, tt := range map[string]struct {
		status int
		body   string
		want   string
		err    string // "" for none
	}{
		"a secret's text is returned as it is":         {200, `{"SecretString":"` + secret + `\n"}`, secret + "\n", ""},
		"a secret in JSON is returned as it is":        {200, `{"SecretString":"{\"key\":\"` + secret + `\"}"}`, `{"key":"` + secret + `"}`, ""},
		"an empty secret is an error":                  {200, `{"SecretString":""}`, "", "it holds no text"},
		"a binary secret is an error":                  {200, `{"SecretBinary":"c2tfdGVzdF9jYW5hcnk="}`, "", "it holds no text"},
		"a secret without a value yet is an error":     {200, `{}`, "", "it holds no text"},
		"a role that may not read it is told so":       {400, refused("AccessDeniedException"), "", "AccessDeniedException"},
		"a secret that is not there is told so":        {400, refused("ResourceNotFoundException"), "", "ResourceNotFoundException"},
		"a service that fails is told so":              {500, refused("InternalServiceError"), "", "InternalServiceError"},
		"half an answer is an error, and keeps silent": {200, `{"SecretString":"` + secret, "", "deserialization failed"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			cfg, asked := answering(t, tt.status, tt.body)
			got, err := secretsmanager.Read(t.Context(), cfg, arn)
			if got != tt.want || (err == nil) != (tt.err == "") {
				t.Errorf("got %q, %v, want %q, %q", got, err, tt.want, tt.err)
			}
			// Without a stage or a version, Secrets Manager returns the version labeled AWSCURRENT
			// (API reference, GetSecretValue). A rotation's previous or pending version must not be read.
			if diff := cmp.Diff(*asked, []string{`secretsmanager.GetSecretValue {"SecretId":"` + arn + `"}`}); diff != "" {
				t.Errorf("- asked, + want:\n%s", diff)
			}
			if err == nil {
				return
			}
			text := err.Error()
			if !strings.HasPrefix(text, "read secret "+arn+": ") || !strings.Contains(text, tt.err) || strings.Contains(text, secret) {
				t.Errorf("got %q, want the ARN and %q, and nothing of the secret", text, tt.err)
			}
		})
	}
}
