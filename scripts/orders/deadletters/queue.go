package deadletters

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/adapters/sqs"
	"orderonce/scripts/jobs"
)

// Pair is a queue and its dead-letter queue, by their URLs.
type Pair struct{ Live, Dead string }

// Queue is the dead-letter queues, and the queues to which their messages go back.
type Queue struct {
	cfg             aws.Config
	client          *sdk.Client
	decoder         *jobs.Decoder
	orders, refunds Pair
	now             func() time.Time
	wait            time.Duration
}

// NewQueue returns the dead-letter queues. Those of refunds may be "". wait is how long
// one receive waits for a message, in whole seconds up to 20: with 1 or more SQS asks all
// its servers, so that no message is overlooked.
func NewQueue(cfg aws.Config, now func() time.Time, wait time.Duration, orders, refunds Pair) *Queue {
	return &Queue{
		cfg: cfg, client: sdk.NewFromConfig(cfg), decoder: jobs.NewDecoder(),
		orders: orders, refunds: refunds, now: now, wait: wait,
	}
}

const (
	perCall = 10 // the largest number of messages of one call
	// emptyReceives is how many receives in a row return nothing at the end of the queue.
	// SQS's counts of messages are approximate, so they do not show the end.
	emptyReceives = 3
	// HiddenFor is how long a message is hidden while the queue is paged. It is extended
	// when half of it is over. Then a process that was killed hides the messages for no
	// longer than this.
	HiddenFor = 5 * time.Minute
)

// Pages is how far Each came.
type Pages struct {
	Seen  int  // different messages
	Ended bool // the end of the queues was reached
	// Unseen is how many messages the queues have beside those that Each saw,
	// approximately: they are hidden by another reader, by a receive of Each whose
	// response was lost, or on a FIFO queue by the first ten messages of their group.
	Unseen int
}

// Visit is called with a message. It reports whether the message is gone from the queue.
type Visit[T any] func(context.Context, T) (gone bool, err error)

// Each calls visit with every message of both queues, each once, until the end of the
// queues, or until it has seen limit messages. It ends early with the first error of
// visit, and with the context's error when the context ends.
//
// Messages that visit has seen are hidden, so that the next receive returns others. At
// the end, also after an error, Each makes all of them visible again, except those of
// which visit reports that they are gone. Of a message it keeps only the id and the
// receipt handle.
func (q *Queue) Each(ctx context.Context, limit int, visit Visit[Message]) (pages Pages, err error) {
	pages, err = q.each(ctx, q.orders.Dead, limit, visit)
	if err != nil || q.refunds.Dead == "" {
		return pages, err
	}
	more, err := q.each(ctx, q.refunds.Dead, limit-pages.Seen, visit)
	return Pages{pages.Seen + more.Seen, pages.Ended && more.Ended, pages.Unseen + more.Unseen}, err
}

func (q *Queue) each(
	ctx context.Context, url string, limit int, visit Visit[Message],
) (pages Pages, err error) {
	p := pager{Queue: q, url: url, visibility: sqs.NewQueue(q.cfg, url, ""), held: map[string]*hold{}}
	defer func() { // also when the context has ended
		err = errors.Join(err, p.putBack(context.WithoutCancel(ctx)))
	}()
	for empty := 0; empty < emptyReceives && p.pages.Seen < limit; {
		received, err := p.page(ctx, min(perCall, limit-p.pages.Seen), visit)
		if err != nil {
			return p.pages, err
		}
		if empty++; received > 0 {
			empty = 0
		}
		p.pages.Ended = empty == emptyReceives
	}
	p.pages.Unseen, err = p.unseen(ctx)
	return p.pages, err
}

// pager is one run of Each.
type pager struct {
	*Queue

	url        string
	visibility *sqs.Queue

	pages Pages
	held  map[string]*hold // by message id; nil if the message is gone
	order []*hold          // the next to become visible first
}

// hold is a message that is hidden until then.
type hold struct {
	id, handle string
	until      time.Time
}

// page receives once and visits what it has not seen. It returns the number of received
// messages.
func (p *pager) page(ctx context.Context, most int, visit Visit[Message]) (received int, err error) {
	if err := p.extend(ctx); err != nil {
		return 0, err
	}
	messages, err := p.receive(ctx, most)
	if err != nil {
		return 0, err
	}
	for _, m := range p.note(messages) {
		if err := errors.Join(ctx.Err(), p.extend(ctx)); err != nil {
			return 0, err
		}
		gone, err := visit(ctx, m)
		if gone {
			p.drop(m.ID)
		}
		if err != nil {
			return 0, err
		}
	}
	return len(messages), nil
}

