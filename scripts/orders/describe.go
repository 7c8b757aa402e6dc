package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"orderonce/domain/order"
)

// describe formats a record for a person. It leaves the customer out.
func describe(r order.Record) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, value)
		}
	}
	line("order", string(r.OrderID))
	line("status", string(r.Status))
	line("amount", r.Total.String())
	line("intent", cmp.Or(string(r.Intent), "none bound: no money has moved"))
	line("mode", string(r.Mode))
	line("failure", r.Failure)
	if d := r.Dispute; d.ID != "" {
		line("dispute", fmt.Sprintf("%s %s, opened %s", d.ID, d.Status, stamp(d.CreatedAt)))
	}
	line("last error", r.LastError)
	line("attempts", fmt.Sprint(r.Attempt))
	if r.Owner != "" {
		line("held until", stamp(r.Until))
	}
	line("created", stamp(r.CreatedAt))
	line("updated", stamp(r.UpdatedAt))
	if !r.DueAt.IsZero() {
		line("recheck at", stamp(r.DueAt))
	}
	for _, e := range r.Events {
		change := fmt.Sprintf("%s  %s -> %s  %s", stamp(e.At), e.From, e.To, e.Failure)
		if e.Dispute.ID != "" {
			change = fmt.Sprintf("%s  dispute %s %s", stamp(e.At), e.Dispute.ID, e.Dispute.Status)
		}
		line(fmt.Sprintf("event %d", e.Seq), strings.TrimSpace(change))
	}
	return b.String()
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }
