package main

import (
	"cmp"
	"errors"
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

// account is what there is to tell of a run.
type account struct {
	system.Books

	deliveries       map[string]int // by message id
	crashes          int            // invocations that ended without an answer
	killed           order.ID       // whose function was killed after Stripe said yes; "" if none was
	dynamoDB, stripe int            // calls
}

// show prints every order, every parked message and the totals.
func show(w io.Writer, a account) {
	showOrders(w, a)
	if len(a.Parked) > 0 {
		showParked(w, a)
	}
	showTotals(w, a)
}

func showOrders(w io.Writer, a account) {
	orders := newTable(w, "order", "status", "amount", "charges", "deliveries", "what happened")
	orders.SetColumnConfigs([]table.ColumnConfig{
		{Number: 4, Align: text.AlignRight}, {Number: 5, Align: text.AlignRight}, {Number: 6, WidthMax: 58},
	})
	for _, id := range orderIDs(a.Posted) {
		r := a.Records[id]
		orders.AppendRow(table.Row{id, r.Status, r.Total, len(a.Charges[id]), a.deliveriesOf(id), a.story(id)})
	}
	fmt.Fprintln(w)
	orders.Render()
}

func showParked(w io.Writer, a account) {
	parked := newTable(w, "parked message", "reason", "detail")
	parked.SetColumnConfigs([]table.ColumnConfig{{Number: 3, WidthMax: 72, WidthMaxEnforcer: text.WrapSoft}})
	for i, p := range a.Posted {
		if dead, ok := a.Parked[p.MessageID]; ok {
			parked.AppendRow(table.Row{
				fmt.Sprintf("%d: %s", i+1, nameOf(p)), dead.Attributes[sqs.AttrReason].Text, dead.Attributes[sqs.AttrDetail].Text,
			})
		}
	}
	fmt.Fprintln(w)
	parked.Render()
}

func showTotals(w io.Writer, a account) {
	ids := orderIDs(a.Posted)
	deliveries, charges, paid := 0, 0, 0
	for _, n := range a.deliveries {
		deliveries += n
	}
	for _, id := range ids {
		charges += len(a.Charges[id])
		if a.Records[id].Status == order.Paid {
			paid++
		}
	}
	fmt.Fprintf(w, "\n%s, %s, %s, %s, %d paid, %d parked", count(len(a.Posted), "message", "messages"),
		count(deliveries, "delivery", "deliveries"), count(len(ids), "order", "orders"),
		count(charges, "charge", "charges"), paid, len(a.Parked))
	if a.crashes > 0 {
		fmt.Fprint(w, ", "+count(a.crashes, "crash", "crashes"))
	}
	fmt.Fprintf(w, "; %s to DynamoDB, %d to Stripe\n", count(a.dynamoDB, "call", "calls"), a.stripe)
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

var errBroken = errors.New("an invariant is broken")

// showChecks prints the invariants. It returns errBroken with the names of those that are broken.
func showChecks(w io.Writer, checks []system.Check) error {
	var broken []string
	fmt.Fprintln(w, "\nInvariants (docs/design.md):")
	for _, c := range checks {
		mark := "ok    "
		if len(c.Broken) > 0 {
			mark, broken = "BROKEN", append(broken, c.ID)
		}
		fmt.Fprintf(w, "  %s %-4s %s\n", mark, c.ID, c.Claim)
		for _, b := range c.Broken {
			fmt.Fprintf(w, "              %s\n", b)
		}
	}
	if len(broken) > 0 {
		return fmt.Errorf("%w: %s", errBroken, strings.Join(broken, ", "))
	}
	return nil
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

func (a account) deliveriesOf(id order.ID) (n int) {
	for _, p := range a.Posted {
		if p.Order.ID() == id {
			n += a.deliveries[p.MessageID]
		}
	}
	return n
}

// story tells an order's life from the function's log.
func (a account) story(id order.ID) string {
	var steps []string
	for _, line := range a.Log {
		if line.OrderID != string(id) {
			continue
		}
		if step := a.step(line, id); !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}
	return strings.Join(steps, "; ")
}

func (a account) step(l system.Line, id order.ID) string {
	switch order.Reason(l.Reason) { //nolint:exhaustive // the other reasons speak for themselves
	case order.ReasonSettled:
		return a.settled(l.Attempt, id)
	case order.ReasonDuplicate:
		return "duplicate acknowledged"
	case order.ReasonConflict:
		return "other content parked"
	}
	return l.Verdict + ": " + l.Reason
}

// settled says how an order ended. Only the order that the killer chose is known to be charged by a process that died: another
// one's second attempt may as well follow an outage.
func (a account) settled(attempt int, id order.ID) string {
	if attempt > 1 && id == a.killed {
		return "function killed after the charge, next delivery settled it"
	}
	r, end := a.Records[id], "charged once"
	if n := len(a.Charges[id]); n > 1 {
		end = fmt.Sprintf("charged %d times", n)
	} else if n == 0 {
		end = cmp.Or(r.Failure, string(r.Status))
	}
	if attempt > 1 {
		end += fmt.Sprintf(", settled at attempt %d", attempt)
	}
	return end
}
