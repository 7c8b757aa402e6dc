package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/scripts/invariants"
	"orderonce/scripts/jobs"
)

// OrderQueue returns the name of the order queue.
func (s *System) OrderQueue() string { return s.pair(OrderQueue).live }

type pair struct{ live, dead string }

// pair returns the queue of this name with its dead-letter queue.
func (s *System) pair(name string) pair {
	kind := ""
	if s.Options.FIFO && name != ReceiptQueue {
		kind = ".fifo"
	}
	return pair{name + kind, name + "-dead" + kind}
}

// createQueues creates a queue and its dead-letter queue with the retention, the redrive
// policy and the receive count of infra/terraform.
func (s *System) createQueues(p pair) (err error) {
	dead := sqstest.DefaultSettings()
	dead.Retention = 14 * 24 * time.Hour
	live := sqstest.DefaultSettings()
	live.Visibility, live.Retention = s.Options.Visibility, 7*24*time.Hour
	live.DeadLetters, live.MaxReceives = p.dead, s.Options.MaxReceives
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
		err = errors.Join(m.Create(now, p.dead, dead), m.Create(now, p.live, live))
	})
	return err
}

func (s *System) startMappings(ctx context.Context) error {
	_, err := s.receive(ctx, s.pair(ReceiptQueue), s.Receipt, sqstest.Mapping{})
	return errors.Join(err, s.ResumeProcessing(ctx))
}

// StopProcessing ends the event source mappings of orders and refunds after the running
// invocations, as disabling them does. The messages wait in their queues.
func (s *System) StopProcessing() (err error) {
	for _, stop := range s.stops {
		err = errors.Join(err, stop())
	}
	s.stops = nil
	return err
}

// ResumeProcessing starts the event source mappings again.
func (s *System) ResumeProcessing(ctx context.Context) error {
	m := sqstest.Mapping{Duplicate: s.Options.Duplicate, LoseDelete: s.Options.LoseDelete}
	ofOrders, err := s.receive(ctx, s.pair(OrderQueue), s.Function, m)
	if err != nil {
		return err
	}
	ofRefunds, err := s.receive(ctx, s.pair(RefundQueue), s.Refund, m)
	s.stops = []func() error{ofOrders, ofRefunds}
	return err
}

// receive starts the event source mapping of a function, if there is one, and returns
// what ends it.
func (s *System) receive(
	ctx context.Context, p pair, host *lambdatest.Host, m sqstest.Mapping,
) (stop func() error, err error) {
	if host == nil {
		return func() error { return nil }, nil
	}
	m.Server, m.Queue, m.Observe = s.SQS, p.live, s.Options.Observe
	m.BatchSize, m.Concurrency = s.Options.BatchSize, s.Options.Instances
	m.FunctionTimeout = s.Options.FunctionTimeout
	m.Invoke = func(ctx context.Context, payload []byte) ([]byte, error) {
		s.working.Add(1)
		defer s.working.Add(-1)
		return host.Invoke(ctx, payload)
	}
	if err := m.Check(); err != nil {
		return nil, err
	}
	return s.background(ctx, m.Run), nil
}

// queueOf returns the queue to which producers send a body: that of refunds for one of
// the type, if there is such a function.
func (s *System) queueOf(body string) string {
	if s.Options.Refund != "" && strings.Contains(body, `"type":"refund"`) {
		return s.pair(RefundQueue).live
	}
	return s.pair(OrderQueue).live
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

// PostMessages is Post. It returns the messages as books have them.
func (s *System) PostMessages(drafts []sqstest.Draft) (posted []invariants.Message, err error) {
	ids, err := s.Post(drafts)
	decoder := jobs.NewDecoder()
	for i, id := range ids {
		posted = append(posted, invariants.NewMessage(decoder, drafts[i].Body, id))
	}
	return posted, err
}

// Drafts returns messages without attributes.
func Drafts(bodies ...string) []sqstest.Draft {
	drafts := make([]sqstest.Draft, len(bodies))
	for i, body := range bodies {
		drafts[i].Body = body
	}
	return drafts
}

func (s *System) each(f func(m *sqstest.Machine, now time.Time, p pair) error) (err error) {
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
		for _, p := range []pair{s.pair(OrderQueue), s.pair(RefundQueue)} {
			err = errors.Join(err, f(m, now, p))
		}
	})
	return err
}

// Redrive moves every dead letter back to its queue, as an operator does, and returns
// their number.
func (s *System) Redrive() (moved int, err error) {
	err = s.each(func(m *sqstest.Machine, now time.Time, p pair) error {
		n, err := m.Redrive(now, p.dead, p.live)
		moved += n
		return err
	})
	return moved, err
}

// Messages returns the messages of both queues.
func (s *System) Messages() (all []sqstest.Message) {
	_ = s.each(func(m *sqstest.Machine, now time.Time, p pair) error { // Start created them
		messages, err := m.Messages(now, p.live)
		all = append(all, messages...)
		return err
	})
	return all
}

// Dead returns the dead letters of both queues.
func (s *System) Dead() (all []sqstest.Message, err error) {
	err = s.each(func(m *sqstest.Machine, now time.Time, p pair) error {
		dead, err := m.Messages(now, p.dead)
		all = append(all, dead...)
		return err
	})
	return all, err
}

// Purge deletes the messages of both queues that match and were received before, as if
// they had expired. It returns their number.
func (s *System) Purge(match func(sqstest.Message) bool) (purged int) {
	_ = s.each(func(m *sqstest.Machine, now time.Time, p pair) error { // Start created them
		messages, err := m.Messages(now, p.live)
		for _, message := range messages {
			if match(message) && m.Delete(now, p.live, message.Handle) == nil {
				purged++
			}
		}
		return err
	})
	return purged
}

// Counts returns the numbers of messages in both queues, by state.
func (s *System) Counts() (all sqstest.Counts) {
	_ = s.each(func(m *sqstest.Machine, now time.Time, p pair) error { // Start created them
		c, err := m.Counts(now, p.live)
		all = all.Plus(c)
		return err
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
	for _, p := range []pair{s.pair(OrderQueue), s.pair(RefundQueue)} {
		if err := s.SQS.Drained(ctx, p.live); err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
	}
	return nil
}
