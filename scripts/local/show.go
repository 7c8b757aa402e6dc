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

// summary is what a run prints.
type summary struct {
	system.Books

	deliveries       map[string]int      // by message id
	crashes          int                 // invocations that ended without a response
	killed           []order.ID          // their function was killed after the charge
	later            map[order.ID]string // what happened after the messages
	dynamoDB, stripe int                 // calls
	webhooks         int
}

// show prints every order, every parked message and the totals.
func show(w io.Writer, s summary) {
	showOrders(w, s)
	if len(s.Parked) > 0 {
		showParked(w, s)
	}
	showTotals(w, s)
}

func showOrders(w io.Writer, s summary) {
	orders := newTable(w, "order", "status", "amount", "charges", "deliveries", "what happened")
	orders.SetColumnConfigs([]table.ColumnConfig{
		{Number: 4, Align: text.AlignRight}, {Number: 5, Align: text.AlignRight}, {Number: 6, WidthMax: 58},
	})
	for _, id := range orderIDs(s.Posted) {
		r := s.Records[id]
		orders.AppendRow(table.Row{id, r.Status, r.Total, len(s.Charges[id]), s.deliveriesOf(id), s.history(id)})
	}
	fmt.Fprintln(w)
	orders.Render()
}

func showParked(w io.Writer, s summary) {
	parked := newTable(w, "parked message", "reason", "detail")
	parked.SetColumnConfigs([]table.ColumnConfig{{Number: 3, WidthMax: 72, WidthMaxEnforcer: text.WrapSoft}})
	for i, p := range s.Posted {
		if dead, ok := s.Parked[p.MessageID]; ok {
			reason, detail := dead.Attributes[sqs.AttrReason].Text, dead.Attributes[sqs.AttrDetail].Text
			parked.AppendRow(table.Row{fmt.Sprintf("%d: %s", i+1, nameOf(p)), reason, detail})
		}
	}
	fmt.Fprintln(w)
	parked.Render()
}

func showTotals(w io.Writer, s summary) {
	ids := orderIDs(s.Posted)
	deliveries, charges, paid := 0, 0, 0
	for _, n := range s.deliveries {
		deliveries += n
	}
	for _, id := range ids {
		charges += len(s.Charges[id])
		if s.Records[id].Status == order.Paid {
			paid++
		}
	}
	fmt.Fprintf(w, "\n%s, %s, %s, %s, %d paid, %d parked", count(len(s.Posted), "message", "messages"),
		count(deliveries, "delivery", "deliveries"), count(len(ids), "order", "orders"),
		count(charges, "charge", "charges"), paid, len(s.Parked))
	if s.crashes > 0 {
		fmt.Fprint(w, ", "+count(s.crashes, "crash", "crashes"))
	}
	fmt.Fprintf(w, "; %s to DynamoDB, %d to Stripe", count(s.dynamoDB, "call", "calls"), s.stripe)
	if s.webhooks > 0 {
		fmt.Fprint(w, ", "+count(s.webhooks, "webhook", "webhooks"))
	}
	fmt.Fprintln(w)
}

// published returns how many of the orders' events are on the bus.
func (s summary) published() string {
	events, published := 0, 0
	for _, r := range s.Records {
		events += len(r.Events)
	}
	for _, n := range s.Published() {
		published += n
	}
	return fmt.Sprintf("%d of %d events are on the bus", published, events)
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

var errBroken = errors.New("invariant broken")

// showChecks prints the invariants. It returns errBroken with the ids of the broken ones.
func showChecks(w io.Writer, checks []system.Check) error {
	broken := system.Show(w, checks)
	if len(broken) > 0 {
		return fmt.Errorf("%w: %s", errBroken, strings.Join(broken, ", "))
	}
	return nil
}

func newTable(w io.Writer, header ...any) table.Writer { //nolint:ireturn // the library has no concrete type
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

func (s summary) deliveriesOf(id order.ID) (n int) {
	for _, p := range s.Posted {
		if p.Order.ID() == id {
			n += s.deliveries[p.MessageID]
		}
	}
	return n
}

// history returns what happened to an order, from the function's log.
func (s summary) history(id order.ID) string {
	var steps []string
	for _, line := range s.Log {
		if line.OrderID != string(id) {
			continue
		}
		if step := s.step(line, id); !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}
	if event := s.later[id]; event != "" {
		steps = append(steps, event)
	}
	return strings.Join(steps, "; ")
}

func (s summary) step(l system.Line, id order.ID) string {
	switch order.Reason(l.Reason) { //nolint:exhaustive // the other reasons are shown as they are
	case order.ReasonSettled:
		return s.settled(l.Attempt, id)
	case order.ReasonDuplicate:
		return "duplicate acknowledged"
	case order.ReasonConflict:
		return "other content parked"
	}
	return l.Verdict + ": " + l.Reason
}

// settled describes how an order ended. Only for the orders of the kill is it known that
// a killed process charged them: the second attempt of another may follow an outage.
func (s summary) settled(attempt int, id order.ID) string {
	if attempt > 1 && slices.Contains(s.killed, id) {
		return "function killed after the charge, next delivery settled it"
	}
	r, end := s.Records[id], "charged once"
	first := order.Event{To: r.Status, Failure: r.Failure}
	if len(r.Events) > 0 {
		first = r.Events[0]
	}
	if n := len(s.Charges[id]); n > 1 {
		end = fmt.Sprintf("charged %d times", n)
	} else if first.To != order.Paid {
		end = cmp.Or(first.Failure, string(first.To))
	}
	if attempt > 1 {
		end += fmt.Sprintf(", settled at attempt %d", attempt)
	}
	return end
}
