package sqs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/domain/order"
)

// Queue is the order queue and its dead-letter queue.
type Queue struct {
	client         *sqs.Client
	url, deadQueue string
}

// NewQueue returns the queues at two URLs. The function needs sqs:ChangeMessageVisibility on the first and
// sqs:SendMessage on the second.
func NewQueue(cfg aws.Config, url, deadLetterURL string) *Queue {
	return &Queue{client: sqs.NewFromConfig(cfg), url: url, deadQueue: deadLetterURL}
}

// The attributes that a parked message carries; docs/reference/message.md explains them.
const (
	AttrReason         = "orderonce-reason"
	AttrDetail         = "orderonce-detail"
	AttrOrderID        = "orderonce-order-id"
	AttrFirstMessageID = "orderonce-first-message-id" // a redrive gives a message a new id; this one stays
	AttrFirstSent      = "orderonce-first-sent"       // RFC 3339
	AttrDropped        = "orderonce-dropped"          // names of the producer's attributes that found no room
)

// maxAttributes is how many attributes SQS lets a message have (SQS developer guide, "Message quotas").
const maxAttributes = 10

// maxDetail bounds the text of one attribute, in bytes, to leave the message its room.
const maxDetail = 1024

// Parked is a message that no retry will help, and why.
type Parked struct {
	Message   events.SQSMessage
	FirstSent time.Time // see Delivery
	Group     string    // of the message, on a FIFO queue or a fair one
	FIFO      bool
	OrderID   order.ID // "" if the body is no order
	Reason    order.Reason
	Detail    string // for a person; no personal and no payment data
}

// Park sends a message to the dead-letter queue, whole, with the reason beside it. A second Park of a message
// overwrites the reason and keeps what says where the message first came from.
func (q *Queue) Park(ctx context.Context, p Parked) error {
	in := &sqs.SendMessageInput{
		QueueUrl:          &q.deadQueue,
		MessageBody:       &p.Message.Body,
		MessageAttributes: p.attributes(),
	}
	if p.Group != "" {
		in.MessageGroupId = &p.Group
	}
	if p.FIFO { // a standard queue refuses the parameter
		in.MessageDeduplicationId = &p.Message.MessageId
	}
	if _, err := q.client.SendMessage(ctx, in); err != nil {
		return fmt.Errorf("park message %s for %s: %w", p.Message.MessageId, p.Reason, err)
	}
	return nil
}

// attributes are ours first, then the producer's in the order of their names while there is room.
func (p Parked) attributes() map[string]types.MessageAttributeValue {
	out := map[string]types.MessageAttributeValue{
		AttrReason:         text(string(p.Reason)),
		AttrFirstMessageID: text(p.firstMessageID()),
		AttrFirstSent:      text(p.FirstSent.UTC().Format(time.RFC3339)),
	}
	if p.OrderID != "" {
		out[AttrOrderID] = text(string(p.OrderID))
	}
	if p.Detail != "" {
		out[AttrDetail] = text(plain(p.Detail))
	}
	theirs := slices.DeleteFunc(slices.Sorted(maps.Keys(p.Message.MessageAttributes)), func(name string) bool {
		return strings.HasPrefix(name, "orderonce-")
	})
	room := maxAttributes - len(out)
	if len(theirs) > room {
		room-- // for the attribute that names the others
		out[AttrDropped] = text(plain(strings.Join(theirs[room:], " ")))
		theirs = theirs[:room]
	}
	for _, name := range theirs {
		a := p.Message.MessageAttributes[name]
		out[name] = types.MessageAttributeValue{DataType: &a.DataType, StringValue: a.StringValue, BinaryValue: a.BinaryValue}
	}
	return out
}

// firstMessageID returns what an earlier Park wrote, or else the id that the message has now.
func (p Parked) firstMessageID() string {
	if a := p.Message.MessageAttributes[AttrFirstMessageID]; a.StringValue != nil && *a.StringValue != "" {
		return *a.StringValue
	}
	return p.Message.MessageId
}

func text(s string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
}

// plain keeps what SQS allows in an attribute, and not too much of it.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), maxDetail)]
}

// Delay is when a message of the batch comes back.
type Delay struct {
	MessageID, ReceiptHandle string
	After                    time.Duration // whole seconds, at most 12 hours
}

// ChangeVisibility makes messages visible again after their delays. A message for which this fails becomes visible when the queue's own
// visibility timeout ends. The error joins every failure.
func (q *Queue) ChangeVisibility(ctx context.Context, delays []Delay) error {
	var failures []error
	for batch := range slices.Chunk(delays, 10) { // SQS takes ten entries a call
		entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(batch))
		for i, d := range batch {
			entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{
				Id:                aws.String(strconv.Itoa(i)),
				ReceiptHandle:     &d.ReceiptHandle,
				VisibilityTimeout: int32(d.After / time.Second), //nolint:gosec // G115: at most 43200
			}
		}
		out, err := q.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q.url, Entries: entries})
		if err != nil {
			failures = append(failures, fmt.Errorf("change the visibility of %d messages: %w", len(batch), err))
			continue
		}
		for _, f := range out.Failed {
			i, _ := strconv.Atoi(aws.ToString(f.Id))
			failures = append(failures, fmt.Errorf("change the visibility of message %s: %s", batch[i].MessageID, aws.ToString(f.Code)))
		}
	}
	return errors.Join(failures...)
}
