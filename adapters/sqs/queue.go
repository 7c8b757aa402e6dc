package sqs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/domain/order"
)

// FIFO reports whether a queue's name, URL or ARN is that of a FIFO queue (SQS developer
// guide, "FIFO queue and message identifiers").
func FIFO(name string) bool { return strings.HasSuffix(name, ".fifo") }

// DeduplicationID returns the deduplication id of a message on a FIFO queue: a hash of
// its body, so that SQS drops what was sent twice within five minutes.
func DeduplicationID(body string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(body)))
}

// Queue is a queue and its dead-letter queue.
type Queue struct {
	client             *sqs.Client
	url, deadLetterURL string
}

// NewQueue returns the queues at two URLs. It needs the permissions
// sqs:ChangeMessageVisibility on the first and sqs:SendMessage on the second.
func NewQueue(cfg aws.Config, url, deadLetterURL string) *Queue {
	return &Queue{client: sqs.NewFromConfig(cfg), url: url, deadLetterURL: deadLetterURL}
}

// The attributes that a parked message carries; docs/reference/message.md explains them.
const (
	AttrReason         = "orderonce-reason"
	AttrDetail         = "orderonce-detail"
	AttrOrderID        = "orderonce-order-id"
	AttrFirstMessageID = "orderonce-first-message-id" // a redrive changes the message id, but not this
	AttrFirstSent      = "orderonce-first-sent"       // RFC 3339
	AttrTimesParked    = "orderonce-times-parked"     // from the second time on, if there is room
	AttrTrace          = "traceparent"                // the producer's, see order.Trace
	AttrDropped        = "orderonce-dropped"          // names of the producer's attributes beyond the limit
)

// maxAttributes is the most that one message may have (SQS developer guide, "Message
// quotas").
const maxAttributes = 10

// maxDetail bounds the value of an attribute, in bytes, because attributes count toward
// the message size.
const maxDetail = 1024

// park sends a message to the dead-letter queue, with its body unchanged and the reason
// in attributes. If the message was parked before, the new reason replaces the old one,
// and the attributes about its origin stay.
func (q *Queue) park(ctx context.Context, r *record) error {
	in := &sqs.SendMessageInput{
		QueueUrl: &q.deadLetterURL, MessageBody: &r.Body, MessageAttributes: r.parkedAttributes(),
	}
	if r.delivery.Group != "" {
		in.MessageGroupId = &r.delivery.Group
	}
	if r.delivery.FIFO { // a standard queue rejects the parameter
		in.MessageDeduplicationId = &r.MessageId
	}
	if _, err := q.client.SendMessage(ctx, in); err != nil {
		return fmt.Errorf("park message %s for %s: %w", r.MessageId, r.result.Reason, err)
	}
	return nil
}

// parkedAttributes returns ours, and then the producer's, sorted by name, up to the
// limit. A producer can set any attribute, and a person reads the dead-letter queue on a
// terminal, so of the attributes that this package knows only those that parse are kept.
func (r *record) parkedAttributes() map[string]types.MessageAttributeValue {
	out := map[string]types.MessageAttributeValue{
		AttrReason:         stringValue(string(r.result.Reason)),
		AttrFirstMessageID: stringValue(FirstMessageID(text(r.SQSMessage, AttrFirstMessageID), r.MessageId)),
		AttrFirstSent:      stringValue(r.delivery.FirstSent.UTC().Format(time.RFC3339)),
	}
	if r.task.ID != "" {
		out[AttrOrderID] = stringValue(string(r.task.ID))
	}
	if r.result.Err != nil { // it has neither personal nor payment data
		out[AttrDetail] = stringValue(printable(r.result.Err.Error()))
	}
	theirs := slices.DeleteFunc(slices.Sorted(maps.Keys(r.MessageAttributes)), func(name string) bool {
		return strings.HasPrefix(name, "orderonce-") ||
			name == AttrTrace && order.ParseTrace(text(r.SQSMessage, AttrTrace)) == ""
	})
	if room := maxAttributes - len(out); len(theirs) > room {
		room-- // for AttrDropped
		out[AttrDropped] = stringValue(printable(strings.Join(theirs[room:], " ")))
		theirs = theirs[:room]
	}
	for _, name := range theirs {
		a := r.MessageAttributes[name]
		out[name] = types.MessageAttributeValue{
			DataType: &a.DataType, StringValue: a.StringValue, BinaryValue: a.BinaryValue,
		}
	}
	if ParseReason(text(r.SQSMessage, AttrReason)) != "" && len(out) < maxAttributes { // it was parked before
		n, _ := strconv.Atoi(text(r.SQSMessage, AttrTimesParked))
		out[AttrTimesParked] = stringValue(strconv.Itoa(max(n, 1) + 1))
	}
	return out
}

// FirstMessageID returns the value that an earlier parking wrote into AttrFirstMessageID,
// or the message's own id if the value is not the UUID that SQS makes.
func FirstMessageID(value, own string) string {
	const form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	hex := strings.Trim(value, "0123456789abcdef-") == ""
	if !hex || len(value) != len(form) || strings.Count(value, "-") != strings.Count(form, "-") {
		return own
	}
	return value
}

// ParseReason returns the reason that a parking wrote into AttrReason, or "" if a
// producer wrote something else: SQS moves a message with the attributes that it was sent
// with.
func ParseReason(value string) order.Reason {
	if len(value) > 40 || strings.Trim(value, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return ""
	}
	return order.Reason(value)
}

func stringValue(s string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
}

// printable replaces all but printable ASCII, because SQS rejects some characters, and
// cuts at maxDetail.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), maxDetail)]
}

// Delay is when a message becomes visible again.
type Delay struct {
	MessageID, ReceiptHandle string
	After                    time.Duration // whole seconds, at most 12 hours
}

// ChangeVisibility makes messages visible again after their delays. A message for which
// it fails becomes visible after the queue's visibility timeout. The error joins all
// failures.
func (q *Queue) ChangeVisibility(ctx context.Context, delays []Delay) error {
	var failures []error
	for batch := range slices.Chunk(delays, 10) { // the limit of one call
		entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(batch))
		for i, d := range batch {
			entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{
				Id:                aws.String(strconv.Itoa(i)),
				ReceiptHandle:     &d.ReceiptHandle,
				VisibilityTimeout: int32(d.After / time.Second), //nolint:gosec // G115: at most 43200
			}
		}
		in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q.url, Entries: entries}
		out, err := q.client.ChangeMessageVisibilityBatch(ctx, in)
		if err != nil {
			failures = append(failures, fmt.Errorf("change the visibility of %d messages: %w", len(batch), err))
			continue
		}
		for _, f := range out.Failed {
			i, _ := strconv.Atoi(aws.ToString(f.Id))
			err := fmt.Errorf("change the visibility of message %s: %s", batch[i].MessageID, aws.ToString(f.Code))
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}
