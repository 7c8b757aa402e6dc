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
	"orderonce/scripts/orders/cloud"
)

// perCall is the largest number of entries of one SendMessageBatch.
const perCall = 10

// Sender sends the messages of a file.
type Sender struct {
	Orders, Refunds cloud.Queue

	File     string
	Rate     int // messages per second; 0 means no limit
	Progress func(format string, args ...any)
}

var errNoRefundQueue = errors.New("nothing posted: REFUND_QUEUE_URL: want the URL of the refund queue")

// SendAll returns how many messages the queues are known to hold. The error names the
// line of each of the others. It stops at a call that fails as a whole, because the next
// would as well. Refunds go to their own queue.
func (q Sender) SendAll(ctx context.Context, messages []Message) (posted int, err error) {
	calls, err := q.calls(messages)
	if err != nil {
		return 0, err
	}
	var refused []error
	pace, done := cloud.NewPace(float64(q.Rate)), 0
	for _, chunk := range calls {
		if err := pace.Wait(ctx, len(chunk)); err != nil {
			rest := fmt.Errorf("%s:%d: not posted, nor the lines after it: %w", q.File, chunk[0].line, err)
			return posted, errors.Join(append(refused, rest)...)
		}
		q.Progress("%d of %d messages", done, len(messages))
		failed, err := q.sendOnce(ctx, chunk)
		if err != nil { // the response may be lost, and posting an order twice is harmless
			whole := fmt.Errorf("%s:%d to %d: may be posted, the lines after them are not; post all again: %w",
				q.File, chunk[0].line, chunk[len(chunk)-1].line, err)
			return posted, errors.Join(append(refused, whole)...)
		}
		done += len(chunk)
		posted += len(chunk) - len(failed)
		refused = append(refused, failed...)
	}
	return posted, errors.Join(refused...)
}

// calls returns the messages of each call, which are for one queue and have the order of
// the file.
func (q Sender) calls(messages []Message) (all [][]Message, err error) {
	for _, m := range messages {
		if m.IsRefund() && q.Refunds.URL == "" {
			return nil, errNoRefundQueue
		}
		last := len(all) - 1
		if last < 0 || len(all[last]) == perCall || all[last][0].IsRefund() != m.IsRefund() {
			all, last = append(all, nil), last+1
		}
		all[last] = append(all[last], m)
	}
	return all, nil
}

// sendOnce makes one call. The id of an entry is its line.
func (q Sender) sendOnce(ctx context.Context, messages []Message) (failed []error, err error) {
	queue := q.Orders
	if messages[0].IsRefund() {
		queue = q.Refunds
	}
	entries := make([]types.SendMessageBatchRequestEntry, len(messages))
	for i, m := range messages {
		entries[i] = types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(m.line)), MessageBody: &m.body, MessageAttributes: m.attributes(),
		}
		if queue.FIFO() {
			entries[i].MessageGroupId, entries[i].MessageDeduplicationId = m.group()
		}
	}
	in := &sdk.SendMessageBatchInput{QueueUrl: &queue.URL, Entries: entries}
	out, err := queue.Client.SendMessageBatch(ctx, in)
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
func (m Message) group() (group, deduplication *string) {
	id := sqs.DeduplicationID(m.body)
	if m.OrderID() == "" {
		return &id, &id
	}
	return aws.String(string(m.OrderID())), &id
}
