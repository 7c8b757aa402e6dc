package main

import (
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"orderonce/scripts/invariants"
	"orderonce/scripts/lab/storm/run"
)

// column is a figure of an outcome.
type column struct {
	name string
	of   func(run.Outcome) int
	bad  bool // must be 0
}

func columns() []column {
	return []column{
		{"charged twice", func(o run.Outcome) int { return o.Count.ChargedTwice }, true},
		{"wrong amount", func(o run.Outcome) int { return o.Count.WrongAmount }, true},
		{"lost", func(o run.Outcome) int { return o.Count.Lost }, true},
		{"stuck", func(o run.Outcome) int { return o.Count.Stuck }, true},
		{"conflict lost", func(o run.Outcome) int { return o.Count.ConflictLost }, true},
		{"ledger mismatch", func(o run.Outcome) int { return o.Count.LedgerMismatch }, true},
		{"wrong status", func(o run.Outcome) int { return o.Count.WrongStatus }, true},
		{"settled", func(o run.Outcome) int { return o.Count.Settled }, false},
		{"extra deliveries", func(o run.Outcome) int { return o.Count.Extra }, false},
	}
}

// figures returns the table of the figures.
func figures(outcomes []run.Outcome) table.Writer { //nolint:ireturn // the library has no concrete type
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	header := table.Row{"handler", "orders"}
	for _, c := range columns() {
		header = append(header, c.name)
	}
	t.AppendHeader(header)
	for _, o := range outcomes {
		row := table.Row{o.Handler.Name, o.Count.Orders}
		for _, c := range columns() {
			row = append(row, c.of(o))
		}
		t.AppendRow(row)
	}
	return t
}

// show prints the table, and the invariants of the product.
func show(w io.Writer, outcomes []run.Outcome) {
	t := figures(outcomes)
	t.SetOutputMirror(w)
	t.Render()
	for _, o := range outcomes {
		if len(o.Checks) > 0 {
			fmt.Fprintf(w, "\n%s: %s\n\norders audit: %d orders, %d match, %d differ.\n\n",
				o.Handler.Name, summary(o), o.Books.Orders, o.Books.Matched, o.Books.Differing)
			for _, f := range facts(o) {
				fmt.Fprintf(w, "%9d %s\n", f.figure, f.text)
			}
			invariants.Show(w, o.Checks)
		}
	}
}

// fact is a figure of the product.
type fact struct {
	figure int
	text   string
}

// facts returns what the product's parts did beside the charges.
func facts(o run.Outcome) []fact {
	r, p := o.Refunds, o.Parts
	return []fact{
		{r.Asked, "refunds that were asked for"},
		{r.Messages, "messages for them"},
		{r.Deliveries, "deliveries of these messages"},
		{r.Made, "refunds that Stripe made"},
		{r.Doubled, "refunds that Stripe made twice"},
		{r.Refused, "refunds that Stripe refused"},
		{r.Unknown, "unknown refunds: they may have been made, so they are not repeated, and a person compares"},
		{r.Exceeding, "refunds parked, because they exceed what is left of the charge"},
		{r.NotCharged, "refunds parked, because the order was not charged"},
		{r.Kills, "processes killed with a refund in their batch"},
		{r.Canceled, "orders canceled before they were charged, or after a decline, which frees their stock"},
		{p.Put, "orders put by HTTP"},
		{p.Requests, "requests for them"},
		{p.OutOfStock, "orders out of stock"},
		{p.Published, "events on the bus, with repetitions"},
		{p.Mails, "receipts that SES accepted"},
		{p.Doubts, "receipts that may have been sent, and wait for a person"},
		{o.Later.Kills, "killed processes of the functions beside that of the order queue"},
	}
}

// summary returns an outcome in one sentence.
func summary(o run.Outcome) string {
	return fmt.Sprintf("%d messages of %d orders, %d deliveries, %d processes killed, %d failed calls, "+
		"%d dead letters redriven, %d deletes lost; %d webhooks and %d runs of reconcile, which settled %d orders; "+
		"%d messages deleted after the charge; %d calls to DynamoDB, %d to Stripe; "+
		"%d messages parked with a reason; %v",
		o.Count.Messages, o.Count.Orders, o.Deliveries, o.Kills+o.Later.Kills, run.Sum(o.Faults),
		o.Redriven, o.LostDelete, o.Later.Webhooks, o.Later.Runs, o.Later.Settled,
		o.Later.Deleted, o.Calls.DynamoDB, o.Calls.Stripe,
		o.Count.Parked, o.Took.Round(time.Second))
}
