package cloud

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"

	"orderonce/adapters/config"
	"orderonce/adapters/sqs"
)

// CompareQueues prints the queues' settings, or returns an error that names each setting
// that would lose messages or park them without a reason.
func (d Deployment) CompareQueues(ctx context.Context) error {
	err := d.compare(ctx, "orders", d.Queue, d.DeadLetters)
	if err == nil && d.RefundQueue != "" {
		err = d.compare(ctx, "refunds", d.RefundQueue, d.DeadRefunds)
	}
	return err
}

func (d Deployment) compare(ctx context.Context, of string, live, deadLetters config.URL) error {
	var s sqs.Settings
	var err error
	if s.Orders, err = sqs.ReadSettings(ctx, d.AWS, string(live)); err != nil {
		return err
	}
	dead, err := d.deadLetterURL(ctx, deadLetters, s.Orders.RedriveTarget)
	if err != nil {
		return err
	}
	if dead != "" {
		if s.DeadLetters, err = sqs.ReadSettings(ctx, d.AWS, dead); err != nil {
			return err
		}
	}
	policy := sqs.DefaultPolicy()
	if d.Retention != 0 {
		policy.Retention = d.Retention
	}
	var lines []string
	for _, m := range s.Mismatches(policy) {
		lines = append(lines, "\n  "+m.String())
	}
	if len(lines) > 0 {
		return errors.New("queues of " + of + " misconfigured:" + strings.Join(lines, ""))
	}
	fmt.Fprintf(d.People(), "queues  %s are kept %s and received %d times, dead letters are kept %s\n",
		of, s.Orders.Retention, s.Orders.MaxReceives, s.DeadLetters.Retention)
	return nil
}

// deadLetterURL returns the URL of a dead-letter queue: the one in the environment, or
// that of the queue that the redrive policy names, or "".
func (d Deployment) deadLetterURL(ctx context.Context, known config.URL, target string) (string, error) {
	if known != "" || target == "" {
		return string(known), nil
	}
	parts := strings.Split(target, ":") // arn:aws:sqs:REGION:ACCOUNT:NAME
	if len(parts) != 6 {
		return "", fmt.Errorf("deadLetterTargetArn %q: not a queue ARN: "+
			"want arn:aws:sqs:REGION:ACCOUNT:NAME", target)
	}
	out, err := sdk.NewFromConfig(d.AWS).GetQueueUrl(ctx, &sdk.GetQueueUrlInput{
		QueueName: &parts[5], QueueOwnerAWSAccountId: &parts[4],
	})
	if err != nil {
		return "", fmt.Errorf("find the dead-letter queue %s: %w", target, err)
	}
	return aws.ToString(out.QueueUrl), nil
}
