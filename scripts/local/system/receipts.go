package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/adapters/lambda/lambdatest"
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

// createReceiptQueues creates the queue that the rules fill, and its dead-letter queue.
func (s *System) createReceiptQueues(m *sqstest.Machine, now time.Time) error {
	if s.Options.Receipt == "" {
		return nil
	}
	dead := sqstest.DefaultSettings()
	dead.Retention = 14 * 24 * time.Hour
	live := sqstest.DefaultSettings()
	live.Visibility, live.Retention = s.Options.Visibility, 7*24*time.Hour
	live.DeadLetters, live.MaxReceives = ReceiptDeadLetters, s.Options.MaxReceives
	return errors.Join(m.Create(now, ReceiptDeadLetters, dead), m.Create(now, ReceiptQueue, live))
}

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
	s.Receipt, err = lambdatest.Start(lambdatest.Options{
		Binary: s.Options.Receipt, Env: s.receiptEnv(), Timeout: s.Options.FunctionTimeout,
		Instances: s.Options.Instances, Output: s.Options.Output,
	})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, s.Receipt.Close)
	return s.mapReceipts(ctx)
}

// createReceipts creates the table.
func (s *System) createReceipts(ctx context.Context) error {
	s.ReceiptsTable = TableIn(s.Options.Engine, "receipts")
	config := s.engineConfig(s.Engine.Endpoint)
	if err := dynamodbtest.CreateReceipts(ctx, sdk.NewFromConfig(config), s.ReceiptsTable); err != nil {
		return fmt.Errorf("engine at %s: %w", s.Engine.Endpoint, err)
	}
	s.DropOnClose(ctx, s.ReceiptsTable)
	s.Receipts = dynamodb.NewReceipts(config, s.ReceiptsTable)
	return nil
}

func (s *System) receiptEnv() map[string]string {
	env := awsEnv(map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": s.Proxy.URL,
		"AWS_ENDPOINT_URL_SQS":      s.SQS.URL,
		"AWS_ENDPOINT_URL_SESV2":    s.Mail.URL,
		"RECEIPTS_TABLE":            s.ReceiptsTable,
		"QUEUE_URL":                 s.SQS.QueueURL(ReceiptQueue),
		"DEAD_LETTER_QUEUE_URL":     s.SQS.QueueURL(ReceiptDeadLetters),
		"SCOPE":                     Scope,
		"STRIPE_SECRET_KEY":         PretendKey,
		"STRIPE_API_BASE":           s.Stripe.URL,
		"STRIPE_TIMEOUT":            StripeWaits.String(),
		"RECEIPT_FROM":              ReceiptFrom,
		"RECEIPT_CONFIGURATION_SET": ConfigurationSet,
		"SES_TIMEOUT":               MailWaits.String(),
		"ORDER_BUDGET":              ReceiptBudget.String(),
		"ANSWER_TIME":               AnswerTime.String(),
		"FIRST_DELAY":               FirstBackOff.String(),
	})
	maps.Copy(env, s.Options.Env)
	return env
}

// mapReceipts starts the event source mapping of the receipt queue.
func (s *System) mapReceipts(ctx context.Context) error {
	s.mapping = &sqstest.Mapping{
		Server: s.SQS, Queue: ReceiptQueue, BatchSize: s.Options.BatchSize, Concurrency: s.Options.Instances,
		FunctionTimeout: s.Options.FunctionTimeout, Invoke: s.Receipt.Invoke, Observe: s.Options.Observe,
	}
	if err := s.mapping.Check(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var run sync.WaitGroup
	var failed error
	run.Go(func() { failed = s.mapping.Run(ctx) })
	s.closers = append(s.closers, func() error {
		stop()
		run.Wait()
		return failed
	})
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
