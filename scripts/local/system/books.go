package system

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/adapters/ses/sestest"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/refund"
	"orderonce/scripts/invariants"
)

// Collect waits until everything is at rest, and reads the books of a system whose queue
// is empty.
func (s *System) Collect(
	ctx context.Context, posted []invariants.Message, log *Log,
) (b invariants.Books, err error) {
	b = invariants.Books{
		Messages: posted, Orders: map[order.ID]invariants.Order{}, Log: log.Text(), Secrets: []string{PretendKey},
	}
	err = s.Fill(ctx, &b)
	return b, err
}

// Fill is Collect for books that have their messages. It does not read the orders again
// that the books have.
func (s *System) Fill(ctx context.Context, b *invariants.Books) error {
	s.readStripe(b)
	dead, err := s.Dead()
	if err != nil {
		return err
	}
	b.Left, b.Parked = s.Waiting(), map[string]invariants.DeadLetter{}
	for _, m := range dead {
		first, letter := DeadLetterOf(m)
		b.Parked[first] = letter
	}
	for _, read := range []func(context.Context, *invariants.Books) error{
		s.readOrders, s.readBus, s.ReadStock, s.readReceipts,
	} {
		if err := read(ctx, b); err != nil {
			return fmt.Errorf("collect the books: %w", err)
		}
	}
	if s.Intake != nil {
		s.put.Lock()
		defer s.put.Unlock()
		b.Requests = append([]invariants.Request{}, s.requests...)
	}
	return nil
}

func (s *System) readStripe(b *invariants.Books) {
	b.Charges, b.Intents = map[order.ID][]invariants.Charge{}, map[order.IntentID]invariants.Intent{}
	b.Refunds, b.Disputes = map[order.ID][]invariants.Refund{}, map[order.ID][]order.Dispute{}
	s.Stripe.Machine(func(m *stripetest.Machine) {
		for _, c := range m.Ledger() {
			if id := order.ID(c.OrderID); c.Outcome == stripetest.Charged {
				b.Charges[id] = append(b.Charges[id], ChargeOf(c))
			}
		}
		for _, i := range m.Intents() {
			b.Intents[order.IntentID(i.ID)] = IntentOf(i)
		}
		for _, r := range m.Refunds() {
			id := order.ID(m.Intent(r.Intent).OrderID())
			b.Refunds[id] = append(b.Refunds[id], RefundOf(r))
		}
		for _, d := range m.Disputes() {
			id := order.ID(m.Intent(d.Intent).OrderID())
			b.Disputes[id] = append(b.Disputes[id], disputeOf(d))
		}
	})
}

// ChargeOf returns a charge of Stripe's ledger as the invariants read it.
func ChargeOf(c stripetest.Charge) invariants.Charge {
	return invariants.Charge{Intent: order.IntentID(c.Intent), Total: money(c.Amount, c.Currency)}
}

// IntentOf is ChargeOf for an intent.
func IntentOf(i *stripetest.Intent) invariants.Intent {
	of := invariants.Intent{Status: string(i.Status)}
	if i.LastError != nil {
		of.Failure = i.LastError.Code
	}
	return of
}

// RefundOf is ChargeOf for a refund.
func RefundOf(r *stripetest.Refund) invariants.Refund {
	return invariants.Refund{
		ID: refund.ProviderID(r.ID), Of: refund.ID(r.Metadata["refundId"]), Status: string(r.Status),
		Total: money(r.Amount, r.Currency),
	}
}

func disputeOf(d *stripetest.Dispute) order.Dispute {
	status := order.DisputeOpen
	switch d.Status {
	case stripetest.DisputeNeedsResponse:
	case stripetest.DisputeWon:
		status = order.DisputeWon
	case stripetest.DisputeLost:
		status = order.DisputeLost
	}
	return order.Dispute{ID: order.DisputeID(d.ID), Status: status}
}

func money(amount int64, currency string) order.Money {
	return order.Money{Amount: amount, Currency: order.Currency(currency)}
}

