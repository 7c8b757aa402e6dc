package run_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/orders"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/lab/storm/run"
)

// end is the correct end of a storm, which a test then changes.
type end struct {
	run.End

	t        *testing.T
	workload run.Workload
}

func newEnd(t *testing.T, orders int) *end {
	t.Helper()
	return newEndOf(t, run.Workload{Seed: 7, Orders: orders})
}

func newEndOf(t *testing.T, w run.Workload) *end {
	t.Helper()
	e := &end{
		t:        t,
		workload: w,
		End:      run.End{Product: true, Intents: map[order.IntentID]invariants.Intent{}},
	}
	for n := range w.Orders {
		messages := e.workload.Messages(n)
		if messages[0].Invalid {
			e.park(messages[0], order.ReasonInvalid)
			continue
		}
		e.settle(messages[0])
		for _, m := range messages[1:] {
			if m.Conflicting {
				e.park(m, order.ReasonConflict)
			}
		}
	}
	return e
}

func (e *end) park(m run.Message, reason order.Reason) {
	e.Dead = append(e.Dead, sqstest.Message{Attributes: map[string]sqstest.Attribute{
		run.AttrName: sqstest.Text(m.Name), sqs.AttrReason: sqstest.Text(string(reason)),
	}})
}

// settle adds the row, the intent and the charge of an order that was settled as its card
// asks for.
func (e *end) settle(m run.Message) {
	e.t.Helper()
	o, err := orders.NewDecoder().Decode(m.Body)
	must(e.t, err)
	intent := "pi_" + m.OrderID
	record := order.Record{
		OrderID: o.ID(), Total: o.Total(), Fingerprint: o.Fingerprint(), Status: m.Want,
		Intent: order.IntentID(intent), Seq: 1, Events: []order.Event{{Seq: 1, From: order.Open, To: m.Want}},
	}
	e.Rows = append(e.Rows, run.Row{
		OrderID: m.OrderID, Settled: true, Status: m.Want, Amount: m.Total.Amount,
		Order: &invariants.Order{Record: record, Left: o.Total().Amount},
	})
	at := invariants.Intent{Status: "requires_payment_method", Failure: "card_declined"}
	switch m.Want { //nolint:exhaustive // no card of the workload leads to another status
	case order.Paid:
		at = invariants.Intent{Status: "succeeded"}
	case order.ActionRequired:
		at.Failure = "authentication_required"
	case order.Pending:
		at = invariants.Intent{Status: "processing"}
	}
	e.Intents[record.Intent] = at
	if e.charge(m); m.Want != order.Paid {
		e.ledgerOf(m).Outcome = stripetest.Declined
	}
}

func (e *end) charge(m run.Message) {
	e.Ledger = append(e.Ledger, stripetest.Charge{
		OrderID: m.OrderID, Intent: "pi_" + m.OrderID, Amount: m.Total.Amount, Currency: string(m.Total.Currency),
		Outcome: stripetest.Charged,
	})
}

// number returns the number of the first order that fits, and first its first message.
func (e *end) number(fits func([]run.Message) bool) int {
	e.t.Helper()
	for n := range e.workload.Orders {
		if fits(e.workload.Messages(n)) {
			return n
		}
	}
	e.t.Fatal("no order of the workload fits")
	return 0
}

func (e *end) first(fits func([]run.Message) bool) run.Message {
	e.t.Helper()
	return e.workload.Messages(e.number(fits))[0]
}

func paidOrder(m []run.Message) bool { return len(m) == 1 && !m[0].Invalid && m[0].Want == order.Paid }

func invalidOrder(m []run.Message) bool { return m[0].Invalid }

func conflictingOrder(m []run.Message) bool {
	return len(m) == 2 && m[1].Conflicting && m[0].Want == order.Paid
}

// row returns the row of an order.
func (e *end) row(m run.Message) *run.Row {
	return &e.Rows[slices.IndexFunc(e.Rows, func(r run.Row) bool { return r.OrderID == m.OrderID })]
}

func (e *end) ledgerOf(m run.Message) *stripetest.Charge {
	return &e.Ledger[slices.IndexFunc(e.Ledger, func(c stripetest.Charge) bool { return c.OrderID == m.OrderID })]
}

