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

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/invariants"
)

type summary struct {
	invariants.Books

	log              []invariants.Line
	deliveries       map[string]int      // by message id
	crashes          int                 // invocations that ended without a response
	killed           []victim            // their function was killed
	later            map[order.ID]string // what happened after the messages
	dynamoDB, stripe int                 // calls
	webhooks         int
}

func show(w io.Writer, s summary, posted []invariants.Message) {
	if len(orderIDs(posted)) > 0 {
		showOrders(w, s, posted)
	}
	if slices.ContainsFunc(posted, invariants.Message.IsRefund) {
		showRefunds(w, s, posted)
	}
	fmt.Fprintln(w)
}

func showRest(w io.Writer, s summary) {
	if s.Receipts != nil {
		showReceipts(w, s)
	}
	if len(s.Parked) > 0 {
		showParked(w, s)
		fmt.Fprintln(w)
	}
	showTotals(w, s)
}

func showOrders(w io.Writer, s summary, posted []invariants.Message) {
	orders := newTable(w, "order", "status", "amount", "charges", "deliveries", "what happened")
	orders.SetColumnConfigs([]table.ColumnConfig{
		{Number: 4, Align: text.AlignRight}, {Number: 5, Align: text.AlignRight}, {Number: 6, WidthMax: 58},
	})
	for _, id := range orderIDs(posted) {
		r := s.Orders[id]
		deliveries := s.deliveriesOf(func(p invariants.Message) bool { return p.Order.ID() == id })
		orders.AppendRow(table.Row{id, r.Status, r.Total, len(s.Charges[id]), deliveries, s.history(id)})
	}
	fmt.Fprintln(w)
	orders.Render()
}

func showRefunds(w io.Writer, s summary, posted []invariants.Message) {
	refunds := newTable(w, "refund", "order", "amount", "made", "deliveries", "order is now", "what happened")
	refunds.SetColumnConfigs([]table.ColumnConfig{
		{Number: 4, Align: text.AlignRight},
		{Number: 5, Align: text.AlignRight},
		{Number: 7, WidthMin: 42, WidthMax: 42},
	})
	for n, p := range posted {
		same := func(other invariants.Message) bool {
			return other.OrderID() == p.OrderID() && other.Refund.ID() == p.Refund.ID()
		}
		if !p.IsRefund() || slices.ContainsFunc(posted[:n], same) {
			continue
		}
		r, id := s.Orders[p.OrderID()], p.Refund.ID()
		amount := order.Money{Amount: p.Refund.Amount(), Currency: r.Total.Currency}
		refunds.AppendRow(table.Row{
			id, p.OrderID(), amount, s.Made(p.OrderID(), id), s.deliveriesOf(same), r.Status, s.refundHistory(p),
		})
	}
	fmt.Fprintln(w)
	refunds.Render()
}

func showParked(w io.Writer, s summary) {
	parked := newTable(w, "parked message", "reason", "detail")
	parked.SetColumnConfigs([]table.ColumnConfig{{Number: 3, WidthMax: 69, WidthMaxEnforcer: text.WrapSoft}})
	for i, p := range s.Messages {
		if dead, ok := s.Parked[p.ID]; ok {
			parked.AppendRow(table.Row{fmt.Sprintf("%d: %s", i+1, nameOf(p)), dead.Reason, dead.Detail})
		}
	}
	parked.Render()
}

func showTotals(w io.Writer, s summary) {
	ids := orderIDs(s.Messages)
	charges, refunds := 0, 0
	for _, id := range ids {
		charges += len(s.Charges[id])
		refunds += len(s.Refunds[id])
	}
	fmt.Fprint(w, strings.Join([]string{
		count(len(s.Messages), "message", "messages"),
		count(s.deliveriesOf(func(invariants.Message) bool { return true }), "delivery", "deliveries"),
		count(len(ids), "order", "orders"),
		count(charges, "charge", "charges"),
		count(refunds, "refund", "refunds"),
		fmt.Sprintf("%d parked", len(s.Parked)),
	}, ", "))
	if s.crashes > 0 {
		fmt.Fprint(w, ", "+count(s.crashes, "crash", "crashes"))
	}
	fmt.Fprintf(w, "; %s to DynamoDB, %d to Stripe", count(s.dynamoDB, "call", "calls"), s.stripe)
	if s.webhooks > 0 {
		fmt.Fprint(w, ", "+count(s.webhooks, "webhook", "webhooks"))
	}
	fmt.Fprintln(w)
}

