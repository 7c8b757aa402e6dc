package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/adapters/ses/sestest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

func (s *System) startMail(context.Context) (err error) {
	if s.Options.Receipt == "" {
		return nil
	}
	s.Mail, err = sestest.Serve(sestest.Options{
		Now: s.now, Before: s.Options.BeforeMail, After: s.Options.AfterMail,
		// The rule from SES's events on the default bus to the receipt queue.
		Publish: func(event json.RawMessage) {
			if s.Options.LoseMailEvent == nil || !s.Options.LoseMailEvent(event) {
				s.Notify(string(event))
			}
		},
	})
	if err == nil {
		s.closers = append(s.closers, s.Mail.Close)
	}
	return err
}

// toReceipts is the rule from the bus to the receipt queue. The pretend queue accepts
// every message, so the target needs none of EventBridge's retries.
func (s *System) toReceipts(e eventbridgetest.Event) {
	if s.Receipt != nil && (e.DetailType == "Order Paid" || e.DetailType == "Refund Succeeded") {
		s.Notify(string(e.Delivered()))
	}
}

// RepeatEvents delivers every event of the bus to the receipt queue once more, as
// EventBridge may.
func (s *System) RepeatEvents() {
	for _, e := range s.Bus.Archive() {
		s.toReceipts(e)
	}
}

// MailEvent is an event of SES about an e-mail, without its addresses.
type MailEvent struct {
	DetailType string // such as "Email Sent", "Email Delivered" or "Email Bounced"
	OrderID    order.ID
	Subject    string
}

// ParseMailEvent reads an event of SES.
func ParseMailEvent(event json.RawMessage) (MailEvent, error) {
	var e struct {
		DetailType string `json:"detail-type"`
		Detail     struct {
			Mail struct {
				CommonHeaders struct{ Subject string }
				Tags          map[string][]string
			}
		}
	}
	if err := json.Unmarshal(event, &e); err != nil {
		return MailEvent{}, fmt.Errorf("event of SES: %w", err)
	}
	id := ""
	if tags := e.Detail.Mail.Tags[orderTag]; len(tags) > 0 {
		id = tagText(tags[0])
	}
	return MailEvent{e.DetailType, order.ID(id), e.Detail.Mail.CommonHeaders.Subject}, nil
}

// Notify puts an event into the receipt queue, as EventBridge does.
func (s *System) Notify(event string) {
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) {
		_, _ = m.Send(now, ReceiptQueue, sqstest.Draft{Body: event}) // Start created it; events are small
	})
}

// ReceiptsDrained waits until every event of the order table is published, and every
// message of the receipt queue was acknowledged or parked.
func (s *System) ReceiptsDrained(ctx context.Context) error {
	if s.Receipt == nil {
		return nil
	}
	if err := s.Published(ctx); err != nil {
		return err
	}
	ctx, cancel := s.Receipt.UntilExit(ctx)
	defer cancel()
	if err := s.SQS.Drained(ctx, ReceiptQueue); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}

// DeadReceipts returns the dead letters of the receipt queue.
func (s *System) DeadReceipts() (dead []sqstest.Message, err error) {
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) { dead, err = m.Messages(now, ReceiptDeadLetters) })
	return dead, err
}
