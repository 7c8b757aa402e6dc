package sqs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/domain/order"
)

// DeduplicationID returns the deduplication id of a message on a FIFO queue: a hash of
// its body, so that SQS drops what was sent twice within five minutes.
func DeduplicationID(body string) string {
	hash := sha256.Sum256([]byte(body))
	return hex.EncodeToString(hash[:])
}

// fifoSuffix ends the names of FIFO queues, and of no others (SQS developer guide, "FIFO
// queue and message identifiers").
const fifoSuffix = ".fifo"

// Sender sends messages to a queue. It is safe for concurrent use.
type Sender struct {
	client *sqs.Client
	url    string
}

// NewSender returns the sender to the queue at a URL. It needs the permission
// sqs:SendMessage.
func NewSender(cfg aws.Config, url string) *Sender {
	return &Sender{client: sqs.NewFromConfig(cfg), url: url}
}

// Send sends a message with the time when it was first put, and with its trace unless
// that is "". group is its message group, if the queue is FIFO. After an error the queue
// may have the message.
func (s *Sender) Send(ctx context.Context, body, group string, first time.Time, t order.Trace) error {
	in := &sqs.SendMessageInput{
		QueueUrl: &s.url, MessageBody: &body, MessageAttributes: map[string]types.MessageAttributeValue{
			AttrFirstSent: stringValue(first.UTC().Format(time.RFC3339)),
		},
	}
	if t != "" {
		in.MessageAttributes[AttrTrace] = stringValue(string(t))
	}
	if strings.HasSuffix(s.url, fifoSuffix) { // a standard queue rejects the second parameter
		in.MessageGroupId, in.MessageDeduplicationId = &group, aws.String(DeduplicationID(body))
	}
	_, err := s.client.SendMessage(ctx, in)
	return err
}
