package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
)

// History is what happened in a world, oldest first.
type History []Line

// Line is one thing that happened. To is whom a call was for; "" if it was for nobody.
type Line struct {
	At                    time.Duration // since the world began
	Who, To, What, Answer string
}

// String is a table.
func (h History) String() string {
	t := h.table()
	t.SetStyle(table.StyleLight)
	return t.Render()
}

func (h History) table() table.Writer { //nolint:ireturn // as the library has it
	t := table.NewWriter()
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"time", "who", "what", "answer"})
	for _, l := range h {
		t.AppendRow(table.Row{l.At, l.Who, l.What, l.Answer})
	}
	return t
}

// Markdown is a table for a page.
func (h History) Markdown() string { return h.table().RenderMarkdown() }

// Mermaid is a sequence diagram as text.
func (h History) Mermaid() string {
	var b strings.Builder
	b.WriteString("sequenceDiagram\n")
	var actors []string
	for _, l := range h {
		for _, who := range []string{l.Who, l.To} {
			if who != "" && !slices.Contains(actors, who) {
				actors = append(actors, who)
				fmt.Fprintf(&b, "  participant %s\n", who)
			}
		}
	}
	for _, l := range h {
		switch {
		case l.To == "":
			fmt.Fprintf(&b, "  Note over %s: %s\n", l.Who, plain(l.What, l.Answer))
		case l.Answer == "":
			fmt.Fprintf(&b, "  %s->>%s: %s\n", l.Who, l.To, plain(l.What, ""))
		default:
			fmt.Fprintf(
				&b,
				"  %s->>%s: %s\n  %s-->>%s: %s\n",
				l.Who,
				l.To,
				plain(l.What, ""),
				l.To,
				l.Who,
				plain(l.Answer, ""),
			)
		}
	}
	return b.String()
}

// plain escapes what mermaid reads as syntax: #35; is its entity for a number sign.
func plain(what, answer string) string {
	if answer != "" {
		what += " (" + answer + ")"
	}
	return strings.NewReplacer(";", ",", "#", "#35;", "\n", " ").Replace(what)
}

// tell adds a line to the history.
func (w *World) tell(who, to, what, answer string) {
	w.history = append(w.history, Line{At: w.now.Sub(w.start), Who: who, To: to, What: what, Answer: answer})
}

// toldMoney is how much of the ledger the history has.
func (w *World) toldMoney() int {
	if !w.telling {
		return 0
	}
	return len(w.stripe.Ledger())
}

// noteMoney adds to the history what the card networks saw since the ledger had so many
// lines.
func (w *World) noteMoney(told int) {
	if !w.telling {
		return
	}
	for _, c := range w.stripe.Ledger()[told:] {
		what := "declines the card of "
		if c.Outcome == stripetest.Charged {
			what = "charges " + order.Money{Amount: c.Amount, Currency: order.Currency(c.Currency)}.String() + " for "
		}
		w.tell("bank", "", what+c.Intent, "")
	}
}