// receive hides up to most messages and returns them. A receive that is under way when
// the context ends is completed, because its messages would otherwise stay hidden.
func (p *pager) receive(ctx context.Context, most int) ([]Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out, err := p.client.ReceiveMessage(context.WithoutCancel(ctx), &sdk.ReceiveMessageInput{
		QueueUrl: &p.url, MaxNumberOfMessages: int32(most), //nolint:gosec // G115: at most ten
		VisibilityTimeout:           int32(HiddenFor / time.Second),
		WaitTimeSeconds:             int32(p.wait / time.Second), //nolint:gosec // G115: at most 20
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		return nil, fmt.Errorf("receive from %s: %w", p.url, err)
	}
	messages := make([]Message, len(out.Messages))
	for i, raw := range out.Messages {
		messages[i] = newMessage(raw, p.url, p.decoder)
	}
	return messages, nil
}

// note records that messages are hidden from now on, and returns those that were not seen
// before. A message is received again if it became visible before it was extended, and a
// standard queue may deliver it twice.
func (p *pager) note(messages []Message) (fresh []Message) {
	until := p.now().Add(HiddenFor)
	for _, m := range messages {
		before, seen := p.held[m.ID]
		if seen && before == nil { // gone, and delivered once more
			continue
		}
		if seen {
			p.drop(m.ID)
		} else {
			fresh = append(fresh, m)
			p.pages.Seen++
		}
		h := &hold{id: m.ID, handle: m.Handle, until: until}
		p.held[m.ID] = h
		p.order = append(p.order, h)
	}
	return fresh
}

// drop forgets the receipt handle of a message, but not that it was seen.
func (p *pager) drop(id string) {
	p.held[id].handle = ""
	p.held[id] = nil
}

// extend hides messages for longer that would soon become visible.
func (p *pager) extend(ctx context.Context) error {
	var soon []*hold
	limit := p.now().Add(HiddenFor / 2)
	for ; len(p.order) > 0 && p.order[0].until.Before(limit); p.order = p.order[1:] {
		if p.order[0].handle != "" {
			soon = append(soon, p.order[0])
		}
	}
	until := p.now().Add(HiddenFor)
	for _, h := range soon {
		h.until = until
	}
	p.order = append(p.order, soon...)
	return p.visibility.ChangeVisibility(ctx, delays(soon, HiddenFor))
}

func (p *pager) putBack(ctx context.Context) error {
	if err := p.visibility.ChangeVisibility(ctx, delays(p.order, 0)); err != nil {
		return fmt.Errorf("messages stay hidden for up to %s: %w", HiddenFor, err)
	}
	return nil
}

func delays(held []*hold, after time.Duration) (all []sqs.Delay) {
	for _, h := range held {
		if h.handle != "" {
			all = append(all, sqs.Delay{MessageID: h.id, ReceiptHandle: h.handle, After: after})
		}
	}
	return all
}

// unseen returns how many messages the queue has beside the held ones.
func (p *pager) unseen(ctx context.Context) (int, error) {
	out, err := p.client.GetQueueAttributes(ctx, &sdk.GetQueueAttributesInput{
		QueueUrl: &p.url, AttributeNames: []types.QueueAttributeName{
			types.QueueAttributeNameApproximateNumberOfMessages,
			types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		},
	})
	if err != nil {
		return 0, fmt.Errorf("count the messages of %s: %w", p.url, err)
	}
	total := 0
	for _, value := range out.Attributes {
		n, _ := strconv.Atoi(value)
		total += n
	}
	return max(0, total-len(delays(p.order, 0))), nil
}

// Redrive sends the message to its queue, with its body, attributes and group, and
// then deletes it. A process that is killed in between leaves the message in both queues.
// That is harmless: an order is charged once, and a refund is made once, however many
// messages ask for it.
//
// On a FIFO queue the deduplication id is the id that the message has in the dead-letter
// queue. SQS drops a message if one with the same id was sent in the last five minutes,
// and reports success. No other message was ever sent with this one: if SQS drops it, an
// earlier Redrive of the same message sent it.
func (q *Queue) Redrive(ctx context.Context, m Message) error {
	ctx = context.WithoutCancel(ctx) // complete what has begun
	to, err := q.target(m)
	if err != nil {
		return err
	}
	in := &sdk.SendMessageInput{QueueUrl: &to, MessageBody: &m.Body, MessageAttributes: m.redriven()}
	if m.Group != "" {
		in.MessageGroupId = &m.Group
	}
	if sqs.FIFO(to) { // a standard queue rejects the parameter
		in.MessageDeduplicationId = &m.ID
	}
	if _, err := q.client.SendMessage(ctx, in); err != nil {
		return fmt.Errorf("redrive message %s: %w", m.ID, err)
	}
	return q.Delete(ctx, m)
}

// target returns the queue of the function that a message is for, whichever parked it.
// One that is neither an order nor a refund goes back to the queue that it came from.
func (q *Queue) target(m Message) (string, error) {
	if m.Job.IsRefund() || m.Invalid != nil && m.queue == q.refunds.Dead {
		return q.refundQueue(m)
	}
	return q.orders.Live, nil
}

func (q *Queue) refundQueue(m Message) (string, error) {
	if q.refunds.Live == "" {
		const want = "REFUND_QUEUE_URL: want the URL of the refund queue"
		return "", fmt.Errorf("redrive message %s: a refund: %s", m.ID, want)
	}
	return q.refunds.Live, nil
}

// Delete deletes the message from the dead-letter queue.
func (q *Queue) Delete(ctx context.Context, m Message) error {
	in := &sdk.DeleteMessageInput{QueueUrl: &m.queue, ReceiptHandle: &m.Handle}
	if _, err := q.client.DeleteMessage(context.WithoutCancel(ctx), in); err != nil {
		return fmt.Errorf("delete message %s: %w", m.ID, err)
	}
	return nil
}
