package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/caarlos0/env/v11"

	"orderonce/adapters/config"
)

// testShell returns a shell without a terminal, which takes region, credentials and
// endpoints from environ alone.
func testShell(environ []string, typed string, out io.Writer) shell {
	return shell{
		environ: environ, in: strings.NewReader(typed), out: out, errOut: io.Discard, now: noon,
		aws: func(context.Context) (aws.Config, error) {
			c, err := config.Read[config.AWS](environ)
			cfg := c.Config("", httpClient())
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
	cfg, err := testShell(environment("AWS_ENDPOINT_URL="+url), "", io.Discard).aws(t.Context())
	must(t, err)
	return cfg
}
