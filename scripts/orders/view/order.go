package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// Order formats a record for a person. It leaves the customer out.
func Order(r order.Record) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, value)
		}
	}
	line("order", string(r.OrderID))
	line("status", string(r.Status))
	line("amount", r.Total.String())
	line("intent", describeIntent(r))
	line("mode", string(r.Mode))
	line("failure", r.Failure)
	if d := r.Dispute; d.ID != "" {
		line("dispute", fmt.Sprintf("%s %s, opened %s", d.ID, d.Status, Stamp(d.CreatedAt)))
	}
	line("holds", describeStock(r.Stock))
	line("last error", LastError(r))
	line("attempts", fmt.Sprint(r.Attempt))
	if r.Owner != "" {
		line("held until", Stamp(r.Until))
	}
	line("created", Stamp(r.CreatedAt))
	line("updated", Stamp(r.UpdatedAt))
	if !r.DueAt.IsZero() {
		line("recheck at", Stamp(r.DueAt))
	}
	for _, e := range r.Events {
		change := fmt.Sprintf("%s  %s -> %s  %s", Stamp(e.At), e.From, e.To, e.Failure)
		switch {
		case e.Dispute.ID != "":
			change = fmt.Sprintf("%s  dispute %s %s", Stamp(e.At), e.Dispute.ID, e.Dispute.Status)
		case e.Refund != (order.RefundEvent{}):
			amount := order.Money{Amount: e.Refund.Amount, Currency: r.Total.Currency}
			change = fmt.Sprintf("%s  refund %s %s, %s, order %s", Stamp(e.At),
				cmp.Or(e.Refund.ID, "by others"), e.Refund.Status, amount, e.To)
		}
		line(fmt.Sprintf("event %d", e.Seq), strings.TrimSpace(change))
	}
	return b.String()
}

// LastError returns why the last attempt of an order failed. A row keeps that when it is
// settled, and then it is history.
func LastError(r order.Record) string {
	if r.Status.Charged() || closed(r.Status) {
		return ""
	}
	return r.LastError
}

// describeIntent names the bound intent, or the one that an earlier row lost.
func describeIntent(r order.Record) string {
	if r.Intent == "" && r.Suspect != "" {
		return fmt.Sprintf("none bound, but Stripe has %s: orders restore %s %s", r.Suspect, r.OrderID, r.Suspect)
	}
	return cmp.Or(string(r.Intent), "none bound: no money has moved")
}

// describeStock formats the stock that an order holds, such as "MUG 1, TSHIRT-M 2".
func describeStock(g order.Quantities) string {
	all := make([]string, 0, len(g))
	for _, sku := range g.SKUs() {
		all = append(all, fmt.Sprintf("%s %d", sku, g[sku]))
	}
	return strings.Join(all, ", ")
}

// Account formats what was charged, what went back and what is left.
func Account(a refund.Account) string {
	return fmt.Sprintf("order      %s, %s\ncharged    %s\n", a.OrderID, a.Status, a.Charged) + Refunds(a)
}

// Refunds formats what went back of an order and what is left, and its refunds.
func Refunds(a refund.Account) string {
	var b strings.Builder
	line := func(name string, amount int64, more ...string) {
		m := order.Money{Amount: amount, Currency: a.Charged.Currency}
		fmt.Fprintf(&b, "%-10s %s\n", name, strings.Join(append([]string{m.String()}, more...), ", "))
	}
	line("refunded", a.Refunded())
	if a.Outside != 0 {
		line("by others", a.Outside)
	}
	line("left", a.Left())
	for _, i := range a.Items {
		line("refund", i.Amount, string(i.ID), Refund(i))
	}
	return b.String()
}

// Refund describes a refund in one line.
func Refund(i refund.Item) string {
	if i.Status == "" {
		return "no refund yet"
	}
	words := []string{string(i.Status), string(i.Refund), i.Failure, string(i.Reason)}
	words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
	if i.Status == refund.Open {
		words = append(words, fmt.Sprintf("attempt %d", i.Attempt))
		if i.LastError != "" {
			words = append(words, "last error "+i.LastError)
		}
	}
	return strings.Join(words, ", ")
}

// WaitingRefund formats a refund that only a person can end: what is known, and what to
// do.
func WaitingRefund(a refund.Account, i refund.Item) string {
	next := fmt.Sprintf("look for it in Stripe's Dashboard, payment %s, then "+
		"orders refund resolve %s %s --made RE_ID, or --not-made", a.Intent, a.OrderID, i.ID)
	if i.Status == refund.Open {
		next = "its message may be gone: redrive it, or post the refund again. If nobody wants it: " + next
	}
	return fmt.Sprintf("%s  %s  %s  %s since %s  %s\n  %s\n", a.OrderID, i.ID,
		order.Money{Amount: i.Amount, Currency: a.Charged.Currency}, i.Status, Stamp(i.UpdatedAt), i.Failure, next)
}

// Ledger formats the refunds of an intent as Stripe lists them.
func Ledger(l refund.Ledger) string {
	var b strings.Builder
	for _, r := range l.Refunds {
		status := string(r.Status)
		if r.Failure != "" {
			status += " (" + r.Failure + ")"
		}
		fmt.Fprintf(&b, "at Stripe  %s, %s, %s, of %s\n", r.ID, r.Total, status, cmp.Or(string(r.For), "others"))
	}
	return cmp.Or(b.String(), "at Stripe  no refund\n")
}

// Stamp formats a time for a person.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }
