package run

import (
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
	"orderonce/scripts/local/system"
)

// end is the correct end of a storm, which a test then changes.
type end struct {
	t        *testing.T
	workload Workload
	rows     map[string]*Row
	ledger   []stripetest.Charge
	dead     []sqstest.Message
	intents  map[order.IntentID]invariants.Intent
}

func newEnd(t *testing.T) *end {
	t.Helper()
	e := &end{
		t: t, workload: Workload{Seed: 7, Orders: 200}, rows: map[string]*Row{},
		intents: map[order.IntentID]invariants.Intent{},
	}
	for n := range e.workload.Orders {
		messages := e.workload.messages(n)
		if messages[0].content == invalid {
			e.park(messages[0], order.ReasonInvalid)
			continue
		}
		e.settle(messages[0])
		for _, m := range messages[1:] {
			if m.content == conflicting {
				e.park(m, order.ReasonConflict)
			}
		}
	}
	return e
}

// audit audits the end, of the product or of another handler.
func (e *end) audit(product bool, leaks ...string) *audit {
	e.t.Helper()
	a, err := newAudit(e.workload, func(yield func(Row, error) bool) {
		for _, row := range e.rows {
			if !yield(*row, nil) {
				return
			}
		}
	}, e.ledger, e.dead)
	must(e.t, err)
	if product {
		books := a.newBooks()
		books.Intents, books.Charges = e.intents, map[order.ID][]invariants.Charge{}
		for _, c := range e.ledger {
			if id := order.ID(c.OrderID); c.Outcome == stripetest.Charged {
				books.Charges[id] = append(books.Charges[id], system.ChargeOf(c))
			}
		}
		a.addBooks(books)
	}
	a.check(nil, leaks)
	return a
}

func (e *end) park(m message, reason order.Reason) {
	e.dead = append(e.dead, sqstest.Message{Attributes: map[string]sqstest.Attribute{
		AttrName: sqstest.Text(m.name()), sqs.AttrReason: sqstest.Text(string(reason)),
	}})
}

func (e *end) unpark(m message) {
	e.dead = slices.DeleteFunc(e.dead, func(d sqstest.Message) bool { return d.Attributes[AttrName].Text == m.name() })
}

func intentOf(m message) order.IntentID { return order.IntentID("pi_" + orderID(m.order)) }

// settle adds the row, the intent and the charge of an order that was settled as its card
// asks for.
func (e *end) settle(m message) {
	e.t.Helper()
	o, err := orders.NewDecoder().Decode(m.body)
	must(e.t, err)
	record := order.Record{
		OrderID: o.ID(), Total: o.Total(), Fingerprint: o.Fingerprint(), Status: m.want,
		Intent: intentOf(m), Seq: 1, Events: []order.Event{{Seq: 1, From: order.Open, To: m.want}},
	}
	e.rows[orderID(m.order)] = &Row{
		OrderID: orderID(m.order), Settled: true, Status: m.want, Amount: m.total.Amount,
		Order: &invariants.Order{Record: record, Left: o.Total().Amount},
	}
	at := invariants.Intent{Status: "requires_payment_method", Failure: "card_declined"}
	switch m.want { //nolint:exhaustive // no card of the workload leads to another status
	case order.Paid:
		at = invariants.Intent{Status: "succeeded"}
	case order.ActionRequired:
		at.Failure = "authentication_required"
	}
	e.intents[record.Intent] = at
	if e.charge(m); m.want != order.Paid {
		e.charged(m).Outcome = stripetest.Declined
	}
}

func (e *end) charge(m message) {
	e.ledger = append(e.ledger, stripetest.Charge{
		OrderID: orderID(m.order), Intent: string(intentOf(m)), Amount: m.total.Amount,
		Currency: string(m.total.Currency), Outcome: stripetest.Charged,
	})
}

func (e *end) charged(m message) *stripetest.Charge {
	return &e.ledger[slices.IndexFunc(e.ledger, func(c stripetest.Charge) bool { return c.OrderID == orderID(m.order) })]
}

func (e *end) uncharge(m message) {
	e.ledger = slices.DeleteFunc(e.ledger, func(c stripetest.Charge) bool { return c.OrderID == orderID(m.order) })
}

// The kinds of orders of which first finds one.
func paidOrder(m []message) bool {
	return len(m) == 1 && m[0].content == original && m[0].want == order.Paid
}

func invalidOrder(m []message) bool { return m[0].content == invalid }

func conflict(m []message) bool {
	return len(m) == 2 && m[1].content == conflicting && m[0].want == order.Paid
}

// first returns the messages of the first order of a kind.
func (e *end) first(kind func([]message) bool) []message {
	e.t.Helper()
	for n := range e.workload.Orders {
		if messages := e.workload.messages(n); kind(messages) {
			return messages
		}
	}
	e.t.Fatal("no order of the workload fits")
	return nil
}

// reopen makes an order claimed, but neither charged nor settled.
func (e *end) reopen(m message) {
	e.uncharge(m)
	e.intents[intentOf(m)] = invariants.Intent{Status: "requires_confirmation"}
	row := e.rows[orderID(m.order)]
	row.Settled, row.Status = false, order.Open
	row.Order.Status, row.Order.Seq, row.Order.Events = order.Open, 0, nil
}

// decline makes a row declined, with a matching event.
func (e *end) decline(m message) {
	row := e.rows[orderID(m.order)]
	row.Status, row.Order.Status, row.Order.Events[0].To = order.Declined, order.Declined, order.Declined
}

func TestAuditFindsEachViolation(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		broken string // the invariants
		of     func([]message) bool
		change func(*end, []message)
		want   func(*Count) // the difference to a correct end
	}{
		"a correct end has no violation": {"", paidOrder, func(*end, []message) {}, func(*Count) {}},
		"an order is charged twice": {
			"I1", paidOrder, func(e *end, m []message) { e.charge(m[0]) },
			func(c *Count) { c.ChargedTwice = 1 },
		},
		"another amount is charged": {
			"I2", paidOrder, func(e *end, m []message) { e.charged(m[0]).Amount++ }, func(c *Count) { c.WrongAmount = 1 },
		},
		"an amount that was not sent is charged and in the row": {
			"I2", paidOrder, func(e *end, m []message) {
				e.charged(m[0]).Amount++
				row := e.rows[orderID(m[0].order)]
				row.Amount, row.Order.Left, row.Order.Total.Amount = row.Amount+1, row.Order.Left+1, row.Amount+1
			}, func(c *Count) { c.WrongAmount = 1 },
		},
		"both orders of a conflict are charged": {
			"I1 I2", conflict, func(e *end, m []message) { e.charge(m[1]) },
			func(c *Count) { c.ChargedTwice, c.WrongAmount = 1, 1 },
		},
		"a row says paid and nothing was charged": {
			"I4", paidOrder, func(e *end, m []message) { e.uncharge(m[0]) }, func(c *Count) { c.LedgerMismatch = 1 },
		},
		"an invalid order is charged": {
			"I2 I4", invalidOrder, func(e *end, m []message) { e.charge(m[0]) }, func(c *Count) { c.WrongAmount = 1 },
		},
		"a row is of an unknown order": {
			"I4", paidOrder, func(e *end, _ []message) {
				e.workload.Orders++
				e.settle(e.workload.messages(200)[0])
				e.workload.Orders--
			}, func(*Count) {},
		},
		"a message and its row are lost": {
			"I3", paidOrder, func(e *end, m []message) { e.uncharge(m[0]); delete(e.rows, orderID(m[0].order)) },
			func(c *Count) { c.Settled--; c.Lost++ },
		},
		"a charged order has no row": {
			"I2 I3 I4", paidOrder, func(e *end, m []message) { delete(e.rows, orderID(m[0].order)) },
			func(c *Count) { c.Settled--; c.Lost++ },
		},
		"a message is lost and its row is open": {
			"I3 I11", paidOrder, func(e *end, m []message) { e.reopen(m[0]) }, func(c *Count) { c.Settled--; c.Lost++ },
		},
		"a row is open after all retries and its message parked": {
			"I11", paidOrder, func(e *end, m []message) { e.reopen(m[0]); e.park(m[0], order.ReasonUnknown) },
			func(c *Count) { c.Settled--; c.Stuck++; c.Parked++ },
		},
		"an invalid message is lost": {
			"I3", invalidOrder, func(e *end, m []message) { e.unpark(m[0]) }, func(c *Count) { c.Lost++; c.Parked-- },
		},
		"a conflicting duplicate is deleted": {
			"I9", conflict, func(e *end, m []message) { e.unpark(m[1]) }, func(c *Count) { c.ConflictLost++; c.Parked-- },
		},
		"the original of a conflict is deleted and its duplicate charged": {
			"I2 I9", conflict, func(e *end, m []message) {
				e.unpark(m[1])
				e.uncharge(m[0])
				e.charge(m[1])
				e.rows[orderID(m[0].order)].Amount = m[1].total.Amount
			}, func(c *Count) { c.ConflictLost++; c.Parked-- },
		},
		"a paid order is declined": {
			"I4 I15 I17", paidOrder, func(e *end, m []message) { e.decline(m[0]) },
			func(c *Count) { c.LedgerMismatch++; c.WrongStatus++ },
		},
		"an order that was never confirmed is declined": {
			"I15", paidOrder, func(e *end, m []message) {
				e.decline(m[0])
				e.uncharge(m[0])
				e.intents[intentOf(m[0])] = invariants.Intent{Status: "requires_confirmation"}
			}, func(c *Count) { c.WrongStatus++ },
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			want, e := newEnd(t).audit(true).count, newEnd(t)
			tt.want(&want)
			tt.change(e, e.first(tt.of))
			got := e.audit(true)
			if names := brokenOf(got.checks); names != tt.broken {
				t.Errorf("got broken invariants %q, want %q\n%+v", names, tt.broken, got.checks)
			}
			if diff := cmp.Diff(got.count, want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
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

func TestInvariantsAreCheckedForTheProductOnly(t *testing.T) {
	t.Parallel()
	e := newEnd(t)
	e.charge(e.first(paidOrder)[0])
	if a := e.audit(false, "canary"); a.checks != nil || a.count.ChargedTwice != 1 {
		t.Errorf("got %+v, %+v, want one order charged twice and no check", a.count, a.checks)
	}
	if got := brokenOf(e.audit(true, "canary").checks); got != "I1 I13" {
		t.Errorf("got broken invariants %q, want I1 and I13", got)
	}
}
