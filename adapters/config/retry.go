package config

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/adapters/internal/awsretry"
)

// retryer returns the retryer of a service's client: three attempts with short delays,
// which need only outlive a lost connection or a throttled request. A call also ends with
// its context.
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
func retryer(service Service) func() aws.Retryer {
	firstDelay, ok := map[Service]time.Duration{ // package dynamodb has its own retryer, package ses none
		SQS: 100 * time.Millisecond, EventBridge: 100 * time.Millisecond, SecretsManager: 200 * time.Millisecond,
	}[service]
	if !ok {
		return nil
	}
	return func() aws.Retryer { return awsretry.New(3, firstDelay) }
}
