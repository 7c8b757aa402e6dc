package run

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system/systemtest"
)

// end is the correct end of a storm, which a test then changes. Package invariants tests
// what it checks in the product's books.
type end struct {
	workload Workload
	rows     map[string]*Row
	ledger   []stripetest.Charge
	dead     []sqstest.Message
}

func newEnd() *end {
	e := &end{workload: Workload{Seed: 7, Orders: 200}, rows: map[string]*Row{}}
	for n := range e.workload.Orders {
		messages := e.workload.messages(n)
		if messages[0].content == invalid {
			e.park(messages[0], order.ReasonInvalid)
			continue
		}
		m := messages[0]
		e.rows[orderID(n)] = &Row{OrderID: orderID(n), Settled: true, Status: m.want, Amount: m.total.Amount}
		if e.charge(m); m.want != order.Paid {
			e.charged(m).Outcome = stripetest.Declined
		}
		for _, m := range messages[1:] {
			if m.content == conflicting {
				e.park(m, order.ReasonConflict)
			}
		}
	}
	return e
}

// audit audits the end, with two of the invariants of the product.
func (e *end) audit(t *testing.T, leaks ...string) *audit {
	t.Helper()
	a, err := newAudit(e.workload, func(yield func(Row, error) bool) {
		for _, row := range e.rows {
			if !yield(*row, nil) {
				return
			}
		}
	}, e.ledger, e.dead)
	systemtest.Must(t, err)
	a.checks = []invariants.Result{{ID: "I2"}, {ID: "I13"}, {ID: "I15"}, {ID: "I17"}}
	a.check(nil, leaks)
	return a
}

func (e *end) park(m message, reason order.Reason) {
	e.dead = append(e.dead, sqstest.Message{Draft: sqstest.Draft{Attributes: map[string]sqstest.Attribute{
		AttrName: sqstest.Text(m.name()), sqs.AttrReason: sqstest.Text(string(reason)),
	}}})
}

func (e *end) unpark(m message) {
	e.dead = slices.DeleteFunc(e.dead, func(d sqstest.Message) bool { return d.Attributes[AttrName].Text == m.name() })
}

func (e *end) charge(m message) {
	e.ledger = append(e.ledger, stripetest.Charge{
		OrderID: orderID(m.order), Amount: m.total.Amount, Currency: string(m.total.Currency), Outcome: stripetest.Charged,
	})
}

func (e *end) charged(m message) *stripetest.Charge {
	return &e.ledger[slices.IndexFunc(e.ledger, func(c stripetest.Charge) bool { return c.OrderID == orderID(m.order) })]
}

func (e *end) uncharge(m message) {
	e.ledger = slices.DeleteFunc(e.ledger, func(c stripetest.Charge) bool { return c.OrderID == orderID(m.order) })
}

// The kinds of orders of which a test takes the first.
func paidOrder(m []message) bool {
	return len(m) == 1 && m[0].content == original && m[0].want == order.Paid
}

func invalidOrder(m []message) bool { return m[0].content == invalid }

func conflict(m []message) bool {
	return len(m) == 2 && m[1].content == conflicting && m[0].want == order.Paid
}

func TestAuditFindsEachError(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		broken string // an invariant that the workload alone shows broken
		of     func([]message) bool
		change func(*end, []message, *Row)
		want   Figures // the difference to a correct end
	}{
		"a correct end": {"", paidOrder, func(*end, []message, *Row) {}, nil},
		"an order is charged twice": {
			"", paidOrder, func(e *end, m []message, _ *Row) { e.charge(m[0]) }, Figures{ChargedTwice: 1},
		},
		"an amount that was not sent is charged": {
			"I2", paidOrder, func(e *end, m []message, _ *Row) { e.charged(m[0]).Amount++ }, Figures{WrongAmount: 1},
		},
		"an amount that was not sent is charged and in the row": {"I2", paidOrder, func(e *end, m []message, r *Row) {
			e.charged(m[0]).Amount++
			r.Amount++
		}, Figures{WrongAmount: 1}},
		"both orders of a conflict are charged": {
			"I2", conflict, func(e *end, m []message, _ *Row) { e.charge(m[1]) },
			Figures{ChargedTwice: 1, WrongAmount: 1},
		},
		"a row says paid and nothing was charged": {
			"", paidOrder, func(e *end, m []message, _ *Row) { e.uncharge(m[0]) }, Figures{LedgerMismatch: 1},
		},
		"an invalid order is charged": {
			"I2", invalidOrder, func(e *end, m []message, _ *Row) { e.charge(m[0]) }, Figures{WrongAmount: 1},
		},
		"an invalid message is lost": {
			"", invalidOrder, func(e *end, m []message, _ *Row) { e.unpark(m[0]) }, Figures{Lost: 1, Parked: -1},
		},
		"a row is open and its message lost": {"", paidOrder, func(e *end, m []message, r *Row) {
			e.uncharge(m[0])
			r.Settled = false
		}, Figures{Settled: -1, Lost: 1}},
		"a row is open after all retries and its message parked": {"", paidOrder, func(e *end, m []message, r *Row) {
			e.uncharge(m[0])
			e.park(m[0], order.ReasonUnknown)
			r.Settled = false
		}, Figures{Settled: -1, Stuck: 1, Parked: 1}},
		"a conflicting duplicate is deleted": {
			"", conflict, func(e *end, m []message, _ *Row) { e.unpark(m[1]) }, Figures{ConflictLost: 1, Parked: -1},
		},
		"a paid order is declined": {
			"I15", paidOrder, func(_ *end, _ []message, r *Row) { r.Status = order.Declined },
			Figures{LedgerMismatch: 1, WrongStatus: 1},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			want, e := newEnd().audit(t).figures, newEnd()
			n := 0
			for !tt.of(e.workload.messages(n)) {
				n++
			}
			tt.change(e, e.workload.messages(n), e.rows[orderID(n)])
			a, got := e.audit(t), Figures{}
			maps.Copy(got, a.figures)
			for name, n := range tt.want {
				got[name] -= n
			}
			if diff := cmp.Diff(nonzero(got), nonzero(want)); diff != "" {
				t.Errorf("without the wanted difference (-got +correct)\n%s", diff)
			}
			for _, r := range a.checks {
				if (len(r.Broken) > 0) != (r.ID == tt.broken) {
					t.Errorf("%s: got %q, want %q broken", r.ID, r.Broken, tt.broken)
				}
			}
		})
	}
}

func nonzero(f Figures) Figures {
	maps.DeleteFunc(f, func(_ Figure, n int) bool { return n == 0 })
	return f
}

func TestALeakBreaksAnInvariantOfTheProduct(t *testing.T) {
	t.Parallel()
	if got := (Outcome{Checks: newEnd().audit(t, "canary").checks}).Broken(); !slices.Equal(got, []string{"I13"}) {
		t.Errorf("got broken invariants %q, want I13", got)
	}
}
