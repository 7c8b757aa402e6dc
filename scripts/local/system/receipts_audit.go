package system

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	"orderonce/adapters/ses/sestest"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

// collectReceipts waits until every receipt is at rest and reads the table, the mailbox
// and the operator's list.
func (b *Books) collectReceipts(ctx context.Context, s *System) error {
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
	b.Receipts, b.Mail, b.DeadEvents = map[order.ID][]receipt.Item{}, s.Mail.Sent(), len(dead)
	b.AtLeastOnce = s.Options.Env["RECEIPTS"] == "at_least_once"
	for id := range b.Records {
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

func (b *Books) receiptChecks() []check {
	return []check{
		{"I23", "at most one e-mail per receipt, none of an unpaid order; every doubt is listed", b.wrongReceipts},
	}
}

// The names of the tags of an e-mail.
const (
	orderTag   = "orderonce-order"
	receiptTag = "orderonce-receipt"
)

// OrderOf returns the order of an e-mail.
func OrderOf(e sestest.Email) order.ID { return order.ID(tagText(e.Tags[orderTag])) }

// tagText decodes the value of a tag. One that is not valid is "".
func tagText(value string) string {
	text, _ := base64.RawURLEncoding.DecodeString(value)
	return string(text)
}

// MailTag returns the text of a tag, as e-mails and SES's events have it.
func MailTag(value string) string { return base64.RawURLEncoding.EncodeToString([]byte(value)) }

// receiptName names a receipt.
type receiptName struct {
	id  order.ID
	key receipt.Key
}

// wrongReceipts reads the tags of the e-mails itself, so that a test compares them with
// what the function encoded.
func (b *Books) wrongReceipts() (broken findings) {
	sent := map[receiptName]int{}
	for _, e := range b.Mail {
		name := receiptName{OrderOf(e), receipt.Key(tagText(e.Tags[receiptTag]))}
		sent[name]++
		if r := b.Records[name.id]; !r.Status.Charged() {
			broken.add("receipt of an unpaid order: order %s is %s, and e-mail %s was sent", name.id, r.Status, e.ID)
		}
	}
	for name, n := range sent {
		if n > 1 && !b.AtLeastOnce {
			broken.add("double e-mail: receipt %s of order %s was sent %d times", name.key, name.id, n)
		}
	}
	for id, r := range b.Records {
		has := slices.ContainsFunc(b.Receipts[id], func(i receipt.Item) bool { return i.Key == receipt.Paid })
		if r.Status.Charged() && !has && b.DeadEvents == 0 {
			broken.add("no receipt: order %s is %s", id, r.Status)
		}
		for _, i := range b.Receipts[id] {
			broken = append(broken, b.wrongReceipt(i, sent[receiptName{id, i.Key}])...)
		}
	}
	return broken.sorted()
}

// wrongReceipt compares a receipt with the number of its e-mails and with the list.
func (b *Books) wrongReceipt(i receipt.Item, sent int) (broken findings) {
	switch i.Status {
	case receipt.Sent, receipt.Delivered, receipt.Bounced:
		if sent == 0 && i.Failure != receipt.ResolvedByOperator {
			broken.add("wrong receipt: %s of order %s is %s, and no e-mail was sent", i.Key, i.OrderID, i.Status)
		}
	case receipt.Failed:
		if sent > 0 && i.Message == "" && i.Failure != receipt.ResolvedByOperator {
			broken.add("wrong receipt: %s of order %s failed, and an e-mail was sent", i.Key, i.OrderID)
		}
	case receipt.Sending:
		broken.add("receipt not ended: %s of order %s is sending, and its message is gone", i.Key, i.OrderID)
	case receipt.Doubtful:
		if !slices.Contains(b.Doubts, i) {
			broken.add("doubt not listed: %s of order %s", i.Key, i.OrderID)
		}
	}
	return broken
}
