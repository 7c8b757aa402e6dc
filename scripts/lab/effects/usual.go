package effects

import (
	"context"

	"orderonce/domain/receipt"
)

// Usual is the usual code for an e-mail. It has no state for a doubt. It reports whether
// the message is to be delivered again.
type Usual func(ctx context.Context, s receipt.Store, m receipt.Mailer) (repeat bool)

// UsualWorld is a world with code that is not ours.
type UsualWorld struct {
	World

	Does string
}

// UsualWorlds returns what is often built instead of the product.
func UsualWorlds() []UsualWorld {
	return []UsualWorld{
		{Intake{Usual: true}.World(), "gives each request an id of its own"},
		{Receipts{Usual: markAfter}.World(), "marks the e-mail as sent after the send"},
		{Receipts{Usual: markBefore}.World(), "marks the e-mail as sent before the send"},
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
	return s.Save(ctx, i, markSent(i)) != nil
}

func markBefore(ctx context.Context, s receipt.Store, m receipt.Mailer) (repeat bool) {
	i, err := s.Load(ctx, theOrder, receipt.Paid)
	if err != nil || i.Status == receipt.Sent {
		return err != nil
	}
	if s.Save(ctx, i, markSent(i)) != nil {
		return true
	}
	_, err = m.Send(ctx, receipt.Mail{})
	return err != nil
}

func markSent(i receipt.Item) receipt.Item {
	i.Status, i.Revision = receipt.Sent, i.Revision+1
	return i
}
