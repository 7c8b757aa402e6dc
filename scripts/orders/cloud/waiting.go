package cloud

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/adapters/config"
	"orderonce/domain/order"
	"orderonce/scripts/orders/deadletters"
	"orderonce/scripts/orders/watch"
)

// Watched returns what reads the parts of a snapshot, without a scan.
func (d Deployment) Watched() watch.Sources {
	queues, store := sdk.NewFromConfig(d.AWS), d.Store()
	return watch.Sources{
		Now: d.Now,
		Depths: func(ctx context.Context) (live, dead watch.Depth, err error) {
			if live, err = depth(ctx, queues, d.Queue, d.RefundQueue); err == nil {
				dead, err = depth(ctx, queues, d.DeadLetters, d.DeadRefunds)
			}
			return live, dead, err
		},
		Waiting: func(ctx context.Context, n *watch.Snapshot) error { return ReadWaiting(ctx, store, n) },
		Reasons: d.reasons(),
	}
}

// Each receive hides a message from other readers for a moment, so the reasons are read
// rarely, and of so many dead letters.
const (
	reasonsEvery = time.Minute
	maxReasons   = 100
)

func (d Deployment) reasons() func(context.Context) (map[string]int, error) {
	queue := d.Letters()
	var counted map[string]int
	var at time.Time
	return func(ctx context.Context) (map[string]int, error) {
		if counted != nil && d.Now().Sub(at) < reasonsEvery {
			return counted, nil
		}
		fresh := map[string]int{}
		_, err := queue.Each(ctx, maxReasons, func(_ context.Context, m deadletters.Message) (bool, error) {
			fresh[m.ReasonShown()]++
			return false, nil
		})
		if err == nil {
			counted, at = fresh, d.Now()
		}
		return fresh, err
	}
}

// depth reads how many messages queues have. A URL may be "".
func depth(ctx context.Context, client *sdk.Client, urls ...config.URL) (d watch.Depth, err error) {
	for _, url := range urls {
		if url == "" {
			continue
		}
		out, err := client.GetQueueAttributes(ctx, &sdk.GetQueueAttributesInput{
			QueueUrl: aws.String(string(url)), AttributeNames: []types.QueueAttributeName{
				types.QueueAttributeNameApproximateNumberOfMessages,
				types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
				types.QueueAttributeNameApproximateNumberOfMessagesDelayed,
			},
		})
		if err != nil {
			return d, err
		}
		count := func(name types.QueueAttributeName) int {
			n, _ := strconv.Atoi(out.Attributes[string(name)]) // SQS sends numbers
			return n
		}
		d.Waiting += count(types.QueueAttributeNameApproximateNumberOfMessages)
		d.InFlight += count(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)
		d.Delayed += count(types.QueueAttributeNameApproximateNumberOfMessagesDelayed)
	}
	return d, nil
}

// MaxWaiting is how many waiting orders one look reads.
const MaxWaiting = 200

// refundWaits is counted beside the statuses of orders that wait.
const refundWaits order.Status = "refund"

// waitingOrders is what ReadWaiting needs of the store.
type waitingOrders interface {
	Due(ctx context.Context, at time.Time) iter.Seq2[order.ID, error]
	Load(ctx context.Context, id order.ID) (order.Record, error)
}

// ReadWaiting counts the orders of the index and finds the oldest.
func ReadWaiting(ctx context.Context, store waitingOrders, n *watch.Snapshot) error {
	n.Waiting = map[order.Status]int{}
	read := 0
	for id, err := range store.Due(ctx, LastDue()) {
		if err != nil {
			return err
		}
		if read++; read > MaxWaiting {
			n.More = true
			return nil
		}
		r, err := store.Load(ctx, id)
		if errors.Is(err, order.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		since, status := r.CreatedAt, r.Status
		if r.Status.Charged() { // a refund of it waits, and not the order
			since, status = r.UpdatedAt, refundWaits
		}
		n.Waiting[status]++
		if !r.DueAt.After(n.At) {
			n.Due++
		}
		if n.Oldest.ID == "" || since.Before(n.Oldest.Since) {
			n.Oldest = watch.Oldest{ID: r.OrderID, Status: status, Since: since}
		}
	}
	return nil
}

// CountAll counts all orders by status. The pace is that of all scans together, or those
// of a table of one page would follow one another without a pause.
func (d Deployment) CountAll(ctx context.Context, pace *Pace) (map[order.Status]int, error) {
	counted := map[order.Status]int{}
	d.Terminal = false // a screen shows no progress
	for r, err := range d.Rows(ctx, pace) {
		if err != nil && r.OrderID == "" {
			return nil, err
		}
		counted[cmp.Or(r.Status, "corrupt")]++
	}
	return counted, nil
}

// LastDue returns a time after every recheck. It is a fixed one, because the shard of the
// index that comes first depends on it: two lists have the same order.
func LastDue() time.Time { return time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC) }
