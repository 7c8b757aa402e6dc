package awsretry_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"orderonce/adapters/internal/awsretry"
)

// service answers every request at once, and records when each one arrives.
type service struct {
	status   int // 0: the connection is lost
	body     string
	arrivals []time.Time
}

func (s *service) Do(r *http.Request) (*http.Response, error) {
	s.arrivals = append(s.arrivals, time.Now()) //nolint:forbidigo // the clock of the bubble
	if s.status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{
		StatusCode: s.status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(s.body)), Request: r,
	}, nil
}

// The SDK's defaults change with AWS_NEW_RETRIES_2026. The retries must not.
func TestTheSDKsDefaultsDoNotChangeTheRetries(t *testing.T) {
	const ms = time.Millisecond
	for failure, backend := range map[string]service{
		"unavailable": {status: http.StatusServiceUnavailable, body: `{"__type":"ServiceUnavailable"}`},
		"throttled":   {status: http.StatusBadRequest, body: `{"__type":"ThrottlingException"}`},
		"lost":        {},
	} {
		for _, newRetries := range []string{"false", "true"} {
			for first, attempts := range map[time.Duration]int{50 * ms: 5, 200 * ms: 3} {
				t.Run(fmt.Sprint(failure, " ", attempts, ", AWS_NEW_RETRIES_2026=", newRetries), func(t *testing.T) {
					t.Setenv("AWS_NEW_RETRIES_2026", newRetries)
					synctest.Test(t, func(t *testing.T) { test(t, &backend, attempts, first) })
				})
			}
		}
	}
}

// test makes calls of a service that fails until the quota is exhausted: 500 tokens, of
// which a retry costs 5. Then a failed call is not retried, so that retries do not
// prolong an outage. A call that succeeds at its first attempt returns a token.
func test(t *testing.T, backend *service, attempts int, first time.Duration) {
	t.Helper()
	retryer := awsretry.New(attempts, first)
	client := sqs.NewFromConfig(aws.Config{
		Region: "us-east-1", HTTPClient: backend, Credentials: aws.AnonymousCredentials{},
		Retryer: func() aws.Retryer { return retryer },
	})
	call := func() (int, error) {
		backend.arrivals = nil
		_, err := client.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: aws.String("https://sqs.example/1/q")})
		return len(backend.arrivals), err
	}
	longest := make([]time.Duration, attempts-1)
	for range 100 / len(longest) {
		if n, err := call(); n != attempts || err == nil {
			t.Fatalf("got %d attempts and error %v, want %d and one of a service that fails", n, err, attempts)
		}
		for i := range longest {
			longest[i] = max(longest[i], backend.arrivals[i+1].Sub(backend.arrivals[i]))
		}
	}
	for i, got := range longest {
		if most := first << i; got > most || got < most/8 {
			t.Errorf("longest delay %d = %v, want at most %v and at least an eighth of it", i, got, most)
		}
	}
	failing := *backend
	for _, want := range []int{1, 2} { // attempts, before and after five tokens are returned
		n, err := call()
		if n != want || err == nil || !strings.Contains(err.Error(), "retry quota exceeded") {
			t.Errorf("got %d attempts and error %v, want %d and that the quota is exceeded", n, err, want)
		}
		backend.status, backend.body = http.StatusOK, "{}"
		for range 5 {
			if _, err := call(); err != nil {
				t.Fatal(err)
			}
		}
		backend.status, backend.body = failing.status, failing.body
	}
}
