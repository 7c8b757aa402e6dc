package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// show prints every order, every parked message and the totals.
func show(w io.Writer, s *system.System, b system.Books, t *tally, killed bool) {
	orders := newTable(w, "order", "status", "amount", "charges", "deliveries", "what happened")
	orders.SetColumnConfigs([]table.ColumnConfig{
		{Number: 4, Align: text.AlignRight}, {Number: 5, Align: text.AlignRight}, {Number: 6, WidthMax: 58},
	})
	for _, id := range orderIDs(b.Posted) {
		r := b.Records[id]
		orders.AppendRow(table.Row{id, r.Status, r.Total, len(b.Charges[id]), deliveries(b, t, id), story(b, id)})
	}
	fmt.Fprintln(w)
	orders.Render()

	parked := newTable(w, "parked message", "reason", "detail")
	parked.SetColumnConfigs([]table.ColumnConfig{{Number: 3, WidthMax: 60}})
	for i, p := range b.Posted {
		if dead, ok := b.Parked[p.MessageID]; ok {
			parked.AppendRow(table.Row{
				fmt.Sprintf("%d: %s", i+1, nameOf(p)), dead.Attributes[sqs.AttrReason].Text, dead.Attributes[sqs.AttrDetail].Text,
			})
		}
	}
	fmt.Fprintln(w)
	parked.Render()

	charges, paid := 0, 0
	for _, id := range orderIDs(b.Posted) {
		charges += len(b.Charges[id])
		if b.Records[id].Status == order.Paid {
			paid++
		}
	}
	all := 0
	for _, n := range t.deliveries {
		all += n
	}
	fmt.Fprintf(w, "\n%d messages, %d deliveries, %d orders, %d charges, %d paid, %d parked",
		len(b.Posted), all, len(orderIDs(b.Posted)), charges, paid, len(b.Parked))
	if killed {
		fmt.Fprintf(w, ", %d crash", t.crashed)
	}
	fmt.Fprintf(w, "; %d calls to DynamoDB, %d to Stripe\n", s.Proxy.Total(), len(s.Stripe.Calls()))
}

// showChecks prints the invariants and reports whether one is broken.
func showChecks(w io.Writer, checks []system.Check) (broken bool) {
	fmt.Fprintln(w, "\nInvariants (docs/design.md):")
	for _, c := range checks {
		mark := "ok    "
		if len(c.Broken) > 0 {
			mark, broken = "BROKEN", true
		}
		fmt.Fprintf(w, "  %s %-4s %s\n", mark, c.ID, c.Claim)
		for _, b := range c.Broken {
			fmt.Fprintf(w, "              %s\n", b)
		}
	}
	return broken
}

func newTable(w io.Writer, header ...any) table.Writer { //nolint:ireturn // the library hands out nothing else
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(header)
	return t
}

func nameOf(p system.Posted) string {
	if p.Invalid == nil {
		return string(p.Order.ID())
	}
	return p.Body[:min(len(p.Body), 22)] + "..."
}

func deliveries(b system.Books, t *tally, id order.ID) (n int) {
	for _, p := range b.Posted {
		if p.Invalid == nil && p.Order.ID() == id {
			n += t.deliveries[p.MessageID]
		}
	}
	return n
}

// story tells an order's life from the function's log.
func story(b system.Books, id order.ID) string {
	var steps []string
	for _, line := range b.Log {
		if line.OrderID != string(id) {
			continue
		}
		if step := reason(line, b.Records[id]); !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}
	return strings.Join(steps, "; ")
}

func reason(l system.Line, r order.Record) string {
	told := map[order.Reason]string{order.ReasonDuplicate: "duplicate acknowledged", order.ReasonConflict: "other content parked"}
	switch settled := order.Reason(l.Reason) == order.ReasonSettled; {
	case settled && l.Attempt > 1:
		return "function killed after the charge, next delivery settled it"
	case settled && r.Failure != "":
		return r.Failure
	case settled:
		return "charged once"
	}
	if what, ok := told[order.Reason(l.Reason)]; ok {
		return what
	}
	return l.Verdict + ": " + l.Reason
}
