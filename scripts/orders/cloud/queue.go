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
	"orderonce/domain/order"
)

// Queue is a queue to which messages are posted.
type Queue struct {
	Client *sdk.Client
	URL    string
}

// QueueAt returns the queue at a URL.
func (d Deployment) QueueAt(url config.URL) Queue {
	return Queue{sdk.NewFromConfig(d.AWS), string(url)}
}

// FIFO reports whether the messages of one order have a group, and duplicates of the last
// five minutes are dropped.
func (q Queue) FIFO() bool { return sqs.FIFO(q.URL) }

// Send posts one message to the group of its order, if the queue is a FIFO one, and
// returns the message's id. SQS drops a message there whose deduplication id it received
// less than five minutes ago.
func (q Queue) Send(ctx context.Context, id order.ID, deduplication, body string) (string, error) {
	in := &sdk.SendMessageInput{QueueUrl: &q.URL, MessageBody: &body}
	if q.FIFO() {
		in.MessageGroupId, in.MessageDeduplicationId = aws.String(string(id)), &deduplication
	}
	out, err := q.Client.SendMessage(ctx, in)
	if err != nil {
		return "", fmt.Errorf("post to %s: %w", q.URL, err)
	}
	return aws.ToString(out.MessageId), nil
}

// CompareQueues prints the queues' settings, or returns an error that names each setting
// that would lose messages or park them without a reason.
func (d Deployment) CompareQueues(ctx context.Context) error {
	err := d.compare(ctx, "orders", d.Queue, d.DeadLetters)
	if err == nil && d.RefundQueue != "" && d.DeadRefunds == "" {
		return errors.New("REFUND_DEAD_LETTER_QUEUE_URL: want the URL of the dead-letter queue of refunds")
	}
	if err == nil && d.RefundQueue != "" {
		err = d.compare(ctx, "refunds", d.RefundQueue, d.DeadRefunds)
	}
	return err
}

func (d Deployment) compare(ctx context.Context, of string, live, deadLetters config.URL) error {
	s, err := sqs.NewQueue(d.AWS, string(live), string(deadLetters)).Settings(ctx)
	if err != nil {
		return err
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
