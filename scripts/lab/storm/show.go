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
			fmt.Fprintf(w, "\n%s: %s\n\n%s.\n\norders audit: %d orders, %d match, %d differ.\n",
				o.Handler.Name, summary(o), refundSummary(o.Refunds), o.Books.Orders, o.Books.Matched, o.Books.Differing)
			invariants.Show(w, o.Checks)
		}
	}
}

// refundSummary returns what became of the refunds in one sentence.
func refundSummary(r run.Refunds) string {
	return fmt.Sprintf("%d refunds in %d messages, %d deliveries, %d processes killed with one in their batch; "+
		"%d made, %d made twice, %d refused by Stripe, %d unknown, %d parked because they exceed what is left, "+
		"%d because the order was not charged; %d orders canceled",
		r.Asked, r.Messages, r.Deliveries, r.Kills, r.Made, r.Doubled, r.Refused, r.Unknown, r.Exceeding,
		r.NotCharged, r.Canceled)
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
