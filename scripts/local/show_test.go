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
	"orderonce/adapters/sqs/jobs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/refund"
	"orderonce/scripts/local/system"
)

// example is a run over the examples without further retries.
type example struct {
	summary

	stages stages
}

func newExample(t *testing.T) *example {
	t.Helper()
	all, err := run{
		Files: []string{"../../examples/orders.jsonl", "../../examples/refunds.jsonl"},
		Kill:  "ORD-1012", Lose: "ORD-1014", Cancel: "ORD-1015", Refund: "ORD-1003",
	}.stages()
	must(t, err)
	a := &example{
		summary: summary{
			Books: system.Books{
				Records: map[order.ID]order.Record{}, Charges: map[order.ID][]stripetest.Charge{},
				Refunds: map[order.ID][]stripetest.Refund{}, Parked: map[string]sqstest.Message{}, Publishes: true,
			},
			deliveries: map[string]int{}, crashes: 2, later: map[order.ID]string{}, dynamoDB: 103, stripe: 46, webhooks: 18,
		},
		stages: all,
	}
	for _, s := range all {
		a.killed = append(a.killed, s.killer.victims...)
	}
	return a
}

// post records what the functions do with the messages of a stage, and returns them. A
// message's id is its number.
func (a *example) post(s stage) []system.Posted {
	before := len(a.Posted)
	for _, body := range slices.Concat(s.waves...) {
		p := system.NewPosted(jobs.NewDecoder(), body, strconv.Itoa(len(a.Posted)+1))
		if p.IsRefund() {
			a.refund(p)
		} else {
			add(&a.summary, p)
		}
	}
	if before == 0 { // the batch of the function that was killed
		for _, again := range []string{"11", "12", "13", "14"} {
			a.deliveries[again]++
		}
	}
	return a.Posted[before:]
}

// refund records what the function does with a refund.
func (a *example) refund(p system.Posted) {
	a.Posted = append(a.Posted, p)
	a.deliveries[p.MessageID]++
	id, of := p.OrderID(), p.Refund.ID()
	r, left := a.Records[id], a.Records[id].Total.Amount
	for _, made := range a.Refunds[id] {
		left -= made.Amount
	}
	line := system.Line{OrderID: string(id), RefundID: string(of), Reason: string(order.ReasonSettled), Attempt: 1}
	switch {
	case a.Made(id, of) > 0:
		line.Reason = string(order.ReasonDuplicate)
	case p.Refund.Amount() > left:
		line.Reason = string(refund.ReasonExceeds)
		exceeds := &refund.ExceedsError{Amount: p.Refund.Amount(), Left: left}
		park(&a.summary, p, refund.ReasonExceeds, fmt.Errorf("begin refund %s of order %q: %w", of, id, exceeds))
	default:
		a.Refunds[id] = append(a.Refunds[id], stripetest.Refund{
			Amount: p.Refund.Amount(), Status: stripetest.RefundSucceeded, Metadata: map[string]string{"refundId": string(of)},
		})
		was := r.Status
		if r.Status = order.PartiallyRefunded; p.Refund.Amount() == left {
			r.Status = order.Refunded
		}
		a.change(&r, was)
	}
	if id == "ORD-1003" { // the refund whose function was killed
		line.Attempt++
		a.deliveries[p.MessageID]++
	}
	a.Log = append(a.Log, line)
}

// change adds the event of an order's last change to the table and to the bus.
func (a *example) change(r *order.Record, from order.Status) {
	seq := len(r.Events) + 1
	r.Events = append(r.Events, order.Event{Seq: seq, From: from, To: r.Status})
	a.Bus = append(a.Bus, system.BusEvent{OrderID: r.OrderID, Seq: seq, From: from, Status: r.Status})
	a.Records[r.OrderID] = *r
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
		case "ORD-1015": // likewise
			line = system.Line{}
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
		path, failure = []order.Status{order.Declined, order.Canceled}, "insufficient_funds"
	case "pm_card_authenticationRequired":
		path, failure = []order.Status{order.ActionRequired, order.Paid}, "authentication_required"
		a.later[id] = "authenticated, settled by webhook"
	case "pm_usBankAccount_processing":
		path = []order.Status{order.Pending, order.Paid}
		a.later[id] = "cleared, settled by webhook"
	}
	if id == "ORD-1015" {
		path, failure = []order.Status{order.Canceled}, order.CanceledByOperator
	}
	r := order.Record{OrderID: id, Total: o.Total(), Fingerprint: o.Fingerprint(), Status: order.Open}
	for i, next := range path {
		r.Events = append(r.Events, order.Event{Seq: i + 1, From: r.Status, To: next})
		a.Bus = append(a.Bus, system.BusEvent{OrderID: id, Seq: i + 1, From: r.Status, Status: next})
		r.Status = next
	}
	r.Events[0].Failure, r.Failure = failure, failure
	if r.Status == order.Paid {
		a.Charges[id] = []stripetest.Charge{{}}
	}
	a.Records[id] = r
}

