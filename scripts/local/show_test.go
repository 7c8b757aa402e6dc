package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// example returns the summary of a run over examples/orders.jsonl without further
// retries. A message's id is its number.
func example(t *testing.T) summary {
	t.Helper()
	a := summary{
		Books: system.Books{
			Records: map[order.ID]order.Record{}, Charges: map[order.ID][]stripetest.Charge{}, Parked: map[string]sqstest.Message{},
		},
		deliveries: map[string]int{}, crashes: 1, killed: []order.ID{"ORD-1012", "ORD-1014"}, dynamoDB: 76, stripe: 29,
		later: map[order.ID]string{}, webhooks: 12,
	}
	a.Publishes = true
	waves, err := readWaves("../../examples/orders.jsonl")
	must(t, err)
	for i, body := range slices.Concat(waves...) {
		add(&a, system.NewPosted(sqs.NewDecoder(), body, strconv.Itoa(i+1)))
	}
	for _, again := range []string{"11", "12", "13", "14"} { // the batch of the function that was killed
		a.deliveries[again]++
	}
	return a
}

// add records what the function does with the next message.
func add(a *summary, p system.Posted) {
	a.Posted = append(a.Posted, p)
	a.deliveries[p.MessageID]++
	id := p.Order.ID()
	r, known := a.Records[id]
	line := system.Line{OrderID: string(id)}
	switch {
	case p.Invalid != nil:
		park(a, p, order.ReasonInvalid, p.Invalid)
		line.Reason = string(order.ReasonInvalid)
	case !known:
		settle(a, p.Order)
		line.Reason, line.Attempt = string(order.ReasonSettled), 1
		switch id {
		case "ORD-1012":
			line.Attempt = 2
		case "ORD-1014": // its message was deleted, so it has no line
			line = system.Line{}
			a.later[id] = "killed, message and webhook lost; settled by reconcile"
		}
	case r.Fingerprint != p.Order.Fingerprint():
		park(a, p, order.ReasonConflict, fmt.Errorf("begin order %q: %w", id, order.ErrConflict))
		line.Reason = string(order.ReasonConflict)
	default:
		line.Reason = string(order.ReasonDuplicate)
	}
	a.Log = append(a.Log, line)
}

func park(a *summary, p system.Posted, why order.Reason, detail error) {
	a.Parked[p.MessageID] = sqstest.Message{Attributes: map[string]sqstest.Attribute{
		sqs.AttrReason: sqstest.Text(string(why)), sqs.AttrDetail: sqstest.Text(detail.Error()),
	}}
}

// settle records the outcome of Stripe's test payment method, and publishes it.
func settle(a *summary, o order.Order) {
	id, path, failure := o.ID(), []order.Status{order.Paid}, ""
	switch o.Payment().Method {
	case "pm_card_chargeDeclinedInsufficientFunds":
		path, failure = []order.Status{order.Declined}, "insufficient_funds"
	case "pm_card_authenticationRequired":
		path, failure = []order.Status{order.ActionRequired, order.Paid}, "authentication_required"
		a.later[id] = "authenticated, settled by webhook"
	case "pm_usBankAccount_processing":
		path = []order.Status{order.Pending, order.Paid}
		a.later[id] = "cleared, settled by webhook"
	}
	r := order.Record{OrderID: id, Total: o.Total(), Fingerprint: o.Fingerprint(), Status: order.Open}
	for i, next := range path {
		r.Events = append(r.Events, order.Event{Seq: i + 1, From: r.Status, To: next})
		a.Bus = append(a.Bus, system.BusEvent{OrderID: id, Seq: i + 1, From: r.Status, Status: next})
		r.Status = next
	}
	r.Events[0].Failure = failure
	if r.Status == order.Paid {
		a.Charges[id] = []stripetest.Charge{{}}
	}
	a.Records[id] = r
}

