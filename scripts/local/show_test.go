package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/invariants"
	"orderonce/scripts/jobs"
	"orderonce/scripts/local/system"
)

func TestHistory(t *testing.T) {
	t.Parallel()
	settled := func(attempt int) system.Line {
		return system.Line{OrderID: "A", Verdict: "done", Reason: string(order.ReasonSettled), Attempt: attempt}
	}
	because := func(v order.Verdict, r order.Reason) system.Line {
		return system.Line{OrderID: "A", Verdict: string(v), Reason: string(r)}
	}
	paid := order.Record{Status: order.Paid}
	killed := func(id order.ID) []victim { return []victim{{id, stripetest.Confirm, false}} }
	canceled := order.Record{Status: order.Canceled, Failure: order.CanceledByOperator}
	for claim, tt := range map[string]struct {
		log     []system.Line
		row     order.Record
		charges int
		killed  []victim
		want    string
	}{
		"an order that was paid at once": {[]system.Line{settled(1)}, paid, 1, nil, "charged once"},
		"the order whose function was killed": {
			[]system.Line{settled(2)}, paid, 1, killed("A"), "function killed after the charge, next delivery settled it",
		},
		"an order that took two attempts while another one's function was killed": {
			[]system.Line{settled(2)}, paid, 1, killed("B"), "charged once, settled at attempt 2",
		},
		"an order that took three attempts where nothing was killed": {
			[]system.Line{settled(3)}, paid, 1, nil, "charged once, settled at attempt 3",
		},
		"two charges are counted": {[]system.Line{settled(1)}, paid, 2, nil, "charged 2 times"},
		"a declined order shows the bank's reason": {
			[]system.Line{settled(1)}, order.Record{Status: order.Declined, Failure: "card_declined"}, 0, nil, "card_declined",
		},
		"the late message of a canceled order": {
			[]system.Line{because(order.Done, order.ReasonDuplicate)},
			canceled, 0, nil,
			"operator canceled it, then a late message charged nobody",
		},
		"a line of a refund is left out": {
			[]system.Line{settled(1), {OrderID: "A", RefundID: "R", Reason: string(order.ReasonSettled)}}, paid, 1, nil, "charged once",
		},
		"a repeated step is shown once": {
			[]system.Line{because(order.Done, order.ReasonDuplicate), because(order.Done, order.ReasonDuplicate)},
			paid, 1, nil,
			"duplicate acknowledged",
		},
		"any other reason is shown as in the log": {
			[]system.Line{because(order.Redeliver, order.ReasonUnavailable), because(order.Park, order.ReasonConflict), settled(2)},
			paid, 1, nil,
			"redeliver: provider_unavailable; other content parked; charged once, settled at attempt 2",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			a := summary{killed: tt.killed, log: tt.log, Books: invariants.Books{
				Orders:  map[order.ID]invariants.Order{"A": {Record: tt.row}},
				Charges: map[order.ID][]invariants.Charge{"A": make([]invariants.Charge, tt.charges)},
			}}
			if got := a.history("A"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRefundHistory(t *testing.T) {
	t.Parallel()
	p := invariants.NewMessage(jobs.NewDecoder(), refundBody("A", 100), "1")
	line := func(attempt int, v order.Verdict, r order.Reason) system.Line {
		return system.Line{OrderID: "A", RefundID: "R", Verdict: string(v), Reason: string(r), Attempt: attempt}
	}
	made := invariants.Refund{Of: "R", Status: "succeeded"}
	for claim, tt := range map[string]struct {
		log    []system.Line
		made   []invariants.Refund
		killed []victim
		want   string
	}{
		"a duplicate is acknowledged": {
			[]system.Line{line(1, order.Done, order.ReasonSettled), line(0, order.Done, order.ReasonDuplicate)},
			[]invariants.Refund{made},
			nil, "made once; duplicate acknowledged",
		},
		"the refund whose function was killed": {
			[]system.Line{line(2, order.Done, order.ReasonSettled)},
			[]invariants.Refund{made},
			[]victim{{"A", stripetest.CreateRefund, false}},
			"killed after Stripe made it, found there",
		},
		"the refund of an order whose function was killed at the charge": {
			[]system.Line{line(2, order.Done, order.ReasonSettled)},
			[]invariants.Refund{made},
			[]victim{{"A", stripetest.Confirm, false}},
			"made once",
		},
		"more than is left": {[]system.Line{line(0, order.Park, refund.ReasonExceeds)}, nil, nil, "more than is left, parked"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			a := summary{killed: tt.killed, log: tt.log, Books: invariants.Books{
				Refunds: map[order.ID][]invariants.Refund{"A": tt.made},
			}}
			if got := a.refundHistory(p); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
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
