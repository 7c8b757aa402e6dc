package config_test

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
)

var given = []string{ //nolint:gochecknoglobals // what every test's environment holds
	"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=pretend", "AWS_SECRET_ACCESS_KEY=" + canary, "AWS_SESSION_TOKEN=token",
}

func readAWS(t *testing.T, more ...string) config.AWS {
	t.Helper()
	environment, err := config.Read[struct{ config.AWS }](append(more, given...))
	if err != nil {
		t.Fatal(err)
	}
	return environment.AWS
}

func TestAWSConfig(t *testing.T) {
	t.Parallel()
	client := &http.Client{}
	cfg := readAWS(t).Config(config.SQS, client)
	if cfg.Region != "eu-west-1" || cfg.HTTPClient != client || cfg.BaseEndpoint != nil {
		t.Errorf("config = %+v, want the region, the client and no endpoint", cfg)
	}
	got, err := cfg.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := aws.Credentials{
		AccessKeyID: "pretend", SecretAccessKey: canary, SessionToken: "token", Source: "Lambda environment",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("credentials: got -, want +\n%s", diff)
	}
}

func TestAWSEndpoints(t *testing.T) {
	t.Parallel()
	const own, other, general = "http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"
	for _, tt := range []struct {
		name    string
		environ []string
		want    string
	}{
		{name: "the service's own endpoint overrides the general one", want: own, environ: []string{
			"AWS_ENDPOINT_URL_DYNAMODB=" + own, "AWS_ENDPOINT_URL=" + general,
		}},
		{name: "the general endpoint serves a service without its own", want: general, environ: []string{
			"AWS_ENDPOINT_URL_SQS=" + other, "AWS_ENDPOINT_URL_SECRETS_MANAGER=" + other, "AWS_ENDPOINT_URL=" + general,
		}},
		{name: "endpoints can be ignored", environ: []string{
			"AWS_ENDPOINT_URL_DYNAMODB=" + own, "AWS_ENDPOINT_URL=" + general, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := readAWS(t, tt.environ...).Config(config.DynamoDB, nil)
			if got := aws.ToString(cfg.BaseEndpoint); got != tt.want {
				t.Errorf("endpoint = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestEachServiceHasAnEndpointOfItsOwn(t *testing.T) {
	t.Parallel()
	environment := readAWS(t, "AWS_ENDPOINT_URL=http://general", "AWS_ENDPOINT_URL_DYNAMODB=http://table",
		"AWS_ENDPOINT_URL_SQS=http://queue", "AWS_ENDPOINT_URL_SECRETS_MANAGER=http://secrets")
	for service, want := range map[config.Service]string{
		config.DynamoDB: "http://table", config.SQS: "http://queue", config.SecretsManager: "http://secrets",
	} {
		if got := aws.ToString(environment.Config(service, nil).BaseEndpoint); got != want {
			t.Errorf("endpoint of %s = %q, want %q", service, got, want)
		}
	}
}

func TestTheNameOfAnAWSCallIsItsTarget(t *testing.T) {
	t.Parallel()
	request := &http.Request{Header: http.Header{"X-Amz-Target": {"DynamoDB_20120810.UpdateItem"}}}
	if got, want := config.AWSCallName(request), "DynamoDB_20120810.UpdateItem"; got != want {
		t.Errorf("AWSCallName = %q, want %q", got, want)
	}
}
