package config

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// retryer returns the retryer of a service's client: the SDK's standard one with three
// attempts and short delays, the first at most firstDelay and the second twice as long.
// The redelivery of the queue or the stream is the retry that lasts, so these need only
// outlive a lost connection or a throttled request. A call also ends with its context.
//
// One attempt takes at most 1 s to connect, 2 s for the TLS handshake (NewTransport) and
// AWSResponseTimeout, 2 s, for the response: 5 s, or 2 s on an idle connection. If
// nothing arrives, SQS and EventBridge take 3 * 2 s + 0.3 s = 6.3 s; the context of SQS
// ends earlier, after 3/4 of ANSWER_TIME. Secrets Manager takes 3 * 5 s + 0.6 s = 15.6 s
// of a cold start, which Lambda ends after 10 s and repeats within the function's
// time-out of 30 s. Package dynamodb has its own retryer, for transaction conflicts.
//
// A repeated request whose response was lost may give a bus its events twice. An entry
// that the bus refuses is not retried here.
//
// Every option is set because the SDK's defaults are changing: throttled requests wait a
// second and more, and a retry costs 14 tokens instead of 5
// (https://github.com/aws/aws-sdk-go-v2/issues/3416; AWS_NEW_RETRIES_2026=true in v1.47).
// The new behavior also counts retries from 0, which halves our delays, and lets a
// service ask for up to 5 s more with x-amz-retry-after.
func retryer(service Service) func() aws.Retryer {
	firstDelay, ok := map[Service]time.Duration{ // package dynamodb has its own retryer, package ses none
		SQS: 100 * time.Millisecond, EventBridge: 100 * time.Millisecond, SecretsManager: 200 * time.Millisecond,
	}[service]
	if !ok {
		return nil
	}
	return func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = 3
			// A process in an outage gets at most 100 retries, and then one attempt for each
			// call. A call that succeeds adds one token.
			o.RateLimiter = ratelimit.NewTokenRateLimit(500)
			o.RetryCost, o.ThrottlingRetryCost, o.RetryTimeoutCost, o.NoRetryIncrement = 5, 5, 10, 1
			jitter := retry.NewExponentialJitterBackoff(time.Minute) // up to 2 s and 4 s
			o.Backoff = retry.BackoffDelayerFunc(func(retry int, err error) (time.Duration, error) {
				delay, err := jitter.BackoffDelay(retry, err)
				return delay / (2 * time.Second / firstDelay), err
			})
		})
	}
}
