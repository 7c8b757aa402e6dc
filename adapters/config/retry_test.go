package config_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"orderonce/adapters/config"
)

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

// What a retryer does is tested in package awsretry.
func TestEachClientRetriesTwice(t *testing.T) {
	for service, first := range map[config.Service]time.Duration{
		config.SQS: 100 * time.Millisecond, config.EventBridge: 100 * time.Millisecond,
		config.SecretsManager: 200 * time.Millisecond,
	} {
		retryer, longest := readAWS(t).Config(service, nil).Retryer(), time.Duration(0)
		for range 100 {
			delay, err := retryer.RetryDelay(1, io.ErrUnexpectedEOF)
			must(t, err)
			longest = max(longest, delay)
		}
		if longest > first || longest < first/2 || retryer.MaxAttempts() != 3 {
			t.Errorf("%s: got first delays of up to %v and %d attempts, want %v and 3", service, longest, retryer.MaxAttempts(), first)
		}
	}
}