func (s summary) published() string {
	events, published := 0, 0
	for _, r := range s.Orders {
		events += len(r.Events)
	}
	for _, n := range s.Published() {
		published += n
	}
	return fmt.Sprintf("%d of %d events are on the bus.", published, events)
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

var errBroken = errors.New("invariant broken")

// showChecks prints the invariants. It returns errBroken with the ids of the broken ones.
func showChecks(w io.Writer, checks []invariants.Result) error {
	broken := invariants.Show(w, checks)
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

func nameOf(p invariants.Message) string {
	if p.Invalid == nil {
		return cmp.Or(string(p.Refund.ID()), string(p.OrderID()))
	}
	return p.Body[:min(len(p.Body), 21)] + "..."
}

func (s summary) deliveriesOf(which func(invariants.Message) bool) (n int) {
	for _, p := range s.Messages {
		if which(p) {
			n += s.deliveries[p.ID]
		}
	}
	return n
}

func (s summary) history(id order.ID) string {
	steps := s.steps(id, "", func(l invariants.Line) string { return s.step(l, id) })
	if event := s.later[id]; event != "" {
		steps = append(steps, event)
	}
	return strings.Join(steps, "; ")
}

func (s summary) refundHistory(p invariants.Message) string {
	describe := func(l invariants.Line) string { return s.refundStep(l, p) }
	return strings.Join(s.steps(p.OrderID(), string(p.Refund.ID()), describe), "; ")
}

// steps describes the log lines of an order or of one of its refunds, each once.
func (s summary) steps(id order.ID, refundID string, describe func(invariants.Line) string) (steps []string) {
	for _, line := range s.log {
		if line.OrderID != string(id) || line.RefundID != refundID || line.Receipt != "" {
			continue
		}
		if step := describe(line); !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}
	return steps
}

func (s summary) refundStep(l invariants.Line, p invariants.Message) string {
	killed := func(v victim) bool { return v.id == p.OrderID() && v.at == stripetest.CreateRefund }
	switch order.Reason(l.Reason) { //nolint:exhaustive // the other reasons are shown as they are
	case order.ReasonSettled:
		if l.Attempt > 1 && slices.ContainsFunc(s.killed, killed) {
			return "killed after Stripe made it, found there"
		}
		return "made " + times(s.Made(p.OrderID(), p.Refund.ID()))
	case order.ReasonDuplicate:
		return "duplicate acknowledged"
	case refund.ReasonExceeds:
		return "more than is left, parked"
	}
	return l.Verdict + ": " + l.Reason
}

func (s summary) step(l invariants.Line, id order.ID) string {
	switch order.Reason(l.Reason) { //nolint:exhaustive // the other reasons are shown as they are
	case order.ReasonSettled:
		return s.settled(l.Attempt, id)
	case order.ReasonDuplicate:
		if s.Orders[id].Failure == order.CanceledByOperator {
			return "operator canceled it, then a late message charged nobody"
		}
		return "duplicate acknowledged"
	case order.ReasonConflict:
		return "other content parked"
	}
	return l.Verdict + ": " + l.Reason
}

// settled describes how an order ended. Only for the orders of the kill is it known that
// a killed process charged them: the second attempt of another may follow an outage.
func (s summary) settled(attempt int, id order.ID) string {
	killed := func(v victim) bool { return v.id == id && v.at == stripetest.Confirm }
	if attempt > 1 && slices.ContainsFunc(s.killed, killed) {
		return "function killed after the charge, next delivery settled it"
	}
	r, end := s.Orders[id], "charged once"
	first := order.Event{To: r.Status, Failure: r.Failure}
	if len(r.Events) > 0 {
		first = r.Events[0]
	}
	if n := len(s.Charges[id]); n > 1 {
		end = "charged " + times(n)
	} else if first.To == order.OutOfStock {
		return "too few " + first.Failure + " left, not charged"
	} else if first.To != order.Paid {
		end = cmp.Or(first.Failure, string(first.To))
	}
	if stockFreed(first, r) {
		end += ", canceled: its stock is free"
	}
	if attempt > 1 {
		end += fmt.Sprintf(", settled at attempt %d", attempt)
	}
	return end
}

// stockFreed reports whether a declined order was canceled because it held stock.
func stockFreed(first order.Event, r invariants.Order) bool {
	return first.To == order.Declined && r.Status == order.Canceled
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
