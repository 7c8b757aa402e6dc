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
		transition := fmt.Sprintf("%s  %s -> %s  %s", stamp(e.At), e.From, e.To, e.Failure)
		line(fmt.Sprintf("event %d", e.Seq), strings.TrimSpace(transition))
	}
	return b.String()
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }
