package effects

import (
	"context"

	"orderonce/domain/receipt"
)

// Naive is the naive code for an e-mail. It has no state for a doubt. It reports whether
// the message is to be delivered again.
type Naive func(ctx context.Context, s receipt.Store, m receipt.Mailer) (repeat bool)

// NaiveWorld is a world with code that is not ours.
type NaiveWorld struct {
	World

	Does string
}

// NaiveWorlds returns what is often built instead of the product.
func NaiveWorlds() []NaiveWorld {
	return []NaiveWorld{
		{Intake{Naive: true}.World(), "gives each request an id of its own"},
		{Receipts{Naive: markAfter}.World(), "marks the e-mail as sent after the send"},
		{Receipts{Naive: markBefore}.World(), "marks the e-mail as sent before the send"},
	}
}

func markAfter(ctx context.Context, s receipt.Store, m receipt.Mailer) (repeat bool) {
	i, err := s.Load(ctx, theOrder, receipt.Paid)
	if err != nil || i.Status == receipt.Sent {
		return err != nil
	}
	if _, err := m.Send(ctx, receipt.Mail{}); err != nil {
		return true
	}
	_, err = s.Save(ctx, i, markSent(i))
	return err != nil
}

func markBefore(ctx context.Context, s receipt.Store, m receipt.Mailer) (repeat bool) {
	i, err := s.Load(ctx, theOrder, receipt.Paid)
	if err != nil || i.Status == receipt.Sent {
		return err != nil
	}
	if _, err := s.Save(ctx, i, markSent(i)); err != nil {
		return true
	}
	_, err = m.Send(ctx, receipt.Mail{})
	return err != nil
}

func markSent(i receipt.Item) receipt.Item {
	i.Status, i.Revision = receipt.Sent, i.Revision+1
	return i
}
