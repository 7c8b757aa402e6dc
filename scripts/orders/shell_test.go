package main

import (
	"context"
	"encoding/json"
	"fmt"
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

func TestATerminalGetsNothingThatItInterprets(t *testing.T) {
	t.Parallel()
	const strange = "ä€😀\t\x1b[31m\u009b\u202e\r\U000e0041\xff\n"
	const want = "ä€😀\t\\u001b[31m\\u009b\\u202e\\u000d\\udb40\\udc41\ufffd\n"
	var out strings.Builder
	sh := testShell(nil, "", &out)
	must(t, sh.result(strange, nil))
	fmt.Fprint(sh.people(), strange)
	if got := out.String(); got != want+want {
		t.Errorf("printed %q, want %q twice", got, want)
	}
	out.Reset()
	sh.json = true
	must(t, sh.result("", strange))
	var got string
	must(t, json.Unmarshal([]byte(out.String()), &got))
	if got != strings.ToValidUTF8(strange, "\ufffd") || strings.ContainsAny(out.String(), "\u009b\u202e") {
		t.Errorf("printed %q as JSON, want the same text in escapes", &out)
	}
}

// A signal ends a command also while it waits for a person's answer.
func TestAQuestionEndsWithTheContext(t *testing.T) {
	t.Parallel()
	silent, person := io.Pipe()
	t.Cleanup(func() { _ = person.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	sh := testShell(nil, "", io.Discard)
	sh.in = interruptible{ctx, silent}
	answered := make(chan bool)
	go func() { answered <- sh.confirms("Type the word: ", "word") }()
	cancel()
	if <-answered {
		t.Error("got a yes of nobody")
	}
	sh.in = interruptible{t.Context(), strings.NewReader("word\n")}
	if !sh.confirms("Type the word: ", "word") {
		t.Error("got a no, want a yes after the word")
	}
}
