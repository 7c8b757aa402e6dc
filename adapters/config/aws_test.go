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
	must(t, err)
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
	must(t, err)
	want := aws.Credentials{
		AccessKeyID: "pretend", SecretAccessKey: canary, SessionToken: "token", Source: "Lambda environment",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("credentials: got -, want +\n%s", diff)
	}
}

func TestAWSEndpoints(t *testing.T) {
	t.Parallel()
	const general, ofTable = "AWS_ENDPOINT_URL=http://general", "AWS_ENDPOINT_URL_DYNAMODB=http://table"
	const ofQueue, ofSecrets = "AWS_ENDPOINT_URL_SQS=http://queue", "AWS_ENDPOINT_URL_SECRETS_MANAGER=http://secrets"
	const ofBus, ofMail = "AWS_ENDPOINT_URL_EVENTBRIDGE=http://bus", "AWS_ENDPOINT_URL_SESV2=http://mail"
	type endpoints map[config.Service]string
	for claim, tt := range map[string]struct {
		environ []string
		want    endpoints
	}{
		"a service's own endpoint overrides the general one": {
			[]string{general, ofTable, ofQueue, ofSecrets, ofBus, ofMail},
			endpoints{
				config.DynamoDB: "http://table", config.SQS: "http://queue", config.SecretsManager: "http://secrets",
				config.EventBridge: "http://bus", config.SES: "http://mail",
			},
		},
		"the general endpoint serves a service without its own": {
			[]string{general, ofQueue, ofSecrets}, endpoints{config.DynamoDB: "http://general"},
		},
		"endpoints can be ignored": {
			[]string{general, ofTable, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true"}, endpoints{config.DynamoDB: ""},
		},
	} {
		environment := readAWS(t, tt.environ...)
		for service, want := range tt.want {
			if got := aws.ToString(environment.Config(service, nil).BaseEndpoint); got != want {
				t.Errorf("%s: endpoint of %s = %q, want %q", claim, service, got, want)
			}
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

// must ends the test on an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