func TestTheREADMEShowsWhatARunPrints(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	must(t, err)
	_, block, _ := strings.Cut(string(text), "\nReady after ")
	_, block, _ = strings.Cut(block, " s. ")
	before, rest, _ := strings.Cut(block, "Putting the orders of "+httpFile)
	_, checks, _ := strings.Cut(rest, "the record).\n")
	checks, _, _ = strings.Cut(checks, "\nNow take a guard away")

	var shown strings.Builder
	a := newExample(t)
	for n, s := range a.stages {
		fmt.Fprintf(&shown, "%s ...\n", strings.ReplaceAll(s.announce(), "../../", ""))
		if n == 1 {
			fmt.Fprintln(&shown, skipping())
		}
		show(&shown, a.summary, a.post(s))
	}
	if !matches(shown.String(), before) {
		t.Errorf("- README.md, + a run:\n%s", cmp.Diff(before, shown.String()))
	}
	shown.Reset()
	books := system.Books{
		Publishes: true, Accounts: map[order.ID]refund.Account{}, Stock: map[string]order.Stock{},
		Receipts: map[order.ID][]receipt.Item{},
	}
	if err := showChecks(&shown, books.Audit()); err != nil {
		t.Error(err)
	}
	if !matches(shown.String(), checks) {
		t.Errorf("- README.md, + a run:\n%s", cmp.Diff(checks, shown.String()))
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
		"an order that was settled at its first attempt was not killed": {[]system.Line{settled(1)}, paid, 1, killed("A"), "charged once"},
		"two charges are counted": {[]system.Line{settled(1)}, paid, 2, nil, "charged 2 times"},
		"a declined order shows the bank's reason": {
			[]system.Line{settled(1)}, order.Record{Status: order.Declined, Failure: "card_declined"}, 0, nil, "card_declined",
		},
		"a pending order is not shown as charged": {
			[]system.Line{settled(1)}, order.Record{Status: order.Pending}, 0, nil, "pending",
		},
		"an order whose function was killed at its refund": {
			[]system.Line{settled(2)}, paid, 1, []victim{{"A", stripetest.CreateRefund, false}}, "charged once, settled at attempt 2",
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

func TestRefundHistory(t *testing.T) {
	t.Parallel()
	p := system.NewPosted(jobs.NewDecoder(), refundBody("A", 100), "1")
	line := func(attempt int, v order.Verdict, r order.Reason) system.Line {
		return system.Line{OrderID: "A", RefundID: "R", Verdict: string(v), Reason: string(r), Attempt: attempt}
	}
	made := stripetest.Refund{Status: stripetest.RefundSucceeded, Metadata: map[string]string{"refundId": "R"}}
	for claim, tt := range map[string]struct {
		log    []system.Line
		made   []stripetest.Refund
		killed []victim
		want   string
	}{
		"a duplicate is acknowledged": {
			[]system.Line{line(1, order.Done, order.ReasonSettled), line(0, order.Done, order.ReasonDuplicate)},
			[]stripetest.Refund{made},
			nil, "made once; duplicate acknowledged",
		},
		"two refunds are counted": {
			[]system.Line{line(1, order.Done, order.ReasonSettled)}, []stripetest.Refund{made, made}, nil, "made 2 times",
		},
		"the refund whose function was killed": {
			[]system.Line{line(2, order.Done, order.ReasonSettled)},
			[]stripetest.Refund{made},
			[]victim{{"A", stripetest.CreateRefund, false}},
			"killed after Stripe made it, found there",
		},
		"the refund of an order whose function was killed at the charge": {
			[]system.Line{line(2, order.Done, order.ReasonSettled)},
			[]stripetest.Refund{made},
			[]victim{{"A", stripetest.Confirm, false}},
			"made once",
		},
		"more than is left": {[]system.Line{line(0, order.Park, refund.ReasonExceeds)}, nil, nil, "more than is left, parked"},
		"any other reason is shown as in the log": {
			[]system.Line{line(1, order.Redeliver, order.ReasonUnknown)}, nil, nil, "redeliver: provider_unknown",
		},
		"another refund's lines are left out": {
			[]system.Line{{OrderID: "A", RefundID: "other", Reason: string(order.ReasonSettled)}}, nil, nil, "",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			a := summary{killed: tt.killed, Books: system.Books{
				Log: tt.log, Refunds: map[order.ID][]stripetest.Refund{"A": tt.made},
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