func (e *end) removeRow(m run.Message) {
	e.Rows = slices.DeleteFunc(e.Rows, func(r run.Row) bool { return r.OrderID == m.OrderID })
}

func (e *end) removeCharge(m run.Message) {
	e.Ledger = slices.DeleteFunc(e.Ledger, func(c stripetest.Charge) bool { return c.OrderID == m.OrderID })
}

func (e *end) removeDead(name string) {
	e.Dead = slices.DeleteFunc(e.Dead,
		func(d sqstest.Message) bool { return d.Attributes[run.AttrName].Text == name })
}

// reopen makes an order claimed, but neither charged nor settled.
func (e *end) reopen(m run.Message) {
	e.removeCharge(m)
	e.Intents[order.IntentID("pi_"+m.OrderID)] = invariants.Intent{Status: "requires_confirmation"}
	row := e.row(m)
	row.Settled, row.Status = false, order.Open
	row.Order.Status, row.Order.Seq, row.Order.Events = order.Open, 0, nil
}

// decline makes a row declined, with a matching event.
func (e *end) decline(m run.Message) {
	row := e.row(m)
	row.Status, row.Order.Status, row.Order.Events[0].To = order.Declined, order.Declined, order.Declined
}

// violation is one incorrect end of a storm.
type violation struct {
	claim, broken string // broken are the invariants
	change        func(*end)
	count         run.Count // the difference to a correct end
}

func TestAuditFindsEachViolation(t *testing.T) {
	t.Parallel()
	for _, tt := range slices.Concat(wrongCharges(), lostOrders(), wrongRows()) {
		t.Run(tt.claim, func(t *testing.T) {
			t.Parallel()
			correct, _, _ := run.Audit(newEnd(t, 200).workload, newEnd(t, 200).End)
			e := newEnd(t, 200)
			tt.change(e)
			got, checks, err := run.Audit(e.workload, e.End)
			must(t, err)
			if names := brokenOf(checks); names != tt.broken {
				t.Errorf("got broken invariants %q, want %q\n%+v", names, tt.broken, checks)
			}
			if diff := cmp.Diff(difference(got, correct), tt.count); diff != "" {
				t.Errorf("difference to a correct end: (-got +want)\n%s", diff)
			}
		})
	}
}

// brokenOf returns the ids of the broken invariants.
func brokenOf(results []invariants.Result) string {
	var broken []string
	for _, r := range results {
		if len(r.Broken) > 0 {
			broken = append(broken, r.ID)
		}
	}
	return strings.Join(broken, " ")
}

// difference leaves out Orders, Messages and Extra.
func difference(a, b run.Count) run.Count {
	return run.Count{
		ChargedTwice: a.ChargedTwice - b.ChargedTwice, WrongAmount: a.WrongAmount - b.WrongAmount, Lost: a.Lost - b.Lost,
		Stuck: a.Stuck - b.Stuck, ConflictLost: a.ConflictLost - b.ConflictLost, LedgerMismatch: a.LedgerMismatch - b.LedgerMismatch,
		WrongStatus: a.WrongStatus - b.WrongStatus, Settled: a.Settled - b.Settled, Parked: a.Parked - b.Parked,
		ExtraCharges: a.ExtraCharges - b.ExtraCharges,
	}
}

func wrongCharges() []violation {
	return []violation{
		{"a correct end has no violation", "", func(*end) {}, run.Count{}},
		{
			"an order is charged twice", "I1", func(e *end) { e.charge(e.first(paidOrder)) },
			run.Count{ChargedTwice: 1, ExtraCharges: 1},
		},
		{
			"another amount is charged", "I2", func(e *end) { e.ledgerOf(e.first(paidOrder)).Amount++ },
			run.Count{WrongAmount: 1},
		},
		{
			"both orders of a conflict are charged", "I1 I2", func(e *end) {
				messages := e.workload.Messages(e.number(conflictingOrder))
				e.charge(messages[1])
			},
			run.Count{ChargedTwice: 1, ExtraCharges: 1, WrongAmount: 1},
		},
		{
			"an amount that was not sent is charged and in the row", "I2", func(e *end) {
				m := e.first(paidOrder)
				e.ledgerOf(m).Amount++
				e.row(m).Amount++
				e.row(m).Order.Total.Amount++
				e.row(m).Order.Left++
			},
			run.Count{WrongAmount: 1},
		},
		{
			"a row says paid and nothing was charged", "I4", func(e *end) { e.removeCharge(e.first(paidOrder)) },
			run.Count{LedgerMismatch: 1},
		},
		{
			"a charge is for an unknown order", "I4", func(e *end) { e.charge(run.Message{OrderID: "storm-000200"}) },
			run.Count{},
		},
		{
			"an invalid order is charged", "I2 I4", func(e *end) { e.charge(e.first(invalidOrder)) },
			run.Count{WrongAmount: 1},
		},
	}
}

