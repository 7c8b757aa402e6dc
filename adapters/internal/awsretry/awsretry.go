// Package awsretry is how the clients of AWS services retry. It does not know which
// service is called.
package awsretry

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// New returns the SDK's standard retryer, which retries network errors, 5xx and
// throttling, with so many attempts and short delays: the first is at most firstDelay,
// and the bound doubles with each retry. The redelivery of the queue or the stream is
// the retry that lasts. It retries what also reports, too.
//
// Every option is set because the SDK's defaults are changing: throttled requests wait a
// second and more, and a retry costs 14 tokens instead of 5
// (https://github.com/aws/aws-sdk-go-v2/issues/3416; AWS_NEW_RETRIES_2026=true in v1.47).
// The new behavior also counts retries from 0, which halves our delays, and lets a
// service ask for up to 5 s more with x-amz-retry-after.
func New(attempts int, firstDelay time.Duration, also ...retry.IsErrorRetryable) *retry.Standard {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.Retryables = append(o.Retryables, also...)
		// A process in an outage gets at most 100 retries, and then one attempt for each
		// call. A call that succeeds adds one token.
		o.RateLimiter = ratelimit.NewTokenRateLimit(500)
		o.RetryCost, o.ThrottlingRetryCost, o.RetryTimeoutCost, o.NoRetryIncrement = 5, 5, 10, 1
		jitter := retry.NewExponentialJitterBackoff(time.Minute) // up to 2, 4, 8, 16 s
		o.Backoff = retry.BackoffDelayerFunc(func(retry int, err error) (time.Duration, error) {
			delay, err := jitter.BackoffDelay(retry, err)
			return delay / (2 * time.Second / firstDelay), err
		})
	})
}
