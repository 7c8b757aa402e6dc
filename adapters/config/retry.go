package config

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// The retries of each service's client. The redelivery of the queue or the stream is the
// retry that lasts, so these only have to outlive a single lost connection or throttled
// request.
//
// One attempt takes at most 1 s to connect, 2 s for the TLS handshake (NewTransport) and
// AWSResponseTimeout, 2 s, for the response: 5 s, or 2 s on an idle connection. A call
// also ends with its context, whatever is left of its attempts.
//
// SQS: three attempts with delays of up to 100 and 200 ms. Failures that arrive at once
// cost 0.3 s. If nothing arrives, the attempts could take 3 * 2 s + 0.3 s = 6.3 s, and
// the context ends them: 3/4 of ANSWER_TIME, 2.25 s by default, hold one attempt without
// a response, a delay and the start of another.
//
// EventBridge: three attempts with delays of up to 100 and 200 ms, 6.3 s at most on an
// idle connection. They repeat a request whose response was lost, so a bus may get its
// events twice. An entry that the bus refuses is not retried here.
//
// Secrets Manager: three attempts with delays of up to 200 and 400 ms. They take at most
// 3 * 5 s + 0.6 s = 15.6 s of a cold start. Lambda ends the Init phase after 10 s and
// repeats it within the function's time-out. Of its 30 s, 14.4 s are left for the batch,
// more than the 13 s of ORDER_BUDGET and ANSWER_TIME.
//
// DynamoDB: see package dynamodb, which retries transaction conflicts too.
func retryer(service Service) func() aws.Retryer {
	switch service {
	case SQS, EventBridge:
		return standardRetryer(3, 100*time.Millisecond)
	case SecretsManager:
		return standardRetryer(3, 200*time.Millisecond)
	case DynamoDB:
		return nil
	}
	return nil
}

// standardRetryer returns the SDK's standard retryer with our attempts, delays and quota.
// The first delay is at most firstDelay, and the bound doubles with each further one.
//
// Every option is set because the SDK's defaults are changing: throttled requests wait a
// second and more, and a retry costs 14 tokens instead of 5
// (https://github.com/aws/aws-sdk-go-v2/issues/3416; AWS_NEW_RETRIES_2026=true in v1.47).
// The new behavior also counts retries from 0, which halves our delays, and lets a
// service ask for up to 5 s more with x-amz-retry-after, which the call's context bounds,
// or in a cold start the function's time-out.
func standardRetryer(maxAttempts int, firstDelay time.Duration) func() aws.Retryer {
	return func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = maxAttempts
			// 500 tokens, 5 for a retry, 10 after a time-out: a process in an outage gets
			// at most 100 retries, and then one attempt for each call. A call that
			// succeeds adds one token.
			o.RateLimiter = ratelimit.NewTokenRateLimit(500)
			o.RetryCost, o.ThrottlingRetryCost, o.RetryTimeoutCost, o.NoRetryIncrement = 5, 5, 10, 1
			jitter := retry.NewExponentialJitterBackoff(time.Minute) // up to 2 s, 4 s, 8 s
			o.Backoff = retry.BackoffDelayerFunc(func(retry int, err error) (time.Duration, error) {
				delay, err := jitter.BackoffDelay(retry, err)
				return delay / (2 * time.Second / firstDelay), err
			})
		})
	}
}
