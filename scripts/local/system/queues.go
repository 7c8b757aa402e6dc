package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
		return queue + fifo
	}
	return queue
}

const fifo = ".fifo"

// pair is a queue with its dead-letter queue.
type pair struct{ live, dead string }

// pairs are the queues of orders and of refunds.
func (s *System) pairs() []pair { return []pair{s.orderPair(), s.refundPair()} }

func (s *System) orderPair() pair { return pair{s.named(OrderQueue), s.named(DeadLetters)} }

// createQueues creates a queue and its dead-letter queue with the retention, the redrive
// policy and the receive count of infra/terraform.
func (s *System) createQueues(p pair) (err error) {
	dead := sqstest.DefaultSettings()
	dead.Retention, dead.FIFO = 14*24*time.Hour, strings.HasSuffix(p.dead, fifo)
	live := sqstest.DefaultSettings()
	live.Visibility, live.Retention, live.FIFO = s.Options.Visibility, 7*24*time.Hour, dead.FIFO
	live.DeadLetters, live.MaxReceives = p.dead, s.Options.MaxReceives
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
		err = errors.Join(m.Create(now, p.dead, dead), m.Create(now, p.live, live))
	})
	return err
}

// startOrders starts the order function.
func (s *System) startOrders(context.Context) (err error) {
	s.Function, err = s.startConsumer(s.Options.Binary, s.Options.ObserveInstance,
		s.tables(), s.stripe(StripeWaits), s.consumes(s.orderPair(), OrderBudget))
	return err
}

// startMapping starts the event source mappings of orders and of refunds.
func (s *System) startMapping(ctx context.Context) (err error) {
	more := sqstest.Mapping{Duplicate: s.Options.Duplicate, LoseDelete: s.Options.LoseDelete}
	s.Mapping, s.stops[0], err = s.receive(ctx, s.orderPair(), s.Function, more)
	if err == nil && s.Refund != nil {
		s.refunds, s.stops[1], err = s.receive(ctx, s.refundPair(), s.Refund, more)
	}
	return err
}

// receive starts an event source mapping, and returns what ends it.
func (s *System) receive(
	ctx context.Context, p pair, host *lambdatest.Host, m sqstest.Mapping,
) (started *sqstest.Mapping, stop func() error, err error) {
	m.Server, m.Queue, m.Observe = s.SQS, p.live, s.Options.Observe
	m.BatchSize, m.Concurrency = s.Options.BatchSize, s.Options.Instances
	m.FunctionTimeout = s.Options.FunctionTimeout
	m.Invoke = func(ctx context.Context, payload []byte) ([]byte, error) {
		s.working.Add(1)
		defer s.working.Add(-1)
		return host.Invoke(ctx, payload)
	}
	if err := m.Check(); err != nil {
		return nil, nil, err
	}
	return &m, s.background(ctx, m.Run), nil
}

// hosts are the functions of both queues.
func (s *System) hosts() []*lambdatest.Host {
	if s.Refund == nil {
		return []*lambdatest.Host{s.Function}
	}
	return []*lambdatest.Host{s.Function, s.Refund}
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
	host, queue := s.Function, s.queueOf(m.Body)
	if queue == s.refundPair().live {
		host = s.Refund
	}
	return host.Invoke(ctx, sqstest.Event(queue, []sqstest.Message{m}))
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
	if s.Options.Refund != "" && strings.Contains(body, `"type":"refund"`) {
		return s.refundPair().live
	}
	return s.orderPair().live
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
		for _, p := range s.pairs() {
			n, failed := m.Redrive(now, p.dead, p.live)
			moved, err = moved+n, errors.Join(err, failed)
		}
	})
	return moved, err
}

// Messages returns the messages of both queues.
func (s *System) Messages() (all []sqstest.Message) {
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
		for _, p := range s.pairs() {
			messages, _ := m.Messages(now, p.live) // it was created by Start
			all = append(all, messages...)
		}
	})
	return all
}

// Dead returns the dead letters of both queues.
func (s *System) Dead() (all []sqstest.Message, err error) {
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
		for _, p := range s.pairs() {
			dead, failed := m.Messages(now, p.dead)
			all, err = append(all, dead...), errors.Join(err, failed)
		}
	})
	return all, err
}

// Purge deletes the messages of both queues that match and were received before, as if
// they had expired. It returns their number.
func (s *System) Purge(match func(sqstest.Message) bool) (purged int) {
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
		for _, p := range s.pairs() {
			messages, _ := m.Messages(now, p.live) // it was created by Start
			for _, message := range messages {
				if match(message) && m.Delete(now, p.live, message.Receipt) == nil {
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
		for _, p := range s.pairs() {
			c, _ := m.Counts(now, p.live) // it was created by Start
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
