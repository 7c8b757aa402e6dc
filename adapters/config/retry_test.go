package config_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"orderonce/adapters/config"
)

const (
	unavailable = `{"__type":"ServiceUnavailable"}`
	throttled   = `{"__type":"ThrottlingException"}`
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

// clients make one call each with the client of a service, which fails.
var clients = map[config.Service]func(context.Context, aws.Config) func() error{ //nolint:gochecknoglobals // for each test
	config.SQS: func(ctx context.Context, cfg aws.Config) func() error {
		client := sqs.NewFromConfig(cfg)
		return func() error {
			_, err := client.SendMessage(ctx, &sqs.SendMessageInput{
				QueueUrl: aws.String("https://sqs.example/1/dead"), MessageBody: aws.String("m"),
			})
			return err
		}
	},
	config.EventBridge: func(ctx context.Context, cfg aws.Config) func() error {
		client := eventbridge.NewFromConfig(cfg)
		return func() error {
			_, err := client.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{{}}})
			return err
		}
	},
	config.SecretsManager: func(ctx context.Context, cfg aws.Config) func() error {
		client := secretsmanager.NewFromConfig(cfg)
		return func() error {
			_, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String("stripe")})
			return err
		}
	},
}

// The SDK's defaults change with AWS_NEW_RETRIES_2026. The retries must not.
func TestTheSDKsDefaultsDoNotChangeTheRetries(t *testing.T) {
	const calls = 40
	for service, maxDelays := range map[config.Service][]time.Duration{
		config.SQS:            {100 * time.Millisecond, 200 * time.Millisecond},
		config.EventBridge:    {100 * time.Millisecond, 200 * time.Millisecond},
		config.SecretsManager: {200 * time.Millisecond, 400 * time.Millisecond},
	} {
		for failure, backend := range map[string]failing{
			"unavailable": {status: http.StatusServiceUnavailable, body: unavailable},
			"throttled":   {status: http.StatusBadRequest, body: throttled},
			"lost":        {},
		} {
			for _, newRetries := range []string{"false", "true"} {
				t.Run(string(service)+" "+failure+", AWS_NEW_RETRIES_2026="+newRetries, func(t *testing.T) {
					t.Setenv("AWS_NEW_RETRIES_2026", newRetries)
					synctest.Test(t, func(t *testing.T) {
						call := clients[service](t.Context(), readAWS(t).Config(service, &backend))
						longest := make([]time.Duration, len(maxDelays))
						for range calls {
							backend.arrivals = nil
							if err := call(); err == nil {
								t.Fatal("got no error of a service that fails")
							}
							if got, want := len(backend.arrivals), 1+len(maxDelays); got != want {
								t.Fatalf("attempts of one call = %d, want %d", got, want)
							}
							for i := range maxDelays {
								longest[i] = max(longest[i], backend.arrivals[i+1].Sub(backend.arrivals[i]))
							}
						}
						for i, most := range maxDelays {
							if longest[i] > most || longest[i] < most/4 {
								t.Errorf("longest delay %d of %d calls = %v, want at most %v and at least a quarter of it",
									i+1, calls, longest[i], most)
							}
						}
					})
				})
			}
		}
	}
}

func TestAnOutageLeavesAHundredRetriesAndThenOneAttemptForEachCall(t *testing.T) {
	const calls = 60
	for service, client := range clients {
		for _, newRetries := range []string{"false", "true"} {
			t.Run(string(service)+", AWS_NEW_RETRIES_2026="+newRetries, func(t *testing.T) {
				t.Setenv("AWS_NEW_RETRIES_2026", newRetries)
				synctest.Test(t, func(t *testing.T) {
					backend := &failing{status: http.StatusServiceUnavailable, body: unavailable}
					call := client(t.Context(), readAWS(t).Config(service, backend))
					var err error
					for range calls {
						err = call()
					}
					if got, want := len(backend.arrivals), calls+100; got != want {
						t.Errorf("attempts of %d calls = %d, want %d", calls, got, want)
					}
					if err == nil || !strings.Contains(err.Error(), "retry quota exceeded") {
						t.Errorf("last error = %v, want one that says the retry quota is exceeded", err)
					}
				})
			})
		}
	}
}

func TestACallEndsWithItsContextWhateverIsLeftOfItsAttempts(t *testing.T) {
	t.Parallel()
	for service, client := range clients {
		t.Run(string(service), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				attempts := 0
				silent := doer(func(r *http.Request) (*http.Response, error) {
					attempts++
					<-r.Context().Done()
					return nil, r.Context().Err()
				})
				start := time.Now() //nolint:forbidigo // the clock of the bubble
				err := client(ctx, readAWS(t).Config(service, silent))()
				if took := time.Since(start); took != time.Second { //nolint:forbidigo // the clock of the bubble
					t.Errorf("the call took %v, want 1s", took)
				}
				if !errors.Is(err, context.DeadlineExceeded) || attempts != 1 {
					t.Errorf("got %d attempts and error %v, want 1 and %v", attempts, err, context.DeadlineExceeded)
				}
			})
		})
	}
}

type doer func(*http.Request) (*http.Response, error)

func (f doer) Do(r *http.Request) (*http.Response, error) { return f(r) }

func TestDynamoDBGetsItsRetriesFromItsAdapter(t *testing.T) {
	t.Parallel()
	if got := readAWS(t).Config(config.DynamoDB, nil).Retryer; got != nil {
		t.Errorf("retryer = %T, want none", got())
	}
	if got := readAWS(t).Config(config.DynamoDB, nil).RetryMaxAttempts; got != 0 {
		t.Errorf("RetryMaxAttempts = %d, want 0: it would overrule the adapter's attempts", got)
	}
}