func TestTheREADMEShowsWhatARunPrints(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	must(t, err)
	_, block, _ := strings.Cut(string(text), "will be killed in the middle of ORD-1012 and ORD-1014 ...\n")
	tables, rest, _ := strings.Cut(block, "All done in ")
	_, checks, _ := strings.Cut(rest, "\n")
	checks, _, _ = strings.Cut(checks, "\nNow take a guard away")

	var shown strings.Builder
	show(&shown, example(t))
	if want := example(t).published() + "."; !strings.Contains(rest, want) {
		t.Errorf("README.md lacks %q, which a run prints", want)
	}
	if diff := cmp.Diff(tables, shown.String()); diff != "" {
		t.Errorf("- README.md, + a run:\n%s", diff)
	}
	shown.Reset()
	if err := showChecks(&shown, (&system.Books{Publishes: true}).Audit()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(checks, shown.String()); diff != "" {
		t.Errorf("- README.md, + a run:\n%s", diff)
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	settled := func(attempt int) system.Line {
		return system.Line{OrderID: "A", Verdict: "done", Reason: string(order.ReasonSettled), Attempt: attempt}
	}
	because := func(v order.Verdict, r order.Reason) system.Line {
		return system.Line{OrderID: "A", Verdict: string(v), Reason: string(r)}
	}
	paid := order.Record{Status: order.Paid}
	for claim, tt := range map[string]struct {
		log     []system.Line
		row     order.Record
		charges int
		killed  []order.ID
		want    string
	}{
		"an order that was paid at once": {[]system.Line{settled(1)}, paid, 1, nil, "charged once"},
		"the order whose function was killed": {
			[]system.Line{settled(2)}, paid, 1, []order.ID{"A"}, "function killed after the charge, next delivery settled it",
		},
		"an order that took two attempts while another one's function was killed": {
			[]system.Line{settled(2)}, paid, 1, []order.ID{"B"}, "charged once, settled at attempt 2",
		},
		"an order that took three attempts where nothing was killed": {
			[]system.Line{settled(3)}, paid, 1, nil, "charged once, settled at attempt 3",
		},
		"an order that was settled at its first attempt was not killed": {[]system.Line{settled(1)}, paid, 1, []order.ID{"A"}, "charged once"},
		"two charges are counted": {[]system.Line{settled(1)}, paid, 2, nil, "charged 2 times"},
		"a declined order shows the bank's reason": {
			[]system.Line{settled(1)}, order.Record{Status: order.Declined, Failure: "card_declined"}, 0, nil, "card_declined",
		},
		"a pending order is not shown as charged": {
			[]system.Line{settled(1)}, order.Record{Status: order.Pending}, 0, nil, "pending",
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
		"another order's lines are left out": {[]system.Line{{OrderID: "B", Reason: string(order.ReasonSettled)}}, paid, 1, nil, ""},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			a := summary{killed: tt.killed, Books: system.Books{
				Log: tt.log, Records: map[order.ID]order.Record{"A": tt.row},
				Charges: map[order.ID][]stripetest.Charge{"A": make([]stripetest.Charge, tt.charges)},
			}}
			if got := a.history("A"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestNothingParkedPrintsNoTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	show(&b, summary{})
	if strings.Contains(b.String(), "parked message") ||
		!strings.Contains(b.String(), "0 messages, 0 deliveries, 0 orders") {
		t.Errorf("printed\n%s\nwant the orders and the totals alone", b.String())
	}
}

func TestTotalsCountCrashes(t *testing.T) {
	t.Parallel()
	for crashes, want := range map[int]string{
		0: "0 parked; 0 calls", 1: "0 parked, 1 crash; 0 calls", 2: "0 parked, 2 crashes; 0 calls",
	} {
		var b strings.Builder
		showTotals(&b, summary{crashes: crashes})
		if !strings.Contains(b.String(), want) {
			t.Errorf("want %q in %q", want, b.String())
		}
	}
}

func TestABrokenInvariantIsAnError(t *testing.T) {
	t.Parallel()
	err := showChecks(io.Discard, []system.Check{
		{ID: "I1", Broken: []string{"order A was charged 2 times"}}, {ID: "I2"}, {ID: "I13", Broken: []string{"a leak"}},
	})
	if !errors.Is(err, errBroken) || !strings.HasSuffix(err.Error(), ": I1, I13") {
		t.Errorf("error = %v, want errBroken that names I1 and I13", err)
	}
}