// DeadLetterOf returns a dead letter as the invariants read it, and the id that it had
// before it was parked.
func DeadLetterOf(m sqstest.Message) (first string, letter invariants.DeadLetter) {
	first = m.ID
	if a, ok := m.Attributes[sqs.AttrFirstMessageID]; ok {
		first = a.Text
	}
	return first, invariants.DeadLetter{
		Reason: order.Reason(m.Attributes[sqs.AttrReason].Text), Detail: m.Attributes[sqs.AttrDetail].Text,
	}
}

func (s *System) readOrders(ctx context.Context, b *invariants.Books) error {
	for _, m := range b.Messages {
		id := m.OrderID()
		if _, known := b.Orders[id]; known || id == "" {
			continue
		}
		o, err := s.Order(ctx, id)
		if errors.Is(err, order.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		b.Orders[id] = o
	}
	return nil
}

func (s *System) readBus(ctx context.Context, b *invariants.Books) error {
	if s.Bus == nil {
		return nil
	}
	if err := s.Published(ctx); err != nil {
		return fmt.Errorf("publish every event: %w", err)
	}
	b.Bus = []invariants.Event{}
	for _, e := range s.Bus.Archive() {
		parsed, err := ParseBusEvent(e)
		if err != nil {
			return err
		}
		b.Bus = append(b.Bus, parsed)
	}
	return nil
}

// ParseBusEvent reads the detail of an event on the bus.
func ParseBusEvent(e eventbridgetest.Event) (parsed invariants.Event, err error) {
	if err := json.Unmarshal(e.Detail, &parsed); err != nil {
		return parsed, fmt.Errorf("event %s on the bus: %w", e.ID, err)
	}
	return parsed, nil
}

// ReadStock reads the stock table, if there is one.
func (s *System) ReadStock(ctx context.Context, b *invariants.Books) error {
	if s.Stock == "" {
		return nil
	}
	b.Stock, b.Delivered = map[string]order.Stock{}, s.Options.Stock
	for sku := range s.Options.Stock {
		stock, err := s.Store.Stock(ctx, sku)
		if err != nil {
			return err
		}
		b.Stock[sku] = stock
	}
	return nil
}

func (s *System) readReceipts(ctx context.Context, b *invariants.Books) error {
	if s.Receipt == nil {
		return nil
	}
	if err := s.ReceiptsDrained(ctx); err != nil {
		return fmt.Errorf("send every receipt: %w", err)
	}
	dead, err := s.DeadReceipts()
	if err != nil {
		return err
	}
	b.DeadEvents, b.AtLeastOnce = len(dead), s.Options.Env["RECEIPTS"] == "at_least_once"
	for _, e := range s.Mail.Sent() {
		b.Mail = append(b.Mail, EmailOf(e))
	}
	return s.ReadReceipts(ctx, b)
}

// ReadReceipts reads the receipts of the orders of the books, and the operator's list of
// doubts.
func (s *System) ReadReceipts(ctx context.Context, b *invariants.Books) (err error) {
	b.Receipts, b.Doubts = map[order.ID][]receipt.Item{}, nil
	for id := range b.Orders {
		if b.Receipts[id], err = s.Receipts.OfOrder(ctx, id); err != nil {
			return err
		}
	}
	for i, err := range s.Receipts.Doubtful(ctx) {
		if err != nil {
			return err
		}
		b.Doubts = append(b.Doubts, i)
	}
	return nil
}

// The names of the tags of an e-mail.
const (
	orderTag   = "orderonce-order"
	receiptTag = "orderonce-receipt"
)

// EmailOf returns what an e-mail is about. It reads the tags itself, so that a test
// compares them with what the function encoded.
func EmailOf(e sestest.Email) invariants.Email {
	return invariants.Email{
		OrderID: order.ID(tagText(e.Tags[orderTag])), Key: receipt.Key(tagText(e.Tags[receiptTag])),
	}
}

func tagText(value string) string {
	text, _ := base64.RawURLEncoding.DecodeString(value)
	return string(text)
}

// MailTag returns the text of a tag, as e-mails and SES's events have it.
func MailTag(value string) string { return base64.RawURLEncoding.EncodeToString([]byte(value)) }
