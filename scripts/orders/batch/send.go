package batch

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/jobs"
	"orderonce/scripts/orders/cloud"
)

// perCall is the largest number of entries of one SendMessageBatch.
const perCall = 10

// Sender sends the messages of a file.
type Sender struct {
	cloud.Queue

	File     string
	Rate     int // messages per second; 0 means no limit
	Progress func(format string, args ...any)
}

// SendAll returns how many messages the queue is known to hold. The error names the line
// of each of the others. It stops at a call that fails as a whole, because the next would
// as well.
func (q Sender) SendAll(ctx context.Context, messages []Message) (posted int, err error) {
	var refused []error
	pace := cloud.NewPace(float64(q.Rate))
	for from := 0; from < len(messages); from += perCall {
		chunk := messages[from:min(from+perCall, len(messages))]
		if err := pace.Wait(ctx, len(chunk)); err != nil {
			rest := fmt.Errorf("%s:%d: not posted, nor the lines after it: %w", q.File, chunk[0].line, err)
			return posted, errors.Join(append(refused, rest)...)
		}
		q.Progress("%d of %d messages", from, len(messages))
		failed, err := q.sendOnce(ctx, chunk)
		if err != nil { // the response may be lost, and posting an order twice is harmless
			whole := fmt.Errorf("%s:%d to %d: may be posted, the lines after them are not; post all again: %w",
				q.File, chunk[0].line, chunk[len(chunk)-1].line, err)
			return posted, errors.Join(append(refused, whole)...)
		}
		posted += len(chunk) - len(failed)
		refused = append(refused, failed...)
	}
	return posted, errors.Join(refused...)
}

// sendOnce makes one call. The id of an entry is its line.
func (q Sender) sendOnce(ctx context.Context, messages []Message) (failed []error, err error) {
	entries := make([]types.SendMessageBatchRequestEntry, len(messages))
	for i, m := range messages {
		entries[i] = types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(m.line)), MessageBody: &m.body, MessageAttributes: m.attributes(),
		}
		if q.FIFO() {
			entries[i].MessageGroupId, entries[i].MessageDeduplicationId = group(m)
		}
	}
	out, err := q.Client.SendMessageBatch(ctx, &sdk.SendMessageBatchInput{QueueUrl: &q.URL, Entries: entries})
	if err != nil {
		return nil, err
	}
	for _, f := range out.Failed {
		failed = append(failed,
			fmt.Errorf("%s:%s: %s: %s", q.File, aws.ToString(f.Id), aws.ToString(f.Code), aws.ToString(f.Message)))
	}
	return failed, nil
}

// group returns the message group and the deduplication id of a message on a FIFO queue:
// its order, and a hash of the body, so that SQS drops what was posted twice within five
// minutes. An invalid message has a group of its own.
func group(m Message) (group, deduplication *string) {
	id := sqs.DeduplicationID(m.body)
	job, err := jobs.NewDecoder().Decode(m.body)
	if err != nil {
		return &id, &id
	}
	return aws.String(string(job.OrderID())), &id
}
