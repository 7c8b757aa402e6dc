package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
)

// TestHistory has what the examples do not show: README prints what became of those.
func TestHistory(t *testing.T) {
	t.Parallel()
	line := func(attempt int, v order.Verdict, r order.Reason) system.Line {
		return system.Line{OrderID: "A", Verdict: string(v), Reason: string(r), Attempt: attempt}
	}
	settled := func(attempt int) system.Line { return line(attempt, order.Done, order.ReasonSettled) }
	killed := []victim{{"B", stripetest.Confirm, false}, {"A", stripetest.CreateRefund, false}}
	for want, tt := range map[string]struct {
		log     []system.Line
		charges int
	}{
		"charged once, settled at attempt 2": {[]system.Line{settled(2)}, 1}, // another one's function was killed
		"charged 2 times":                    {[]system.Line{settled(1), {OrderID: "A", RefundID: "R"}}, 2},
		"redeliver: provider_unavailable; other content parked; charged once, settled at attempt 3": {[]system.Line{
			line(1, order.Redeliver, order.ReasonUnavailable), line(0, order.Park, order.ReasonConflict), settled(3), settled(3),
		}, 1},
	} {
		s := summary{killed: killed, log: tt.log, Books: invariants.Books{
			Orders:  map[order.ID]invariants.Order{"A": {Record: order.Record{Status: order.Paid}}},
			Charges: map[order.ID][]invariants.Charge{"A": make([]invariants.Charge, tt.charges)},
		}}
		if got := s.history("A"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNothingPostedPrintsNoTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	show(&b, summary{}, nil)
	showRest(&b, summary{})
	if want := "\n0 messages, 0 deliveries, 0 orders"; !strings.HasPrefix(b.String(), want) {
		t.Errorf("printed\n%s\nwant the totals alone", b.String())
	}
}

func TestABrokenInvariantIsAnError(t *testing.T) {
	t.Parallel()
	err := showChecks(io.Discard, []invariants.Result{
		{ID: "I1", Broken: []string{"order A was charged 2 times"}}, {ID: "I2"}, {ID: "I13", Broken: []string{"a leak"}},
	})
	if !errors.Is(err, errBroken) || !strings.HasSuffix(err.Error(), ": I1, I13") {
		t.Errorf("error = %v, want errBroken that names I1 and I13", err)
	}
}
