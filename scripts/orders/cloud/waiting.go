package cloud

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/adapters/config"
	"orderonce/domain/order"
	"orderonce/scripts/orders/deadletters"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/watch"
)

// WatchEnv is the environment of `orders watch`.
type WatchEnv struct {
	Orders      TableEnv
	Queue       config.URL `env:"QUEUE_URL,notEmpty"             want:"the URL of the order queue"`
	DeadLetters config.URL `env:"DEAD_LETTER_QUEUE_URL,notEmpty" want:"the URL of the dead-letter queue"`
	Refunds     RefundQueues
}

// Sources returns what reads the parts of a snapshot, without a scan.
func (c WatchEnv) Sources(sh shell.Shell, cfg aws.Config) watch.Sources {
	now := sh.Now
	queues, store := sdk.NewFromConfig(cfg), c.Orders.Store(cfg)
	return watch.Sources{
		Now: now,
		Depths: func(ctx context.Context) (live, dead watch.Depth, err error) {
			if live, err = depth(ctx, queues, c.Queue, c.Refunds.Queue); err == nil {
				dead, err = depth(ctx, queues, c.DeadLetters, c.Refunds.DeadLetters)
			}
			return live, dead, err
		},
		Waiting: func(ctx context.Context, n *watch.Snapshot) error { return ReadWaiting(ctx, store, n) },
		Reasons: reasons(letters(cfg, c.Queue, c.DeadLetters, c.Refunds, now, sh.EmptyWait), now),
	}
}

// Each receive hides a message from other readers for a moment, so the reasons are read
// rarely, and of so many dead letters.
const (
	reasonsEvery = time.Minute
	maxReasons   = 100
)

// reasons counts dead letters by their reason.
func reasons(
	queue *deadletters.Queue, now func() time.Time,
) func(context.Context) (map[string]int, error) {
	var counted map[string]int
	var at time.Time
	return func(ctx context.Context) (map[string]int, error) {
		if counted != nil && now().Sub(at) < reasonsEvery {
			return counted, nil
		}
		fresh := map[string]int{}
		_, err := queue.Each(ctx, maxReasons, func(_ context.Context, m deadletters.Message) (bool, error) {
			fresh[m.ReasonShown()]++
			return false, nil
		})
		if err == nil {
			counted, at = fresh, now()
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
		one, err := depthOf(ctx, client, url)
		if err != nil {
			return d, err
		}
		d = watch.Depth{
			Waiting: d.Waiting + one.Waiting, InFlight: d.InFlight + one.InFlight, Delayed: d.Delayed + one.Delayed,
		}
	}
	return d, nil
}

func depthOf(ctx context.Context, client *sdk.Client, url config.URL) (d watch.Depth, err error) {
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
	number := func(name types.QueueAttributeName) int {
		n, _ := strconv.Atoi(out.Attributes[string(name)]) // SQS sends numbers
		return n
	}
	return watch.Depth{
		Waiting:  number(types.QueueAttributeNameApproximateNumberOfMessages),
		InFlight: number(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible),
		Delayed:  number(types.QueueAttributeNameApproximateNumberOfMessagesDelayed),
	}, nil
}

// MaxWaiting is how many waiting orders one look reads.
const MaxWaiting = 200

// waitingOrders is what readWaiting needs of the store.
type waitingOrders interface {
	order.Waiting
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
		n.Waiting[r.Status]++
		if !r.DueAt.After(n.At) {
			n.Due++
		}
		if n.Oldest.ID == "" || r.CreatedAt.Before(n.Oldest.Since) {
			n.Oldest = watch.Oldest{ID: r.OrderID, Status: r.Status, Since: r.CreatedAt}
		}
	}
	return nil
}

// Scan counts all orders by status.
func (c WatchEnv) Scan(cfg aws.Config, rate int) func(context.Context) (map[order.Status]int, error) {
	rows := c.Orders.Refunds(cfg)
	return func(ctx context.Context) (map[order.Status]int, error) {
		counted := map[order.Status]int{}
		pace := NewPace(float64(rate))
		for page, err := range rows.Scan(ctx, "") {
			if err != nil {
				return nil, err
			}
			for _, r := range page.Rows {
				counted[cmp.Or(r.Status, "corrupt")]++
			}
			if err := pace.Wait(ctx, 1); err != nil {
				return nil, err
			}
		}
		return counted, nil
	}
}

// LastDue returns a time after every recheck. It is a fixed one, because the shard of the
// index that comes first depends on it: two lists have the same order.
func LastDue() time.Time { return time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC) }
