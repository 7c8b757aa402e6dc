package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"

	"orderonce/adapters/config"
	"orderonce/domain/order"
)

// queue is the order queue, to which messages are posted.
type queue struct {
	client *sdk.Client
	url    string
}

func newQueue(cfg aws.Config, url config.URL) queue {
	return queue{sdk.NewFromConfig(cfg), string(url)}
}

// fifo reports whether the messages of one order have a group, and duplicates of the last
// five minutes are dropped.
func (q queue) fifo() bool { return strings.HasSuffix(q.url, ".fifo") }

// send posts one message. On a FIFO queue its group has no other message.
func (q queue) send(ctx context.Context, id order.ID, body string) error {
	return q.sendAs(ctx, id, string(id), body)
}

// sendAs posts one message to the group of its order, if the queue is a FIFO one. SQS
// drops a message there whose deduplication id it received less than five minutes ago.
func (q queue) sendAs(ctx context.Context, id order.ID, deduplication, body string) error {
	in := &sdk.SendMessageInput{QueueUrl: &q.url, MessageBody: &body}
	if q.fifo() {
		in.MessageGroupId, in.MessageDeduplicationId = aws.String(string(id)), &deduplication
	}
	if _, err := q.client.SendMessage(ctx, in); err != nil {
		return fmt.Errorf("post to %s: %w", q.url, err)
	}
	return nil
}
