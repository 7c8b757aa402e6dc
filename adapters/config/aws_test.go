package config_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
)

func readAWS(t *testing.T, more ...string) config.AWS {
	t.Helper()
	environment, err := config.Read[struct{ config.AWS }](append(more,
		"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=pretend", "AWS_SECRET_ACCESS_KEY="+canary, "AWS_SESSION_TOKEN=token"))
	must(t, err)
	return environment.AWS
}

func TestAWSConfig(t *testing.T) {
	client := &http.Client{}
	cfg := readAWS(t).Config(config.SQS, client)
	if cfg.Region != "eu-west-1" || cfg.HTTPClient != config.WholeBody(client) || cfg.BaseEndpoint != nil {
		t.Errorf("config = %+v, want the region, the client and no endpoint", cfg)
	}
	got, err := cfg.Credentials.Retrieve(t.Context())
	must(t, err)
	want := aws.Credentials{
		AccessKeyID: "pretend", SecretAccessKey: canary, SessionToken: "token", Source: "Lambda environment",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("credentials (-got +want):\n%s", diff)
	}
	table := readAWS(t).Config(config.DynamoDB, nil)
	if table.Retryer != nil || table.RetryMaxAttempts != 0 {
		t.Errorf("got a retryer or %d attempts for DynamoDB, which its adapter chooses", table.RetryMaxAttempts)
	}
}

func TestAWSEndpoints(t *testing.T) {
	services := []config.Service{config.DynamoDB, config.SQS, config.SecretsManager, config.EventBridge, config.SES}
	own := []string{"AWS_ENDPOINT_URL=http://general"}
	for _, service := range services {
		own = append(own, fmt.Sprintf("AWS_ENDPOINT_URL_%s=http://%s", service, service))
	}
	for _, service := range services {
		for _, tt := range []struct {
			environ []string
			want    string
		}{
			{own, "http://" + string(service)},
			{own[:1:1], "http://general"},
			{append([]string{"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true"}, own...), ""},
		} {
			if got := aws.ToString(readAWS(t, tt.environ...).Config(service, nil).BaseEndpoint); got != tt.want {
				t.Errorf("%v: endpoint of %s = %q, want %q", tt.environ, service, got, tt.want)
			}
		}
	}
}

// What a retryer does is tested in package awsretry.
func TestEachClientRetriesTwice(t *testing.T) {
	for service, first := range map[config.Service]time.Duration{
		config.SQS: 100 * time.Millisecond, config.EventBridge: 100 * time.Millisecond,
		config.SecretsManager: 200 * time.Millisecond,
	} {
		retryer, longest := readAWS(t).Config(service, nil).Retryer(), time.Duration(0)
		for range 100 {
			delay, err := retryer.RetryDelay(1, io.ErrUnexpectedEOF)
			must(t, err)
			longest = max(longest, delay)
		}
		if longest > first || longest < first/2 || retryer.MaxAttempts() != 3 {
			t.Errorf("%s: got first delays of up to %v and %d attempts, want %v and 3", service, longest, retryer.MaxAttempts(), first)
		}
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
