package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

type watchCommand struct {
	Every time.Duration `default:"5s" help:"The time between two looks."`
	Scan  bool          `help:"Also count all orders by status, by scans of the whole table, one after the other."`
	Rate  int           `default:"5" help:"With --scan: at most so many pages of 1 MB per second."`
}

// Help explains the command beyond its one line.
func (watchCommand) Help() string {
	return `It shows the queues, the orders that wait, the oldest of them, and the dead letters by reason, until
you press q. Without a terminal, or with --json, it prints them once. It changes nothing; to read
the reasons it receives up to 100 dead letters every minute and puts them back.

Example: orders watch --every 10s`
}

// watchConfig is the environment of `orders watch`.
type watchConfig struct {
	Orders      tableConfig
	Queue       config.URL `env:"QUEUE_URL,notEmpty"             want:"the URL of the order queue"`
	DeadLetters config.URL `env:"DEAD_LETTER_QUEUE_URL,notEmpty" want:"the URL of the dead-letter queue"`
}

// Run shows the deployment.
func (w watchCommand) Run(ctx context.Context, sh shell) error {
	if w.Every < time.Second || w.Rate < 1 {
		return errors.New("--every: want at least 1s; --rate: want at least 1")
	}
	c, cfg, err := connect[watchConfig](ctx, sh)
	if err != nil {
		return err
	}
	sources := c.sources(cfg, sh.now)
	if w.Scan {
		sources.Scan = c.scan(cfg, w.Rate)
	}
	if !sh.terminal || sh.json {
		return w.once(ctx, sh, sources)
	}
	title := fmt.Sprintf("table %s and queue %s in %s", c.Orders.Table, c.Queue, cfg.Region)
	return watch.Screen{Title: title, Sources: sources, Every: w.Every}.Show(ctx)
}

// once prints one snapshot.
func (w watchCommand) once(ctx context.Context, sh shell, s watch.Sources) error {
	n := s.Read(ctx)
	if s.Scan != nil {
		orders, err := s.Scan(ctx)
		if err != nil {
			return err
		}
		n.Scanned = &watch.Scanned{At: sh.now(), Orders: orders}
	}
	if err := sh.result(n.Text(watch.Snapshot{}), n); err != nil || len(n.Errors) == 0 {
		return err
	}
	return errors.New("not everything could be read")
}

func (c watchConfig) sources(cfg aws.Config, now func() time.Time) watch.Sources {
	queues, store := sdk.NewFromConfig(cfg), c.Orders.store(cfg)
	return watch.Sources{
		Now: now,
		Depths: func(ctx context.Context) (orders, dead watch.Depth, err error) {
			if orders, err = depth(ctx, queues, c.Queue); err == nil {
				dead, err = depth(ctx, queues, c.DeadLetters)
			}
			return orders, dead, err
		},
		Waiting: func(ctx context.Context, n *watch.Snapshot) error { return readWaiting(ctx, store, n) },
		Reasons: reasons(deadletters.NewQueue(cfg, string(c.DeadLetters), string(c.Queue), now, time.Second), now),
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

// depth reads how many messages a queue has.
func depth(ctx context.Context, client *sdk.Client, url config.URL) (d watch.Depth, err error) {
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

// maxWaiting is how many waiting orders one look reads.
const maxWaiting = 200

// waitingOrders is what readWaiting needs of the store.
type waitingOrders interface {
	order.Waiting
	Load(ctx context.Context, id order.ID) (order.Record, error)
}

// readWaiting counts the orders of the index and finds the oldest.
func readWaiting(ctx context.Context, store waitingOrders, n *watch.Snapshot) error {
	n.Waiting = map[order.Status]int{}
	read := 0
	for id, err := range store.Due(ctx, lastDue()) {
		if err != nil {
			return err
		}
		if read++; read > maxWaiting {
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

// scan counts all orders by status.
func (c watchConfig) scan(cfg aws.Config, rate int) func(context.Context) (map[order.Status]int, error) {
	rows := c.Orders.refunds(cfg)
	return func(ctx context.Context) (map[order.Status]int, error) {
		counted := map[order.Status]int{}
		began, pages := time.Now(), 0
		for page, err := range rows.Scan(ctx, "") {
			if err != nil {
				return nil, err
			}
			for _, r := range page.Rows {
				counted[cmp.Or(r.Status, "corrupt")]++
			}
			pages++
			if err := waitFor(ctx, began, pages, rate); err != nil {
				return nil, err
			}
		}
		return counted, nil
	}
}
