package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/caarlos0/env/v11"

	"orderonce/adapters/config"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

// testShell returns a shell without a terminal, which takes region, credentials and
// endpoints from environ alone.
func testShell(environ []string, typed string, out io.Writer) shell.Shell {
	return shell.Shell{
		Environ: environ, In: strings.NewReader(typed), Out: out, ErrOut: io.Discard, Now: noon,
		AWS: func(context.Context) (aws.Config, error) {
			c, err := config.Read[config.AWS](environ)
			cfg := c.Config("", cloud.HTTPClient())
			cfg.ConfigSources = []any{endpoints(env.ToMap(environ))}
			return cfg, err
		},
	}
}

// endpoints finds AWS_ENDPOINT_URL_SQS and the like, as the SDK's own sources do.
type endpoints map[string]string

//
//nolint:unparam // the SDK's interface
func (e endpoints) GetServiceBaseEndpoint(_ context.Context, sdkID string) (string, bool, error) {
	url, found := e["AWS_ENDPOINT_URL_"+strings.ToUpper(strings.ReplaceAll(sdkID, " ", "_"))]
	return url, found, nil
}

// awsOf returns the configuration of an AWS whose services are all at one URL.
func awsOf(t *testing.T, url string) aws.Config {
	t.Helper()
	cfg, err := testShell(environment("AWS_ENDPOINT_URL="+url), "", io.Discard).AWS(t.Context())
	must(t, err)
	return cfg
}

// must ends the test on an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// environment returns a valid environment with changes, the last of which counts.
func environment(changes ...string) []string {
	return append([]string{
		"AWS_REGION=" + sqstest.Region, "AWS_ACCESS_KEY_ID=pretend", "AWS_SECRET_ACCESS_KEY=canary", "ORDERS_TABLE=orders",
		"QUEUE_URL=https://sqs.example/1/orders", "SCOPE=" + string(scope), "STRIPE_SECRET_KEY=" + pretendKey,
	}, changes...)
}

// noon is when the orders of these tests were created.
func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 123_000_000, time.UTC) }
