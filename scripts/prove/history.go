package prove

import (
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
)

// History is what happened in a world, oldest first.
type History []Line

// Line is one thing that happened.
type Line struct {
	At                time.Duration // since the world began
	Who, What, Answer string
}

// String is a table.
func (h History) String() string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"time", "who", "what", "answer"})
	for _, l := range h {
		t.AppendRow(table.Row{l.At, l.Who, l.What, l.Answer})
	}
	return t.Render()
}

// noteMoney adds to the history what the card networks saw since the ledger had so many lines.
func (w *World) noteMoney(seen int) {
	for _, c := range w.stripe.Ledger()[seen:] {
		what := "declines the card of "
		if c.Outcome == stripetest.Charged {
			what = "charges " + order.Money{Amount: c.Amount, Currency: order.Currency(c.Currency)}.String() + " for "
		}
		w.tell("bank", what+c.Intent, "")
	}
}

// numbered names a message by its place in the case.
func (w *World) numbered(m sqstest.Message) string {
	return fmt.Sprintf("message %d", w.numbers[m.ID]+1)
}
