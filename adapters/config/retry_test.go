package config_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"orderonce/adapters/config"
)

// failing is a service that fails every request at once. It records when each one
// arrives.
type failing struct {
	status   int // 0: the connection is lost
	body     string
	arrivals []time.Time
}

func (f *failing) Do(r *http.Request) (*http.Response, error) {
	f.arrivals = append(f.arrivals, time.Now()) //nolint:forbidigo // the clock of the bubble
	if f.status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{
		StatusCode: f.status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(f.body)), Request: r,
	}, nil
}

// send returns a call with a client of that configuration, whatever the service is.
func send(ctx context.Context, cfg aws.Config) func() error {
	client := sqs.NewFromConfig(cfg)
	return func() error {
		_, err := client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String("https://sqs.example/1/dead"), MessageBody: aws.String("m"),
		})
		return err
	}
}

// The SDK's defaults change with AWS_NEW_RETRIES_2026. The retries must not: an outage
// leaves a hundred, and then one attempt for each call.
func TestTheSDKsDefaultsDoNotChangeTheRetries(t *testing.T) {
	const calls, retried = 60, 50
	for service, first := range map[config.Service]time.Duration{
		config.SQS: 100 * time.Millisecond, config.EventBridge: 100 * time.Millisecond,
		config.SecretsManager: 200 * time.Millisecond,
	} {
		for failure, backend := range map[string]failing{
			"unavailable": {status: http.StatusServiceUnavailable, body: `{"__type":"ServiceUnavailable"}`},
			"throttled":   {status: http.StatusBadRequest, body: `{"__type":"ThrottlingException"}`},
			"lost":        {},
		} {
			for _, newRetries := range []string{"false", "true"} {
				t.Run(string(service)+" "+failure+", AWS_NEW_RETRIES_2026="+newRetries, func(t *testing.T) {
					t.Setenv("AWS_NEW_RETRIES_2026", newRetries)
					synctest.Test(t, func(t *testing.T) {
						call := send(t.Context(), readAWS(t).Config(service, &backend))
						var longest [2]time.Duration
						for range retried {
							backend.arrivals = nil
							if err := call(); err == nil || len(backend.arrivals) != 3 {
								t.Fatalf("got %d attempts and error %v, want 3 and one of a service that fails", len(backend.arrivals), err)
							}
							for i := range longest {
								longest[i] = max(longest[i], backend.arrivals[i+1].Sub(backend.arrivals[i]))
							}
						}
						for i, most := range []time.Duration{first, 2 * first} {
							if longest[i] > most || longest[i] < most/4 {
								t.Errorf("longest delay %d = %v, want at most %v and at least a quarter of it", i+1, longest[i], most)
							}
						}
						backend.arrivals = nil
						for range calls - retried {
							if err := call(); err == nil || !strings.Contains(err.Error(), "retry quota exceeded") {
								t.Errorf("error = %v, want one that says the retry quota is exceeded", err)
							}
						}
						if got := len(backend.arrivals); got != calls-retried {
							t.Errorf("attempts of %d calls = %d, want one each", calls-retried, got)
						}
					})
				})
			}
		}
	}
}
