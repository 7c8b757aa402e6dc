package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/adapters/dynamodb/dynamodbtest"
	receipttable "orderonce/adapters/dynamodb/receipts"
	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/adapters/ses/sestest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

// Names and times of the receipts of the local system.
const (
	ReceiptQueue       = "receipts"
	ReceiptDeadLetters = "receipts-dead"
	ReceiptFrom        = "Pretend Shop <receipts@shop.invalid>"
	ConfigurationSet   = "receipts"
	MailWaits          = 600 * time.Millisecond
	ReceiptBudget      = 1500 * time.Millisecond // a call to Stripe, one to SES, and two writes
)

var errNoPublish = errors.New("the receipt function needs the publish function")

func (*System) receiptPair() pair { return pair{ReceiptQueue, ReceiptDeadLetters} }

// startReceipt starts the receipt function between its queue and a pretend SES.
func (s *System) startReceipt(ctx context.Context) error {
	if s.Options.Receipt == "" {
		return nil
	}
	if s.Options.Publish == "" {
		return errNoPublish
	}
	if err := s.createReceipts(ctx); err != nil {
		return err
	}
	var err error
	if s.Mail, err = sestest.Serve(sestest.Options{
		Now: s.now, Publish: s.mailEvent,
		Before: s.Options.BeforeMail, After: s.Options.AfterMail,
	}); err != nil {
		return err
	}
	s.closers = append(s.closers, s.Mail.Close)
	s.Receipt, err = s.startConsumer(s.Options.Receipt, nil, s.stripe(StripeWaits),
		s.consumes(s.receiptPair(), ReceiptBudget), variables{
			"AWS_ENDPOINT_URL_DYNAMODB": s.Proxy.URL, "RECEIPTS_TABLE": s.ReceiptsTable,
			"AWS_ENDPOINT_URL_SESV2": s.Mail.URL, "SES_TIMEOUT": MailWaits.String(), "RECEIPT_FROM": ReceiptFrom,
			"RECEIPT_CONFIGURATION_SET": ConfigurationSet,
		})
	if err == nil {
		s.mapping, _, err = s.receive(ctx, s.receiptPair(), s.Receipt, sqstest.Mapping{})
	}
	return err
}

// createReceipts creates the table.
func (s *System) createReceipts(ctx context.Context) error {
	s.ReceiptsTable = TableIn(s.Options.Engine, "receipts")
	config := s.engineConfig(s.Engine.Endpoint)
	if err := dynamodbtest.CreateReceipts(ctx, sdk.NewFromConfig(config), s.ReceiptsTable); err != nil {
		return fmt.Errorf("engine at %s: %w", s.Engine.Endpoint, err)
	}
	s.DropOnClose(ctx, s.ReceiptsTable)
	s.Receipts = receipttable.New(config, s.ReceiptsTable)
	return nil
}

// toReceipts is the rule from the bus to the receipt queue. The pretend queue accepts
// every message, so the target needs none of EventBridge's retries.
func (s *System) toReceipts(e eventbridgetest.Event) {
	if s.mapping != nil && (e.DetailType == "Order Paid" || e.DetailType == "Refund Succeeded") {
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

// mailEvent is the rule from SES's events on the default bus to the receipt queue.
func (s *System) mailEvent(event json.RawMessage) {
	if s.Options.LoseMailEvent == nil || !s.Options.LoseMailEvent(event) {
		s.Notify(string(event))
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
	if s.mapping == nil {
		return nil
	}
	if err := s.Published(ctx); err != nil {
		return err
	}
	ctx, cancel := s.Receipt.UntilExit(ctx)
	defer cancel()
	if err := s.mapping.Drained(ctx); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}

// DeadReceipts returns the dead letters of the receipt queue.
func (s *System) DeadReceipts() (dead []sqstest.Message, err error) {
	s.SQS.Machine(func(m *sqstest.Machine, now time.Time) { dead, err = m.Messages(now, ReceiptDeadLetters) })
	return dead, err
}
