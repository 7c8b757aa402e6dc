package system

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
)

// OrderQueue returns the name of the order queue.
func (s *System) OrderQueue() string { return s.named(OrderQueue) }

// DeadLetterQueue returns the name of the dead-letter queue of orders.
func (s *System) DeadLetterQueue() string { return s.named(DeadLetters) }

func (s *System) named(queue string) string {
	if s.Options.FIFO {
		return queue + ".fifo"
	}
	return queue
}

// pairs are the queues of orders and of refunds, each with its dead-letter queue.
func (s *System) pairs() [2][2]string {
	return [2][2]string{
		{s.named(OrderQueue), s.named(DeadLetters)}, {s.named(RefundQueue), s.named(DeadRefunds)},
	}
}

// createQueues creates the queues with the retention, the redrive policy and the receive
// count of infra/terraform.
func (s *System) createQueues(m *sqstest.Machine, now time.Time) (err error) {
	for _, pair := range s.pairs() {
		dead := sqstest.DefaultSettings()
		dead.Retention, dead.FIFO = 14*24*time.Hour, s.Options.FIFO
		live := sqstest.DefaultSettings()
		live.Visibility, live.Retention, live.FIFO = s.Options.Visibility, 7*24*time.Hour, s.Options.FIFO
		live.DeadLetters, live.MaxReceives = pair[1], s.Options.MaxReceives
		err = errors.Join(err, m.Create(now, pair[1], dead), m.Create(now, pair[0], live))
	}
	return err
}

// firstRefundInstance is the number of the refund function's first instance, less one.
const firstRefundInstance = 100

// startRefund starts the function of the refund queue.
func (s *System) startRefund(context.Context) (err error) {
	if s.Options.Refund == "" {
		return nil
	}
	env := s.functionEnv()
	delete(env, "STOCK_TABLE")
	env["QUEUE_URL"] = s.SQS.QueueURL(s.named(RefundQueue))
	env["DEAD_LETTER_QUEUE_URL"] = s.SQS.QueueURL(s.named(DeadRefunds))
	observe := s.Options.ObserveInstance
	if observe != nil {
		observe = func(e lambdatest.Event) {
			e.Instance += firstRefundInstance
			s.Options.ObserveInstance(e)
		}
	}
	s.Refund, err = s.startHost(s.Options.Refund, env, observe)
	return err
}

// startMapping starts the event source mappings of both queues.
func (s *System) startMapping(ctx context.Context) (err error) {
	if s.Mapping, err = s.startMappingOf(s.OrderQueue(), s.Function); err != nil {
		return err
	}
	mappings := []*sqstest.Mapping{s.Mapping}
	if s.Refund != nil {
		if s.refunds, err = s.startMappingOf(s.named(RefundQueue), s.Refund); err != nil {
			return err
		}
		mappings = append(mappings, s.refunds)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // until Close, not until Start's context ends
	failed := make([]error, len(mappings))
	var run sync.WaitGroup
	for i, mapping := range mappings {
		run.Go(func() { failed[i] = mapping.Run(ctx) })
	}
	s.stop = func() error {
		stop()
		run.Wait()
		return errors.Join(failed...)
	}
	s.closers = append(s.closers, s.stop)
	return nil
}

func (s *System) startMappingOf(queue string, host *lambdatest.Host) (*sqstest.Mapping, error) {
	m := &sqstest.Mapping{
		Server: s.SQS, Queue: queue, BatchSize: s.Options.BatchSize, Concurrency: s.Options.Instances,
		FunctionTimeout: s.Options.FunctionTimeout,
		Invoke: func(ctx context.Context, payload []byte) ([]byte, error) {
			s.working.Add(1)
			defer s.working.Add(-1)
			return host.Invoke(ctx, payload)
		},
		Observe: s.Options.Observe, Duplicate: s.Options.Duplicate, LoseDelete: s.Options.LoseDelete,
	}
	return m, m.Check()
}

// hosts are the functions of both queues.
func (s *System) hosts() []*lambdatest.Host {
	return slices.DeleteFunc([]*lambdatest.Host{s.Function, s.Refund}, func(h *lambdatest.Host) bool { return h == nil })
}

// Kill kills the busy instances of both functions whose payload matches, see
// lambdatest.Host.
func (s *System) Kill(match func(payload []byte) bool) (killed int) {
	for _, h := range s.hosts() {
		killed += h.Kill(match)
	}
	return killed
}

// Freeze freezes the busy instances of both functions whose payload matches, see
// lambdatest.Host.
func (s *System) Freeze(d time.Duration, match func(payload []byte) bool) (frozen int) {
	for _, h := range s.hosts() {
		frozen += h.Freeze(d, match)
	}
	return frozen
}

// Invoke invokes the function of a message.
func (s *System) Invoke(ctx context.Context, m sqstest.Message) ([]byte, error) {
	queue := s.queueOf(m.Body)
	if s.Refund != nil && queue != s.OrderQueue() {
		return s.Refund.Invoke(ctx, sqstest.Event(queue, []sqstest.Message{m}))
	}
	return s.Function.Invoke(ctx, sqstest.Event(queue, []sqstest.Message{m}))
}

// UntilExit returns a context that ends when one of the two functions exits by itself,
// see lambdatest.Host.
func (s *System) UntilExit(ctx context.Context) (context.Context, context.CancelFunc) {
	cancels := []context.CancelFunc{}
	for _, h := range s.hosts() {
		var cancel context.CancelFunc
		ctx, cancel = h.UntilExit(ctx)
		cancels = append(cancels, cancel)
	}
	return ctx, func() {
		for _, cancel := range slices.Backward(cancels) {
			cancel()
		}
	}
}

// queueOf returns the queue to which producers send a body: that of refunds for one of
// the type, if there is such a function.
func (s *System) queueOf(body string) string {
	if s.Options.Refund != "" && bytes.Contains([]byte(body), []byte(`"type":"refund"`)) {
		return s.named(RefundQueue)
	}
	return s.OrderQueue()
}

// Post sends messages, each to the queue of its type and all before the first is
// delivered, and returns their message ids.
func (s *System) Post(drafts []sqstest.Draft) (ids []string, err error) {
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
		for _, draft := range drafts {
			var sent sqstest.Message
			if sent, err = m.Send(now, s.queueOf(draft.Body), draft); err != nil {
				err = fmt.Errorf("post a message of %d bytes: %w", len(draft.Body), err)
				return
			}
			ids = append(ids, sent.ID)
		}
	})
	return ids, err
}