func lostOrders() []violation {
	return []violation{
		{
			"a message and its row are lost", "I3", func(e *end) {
				e.removeCharge(e.first(paidOrder))
				e.removeRow(e.first(paidOrder))
			},
			run.Count{Settled: -1, Lost: 1},
		},
		{
			"a charged order has no row", "I2 I3 I4", func(e *end) { e.removeRow(e.first(paidOrder)) },
			run.Count{Settled: -1, Lost: 1},
		},
		{
			"a message is lost and its row is open", "I3 I11", func(e *end) { e.reopen(e.first(paidOrder)) },
			run.Count{Settled: -1, Lost: 1},
		},
		{
			"a row is open after all retries and its message parked", "I11", func(e *end) {
				e.reopen(e.first(paidOrder))
				e.park(e.first(paidOrder), order.ReasonUnknown)
			},
			run.Count{Settled: -1, Stuck: 1, Parked: 1},
		},
		{
			"an invalid message is lost", "I3", func(e *end) { e.removeDead(e.first(invalidOrder).Name) },
			run.Count{Lost: 1, Parked: -1},
		},
		{
			"the original of a conflict is deleted and its duplicate charged", "I2 I9", func(e *end) {
				messages := e.workload.Messages(e.number(conflictingOrder))
				e.removeDead(messages[1].Name)
				e.removeCharge(messages[0])
				e.charge(messages[1])
				e.row(messages[0]).Amount = messages[1].Total.Amount
			},
			run.Count{ConflictLost: 1, Parked: -1},
		},
		{
			"a conflicting duplicate is deleted", "I9", func(e *end) {
				e.removeDead(strings.TrimSuffix(e.first(conflictingOrder).Name, ".0") + ".1")
			},
			run.Count{ConflictLost: 1, Parked: -1},
		},
	}
}

func wrongRows() []violation {
	return []violation{
		{
			"a paid order is declined", "I4 I15 I17", func(e *end) { e.decline(e.first(paidOrder)) },
			run.Count{LedgerMismatch: 1, WrongStatus: 1},
		},
		{
			"an order that was never confirmed is declined", "I15", func(e *end) {
				m := e.first(paidOrder)
				e.decline(m)
				e.removeCharge(m)
				e.Intents[order.IntentID("pi_"+m.OrderID)] = invariants.Intent{Status: "requires_confirmation"}
			},
			run.Count{WrongStatus: 1},
		},
	}
}

func TestALargeTableIsCheckedCompletely(t *testing.T) {
	t.Parallel()
	e := newEnd(t, 2500)
	e.removeRow(e.workload.Messages(2499)[0])
	got, _, err := run.Audit(e.workload, e.End)
	if err != nil || got.Orders < 2400 || got.Lost != 1 || got.Settled != got.Orders-1 {
		t.Errorf("got %+v, %v, want every order settled except the lost one", got, err)
	}
}

func TestATableThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	e := newEnd(t, 10)
	e.ReadErr = errors.New("no response")
	if _, _, err := run.Audit(e.workload, e.End); !errors.Is(err, e.ReadErr) {
		t.Errorf("got error %v, want %v", err, e.ReadErr)
	}
}

func TestInvariantsAreCheckedForTheProductOnly(t *testing.T) {
	t.Parallel()
	e := newEnd(t, 200)
	e.Product = false
	e.charge(e.first(paidOrder))
	e.Rows, e.Leaks = append(e.Rows, run.Row{OrderID: "ORD-1"}), []string{"canary"}
	got, checks, err := run.Audit(e.workload, e.End)
	if err != nil || checks != nil || got.ChargedTwice != 1 {
		t.Errorf("got %+v, %+v, %v, want one order charged twice and no check", got, checks, err)
	}
}