// Redrive moves every dead letter back to its queue, as an operator does, and returns
// their number.
func (s *System) Redrive() (moved int, err error) {
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
		for _, pair := range s.pairs() {
			n, failed := m.Redrive(now, pair[1], pair[0])
			moved, err = moved+n, errors.Join(err, failed)
		}
	})
	return moved, err
}

// Messages returns the messages of both queues.
func (s *System) Messages() (all []sqstest.Message) {
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
		for _, pair := range s.pairs() {
			messages, _ := m.Messages(now, pair[0]) // it was created by Start
			all = append(all, messages...)
		}
	})
	return all
}

// Dead returns the dead letters of both queues.
func (s *System) Dead() (all []sqstest.Message, err error) {
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
		for _, pair := range s.pairs() {
			dead, failed := m.Messages(now, pair[1])
			all, err = append(all, dead...), errors.Join(err, failed)
		}
	})
	return all, err
}

// Purge deletes the messages of both queues that match and were received before, as if
// they had expired. It returns their number.
func (s *System) Purge(match func(sqstest.Message) bool) (purged int) {
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
		for _, pair := range s.pairs() {
			messages, _ := m.Messages(now, pair[0]) // it was created by Start
			for _, message := range messages {
				if match(message) && m.Delete(now, pair[0], message.Receipt) == nil {
					purged++
				}
			}
		}
	})
	return purged
}

// Counts returns the numbers of messages in both queues, by state.
func (s *System) Counts() (all sqstest.Counts) {
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
		for _, pair := range s.pairs() {
			c, _ := m.Counts(now, pair[0]) // it was created by Start
			all = all.Plus(c)
		}
	})
	return all
}

// Waiting returns the number of messages in both queues.
func (s *System) Waiting() int {
	c := s.Counts()
	return c.Visible + c.InFlight
}

// Busy reports whether a function runs, or has a message to process. In a FIFO queue, a
// visible message may have to wait for its group.
func (s *System) Busy() bool {
	return s.working.Load() > 0 || !s.Options.FIFO && s.Counts().Visible > 0
}

// Skip moves the clocks to a second after the next message becomes visible, for a system
// that is not Busy but waits. SQS counts visibility in whole seconds, so messages of one
// batch become visible together. Without a message in flight it does nothing: the next
// event would be that a dead letter expires, days ahead.
func (s *System) Skip() {
	c := s.Counts()
	var wait time.Duration
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
		if next, ok := m.Next(now); ok && c.InFlight > 0 {
			wait = next.Sub(now) + time.Second
		}
	})
	if wait > 0 {
		s.Advance(wait)
	}
}

// Drained waits until every message of both queues was acknowledged or parked. It returns
// lambdatest.ErrExited at once when a function exits by itself.
func (s *System) Drained(ctx context.Context) error {
	ctx, cancel := s.UntilExit(ctx)
	defer cancel()
	for _, m := range []*sqstest.Mapping{s.Mapping, s.refunds} {
		if m == nil {
			continue
		}
		if err := m.Drained(ctx); err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
	}
	return nil
}
