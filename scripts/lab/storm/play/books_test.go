package play_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/lab/storm/play"
)

// end is a storm's end in which everything is right until somebody spoils it.
type end struct {
	play.End

	t      *testing.T
	script play.Script
}

func newEnd(t *testing.T, orders int) *end {
	t.Helper()
	e := &end{t: t, script: play.Script{Seed: 7, Orders: orders}, End: play.End{Ours: true, Intents: map[string]stripetest.Intent{}}}
	for n := range orders {
		messages := e.script.Messages(n)
		if messages[0].Invalid {
			e.park(messages[0], order.ReasonInvalid)
			continue
		}
		e.settle(messages[0])
		for _, m := range messages[1:] {
			if m.Other {
				e.park(m, order.ReasonConflict)
			}
		}
	}
	return e
}

func (e *end) park(m play.Message, reason order.Reason) {
	e.Dead = append(e.Dead, sqstest.Message{Attributes: map[string]sqstest.Attribute{
		play.AttrName: sqstest.Text(m.Name), sqs.AttrReason: sqstest.Text(string(reason)),
	}})
}

// settle writes what is known of an order that came to the end that its card is for.
func (e *end) settle(m play.Message) {
	e.t.Helper()
	o, err := sqs.NewDecoder().Decode(m.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	intent := "pi_" + m.OrderID
	e.Rows = append(e.Rows, play.Row{OrderID: m.OrderID, Settled: true, Status: m.Ends, Amount: m.Total.Amount, Record: &order.Record{
		OrderID: o.ID(), Total: o.Total(), Fingerprint: o.Fingerprint(), Status: m.Ends, Intent: order.IntentID(intent), Seq: 1,
		Events: []order.Event{{Seq: 1, From: order.Open, To: m.Ends}},
	}})
	at := stripetest.Intent{Status: stripetest.StatusRequiresPaymentMethod, LastError: &stripetest.Error{Code: "card_declined"}}
	switch m.Ends { //nolint:exhaustive // no card of the script is for another end
	case order.Paid:
		at = stripetest.Intent{Status: stripetest.StatusSucceeded}
	case order.ActionRequired:
		at.LastError.Code = "authentication_required"
	}
	e.Intents[intent] = at
	e.charge(m)
	if m.Ends != order.Paid {
		e.ledgerOf(m).Outcome = stripetest.Declined
	}
}

func (e *end) charge(m play.Message) {
	e.Ledger = append(e.Ledger, stripetest.Charge{
		OrderID: m.OrderID, Intent: "pi_" + m.OrderID, Amount: m.Total.Amount, Currency: string(m.Total.Currency),
		Outcome: stripetest.Charged,
	})
}

// an is the first message of the first order that fits.
func (e *end) an(fits func([]play.Message) bool) play.Message {
	e.t.Helper()
	for n := range e.script.Orders {
		if messages := e.script.Messages(n); fits(messages) {
			return messages[0]
		}
	}
	e.t.Fatal("no order of the script fits")
	return play.Message{}
}

func paidOrder(m []play.Message) bool { return len(m) == 1 && !m[0].Invalid && m[0].Ends == order.Paid }

func noOrder(m []play.Message) bool { return m[0].Invalid }

func twoContents(m []play.Message) bool { return len(m) == 2 && m[1].Other && m[0].Ends == order.Paid }

// row is the row of an order, to be changed.
func (e *end) row(m play.Message) *play.Row {
	return &e.Rows[slices.IndexFunc(e.Rows, func(r play.Row) bool { return r.OrderID == m.OrderID })]
}

func (e *end) ledgerOf(m play.Message) *stripetest.Charge {
	return &e.Ledger[slices.IndexFunc(e.Ledger, func(c stripetest.Charge) bool { return c.OrderID == m.OrderID })]
}

func (e *end) forgetRow(m play.Message) {
	e.Rows = slices.DeleteFunc(e.Rows, func(r play.Row) bool { return r.OrderID == m.OrderID })
}

func (e *end) forgetCharge(m play.Message) {
	e.Ledger = slices.DeleteFunc(e.Ledger, func(c stripetest.Charge) bool { return c.OrderID == m.OrderID })
}

func (e *end) forgetDead(name string) {
	e.Dead = slices.DeleteFunc(e.Dead, func(d sqstest.Message) bool { return d.Attributes[play.AttrName].Text == name })
}

// reopen makes an order one that was claimed and neither charged nor settled.
func (e *end) reopen(m play.Message) {
	e.forgetCharge(m)
	row := e.row(m)
	row.Settled, row.Status = false, order.Open
	row.Record.Status, row.Record.Seq, row.Record.Events = order.Open, 0, nil
}

// decline makes a row say declined, with a history to match.
func (e *end) decline(m play.Message) {
	row := e.row(m)
	row.Status, row.Record.Status, row.Record.Events[0].To = order.Declined, order.Declined, order.Declined
}

// flaw is one way in which a storm can end wrong, with the invariants and the figures that have to say so.
type flaw struct {
	claim, broken string
	by            func(*end)
	count         play.Count // what it adds to the figures
}

func TestTheBooksOfAStorm(t *testing.T) {
	t.Parallel()
	for _, tt := range slices.Concat(wrongMoney(), lostOrders(), wrongPapers()) {
		t.Run(tt.claim, func(t *testing.T) {
			t.Parallel()
			right, _, _ := play.Close(newEnd(t, 200).script, newEnd(t, 200).End)
			e := newEnd(t, 200)
			tt.by(e)
			got, checks, err := play.Close(e.script, e.End)
			if err != nil {
				t.Fatal(err)
			}
			var broken []string
			for _, c := range checks {
				if len(c.Broken) > 0 {
					broken = append(broken, c.ID)
				}
			}
			slices.Sort(broken)
			if names := strings.Join(broken, " "); names != tt.broken {
				t.Errorf("broken: %q, want %q\n%+v", names, tt.broken, checks)
			}
			if diff := cmp.Diff(minus(got, right), tt.count); diff != "" {
				t.Errorf("more than in a right end: - got, + want:\n%s", diff)
			}
		})
	}
}

// minus leaves out what is never counted here.
func minus(a, b play.Count) play.Count {
	return play.Count{
		ChargedTwice: a.ChargedTwice - b.ChargedTwice, WrongAmount: a.WrongAmount - b.WrongAmount, Lost: a.Lost - b.Lost,
		Stuck: a.Stuck - b.Stuck, Swallowed: a.Swallowed - b.Swallowed, BooksDiffer: a.BooksDiffer - b.BooksDiffer,
		ToldWrong: a.ToldWrong - b.ToldWrong, Settled: a.Settled - b.Settled, Parked: a.Parked - b.Parked,
		ExtraCharges: a.ExtraCharges - b.ExtraCharges,
	}
}

func wrongMoney() []flaw {
	return []flaw{
		{"a right end breaks nothing", "", func(*end) {}, play.Count{}},
		{
			"an order is charged twice", "I1", func(e *end) { e.charge(e.an(paidOrder)) },
			play.Count{ChargedTwice: 1, ExtraCharges: 1},
		},
		{"another sum is charged", "I2", func(e *end) { e.ledgerOf(e.an(paidOrder)).Amount++ }, play.Count{WrongAmount: 1}},
		{
			"a sum that nobody sent stands in the ledger and the row alike", "I2", func(e *end) {
				m := e.an(paidOrder)
				e.ledgerOf(m).Amount++
				e.row(m).Amount++
				e.row(m).Record.Total.Amount++
			},
			play.Count{WrongAmount: 1},
		},
		{
			"a row says paid and nothing was charged", "I4", func(e *end) { e.forgetCharge(e.an(paidOrder)) },
			play.Count{BooksDiffer: 1},
		},
		{
			"a charge is of an order that nobody sent", "I4", func(e *end) { e.charge(play.Message{OrderID: "storm-000200"}) },
			play.Count{},
		},
		{
			"what is no order is charged", "I2 I4", func(e *end) { e.charge(e.an(noOrder)) },
			play.Count{WrongAmount: 1},
		},
	}
}

func lostOrders() []flaw {
	return []flaw{
		{
			"a message and its row are gone", "I3", func(e *end) {
				e.forgetCharge(e.an(paidOrder))
				e.forgetRow(e.an(paidOrder))
			},
			play.Count{Settled: -1, Lost: 1},
		},
		{
			"a charged order has no row", "I2 I3 I4", func(e *end) { e.forgetRow(e.an(paidOrder)) },
			play.Count{Settled: -1, Lost: 1},
		},
		{"a message is gone and its row is open", "I3", func(e *end) { e.reopen(e.an(paidOrder)) }, play.Count{Settled: -1, Lost: 1}},
		{
			"a row is open after all retries and its message parked", "I11", func(e *end) {
				e.reopen(e.an(paidOrder))
				e.park(e.an(paidOrder), order.ReasonUnknown)
			},
			play.Count{Settled: -1, Stuck: 1, Parked: 1},
		},
		{"what is no order is gone", "I3", func(e *end) { e.forgetDead(e.an(noOrder).Name) }, play.Count{Lost: 1, Parked: -1}},
		{
			"a message is parked without a reason", "I3", func(e *end) {
				e.forgetDead(e.an(noOrder).Name)
				e.park(e.an(noOrder), "")
			},
			play.Count{Parked: -1},
		},
		{
			"a message is parked twice, the second time without a reason", "I3", func(e *end) { e.park(e.an(noOrder), "") },
			play.Count{Parked: -1},
		},
		{
			"a message is parked twice, the first time without a reason", "I3", func(e *end) {
				m := e.an(noOrder)
				e.forgetDead(m.Name)
				e.park(m, "")
				e.park(m, order.ReasonInvalid)
			},
			play.Count{Parked: -1},
		},
		{"a message is left in the queue", "I3", func(e *end) { e.Waiting = 1 }, play.Count{}},
		{
			"other content is acknowledged in silence", "I9", func(e *end) {
				e.forgetDead(strings.TrimSuffix(e.an(twoContents).Name, ".0") + ".1")
			},
			play.Count{Swallowed: 1, Parked: -1},
		},
	}
}

func wrongPapers() []flaw {
	return []flaw{
		{"a row is there twice", "I4", func(e *end) { e.Rows = append(e.Rows, e.Rows[0]) }, play.Count{}},
		{
			"a row is of an order beyond the script", "I4", func(e *end) { e.Rows = append(e.Rows, play.Row{OrderID: "storm-000200"}) },
			play.Count{},
		},
		{"a row has no id of the script", "I4", func(e *end) { e.Rows = append(e.Rows, play.Row{OrderID: "ORD-1"}) }, play.Count{}},
		{
			"a paid customer is told declined", "I15 I4", func(e *end) { e.decline(e.an(paidOrder)) },
			play.Count{BooksDiffer: 1, ToldWrong: 1},
		},
		{
			"a customer is told declined whom no bank has seen", "I15", func(e *end) {
				m := e.an(paidOrder)
				e.decline(m)
				e.forgetCharge(m)
				e.Intents["pi_"+m.OrderID] = stripetest.Intent{Status: stripetest.StatusRequiresConfirmation}
			},
			play.Count{ToldWrong: 1},
		},
		{
			"a customer is told declined who only has to confirm", "I15", func(e *end) {
				e.decline(e.an(func(m []play.Message) bool { return m[0].Ends == order.ActionRequired }))
			},
			play.Count{ToldWrong: 1},
		},
		{
			"a customer is told declined whose intent succeeded", "I15", func(e *end) {
				m := e.an(func(m []play.Message) bool { return m[0].Ends == order.Declined })
				e.Intents["pi_"+m.OrderID] = stripetest.Intent{Status: stripetest.StatusSucceeded}
			},
			play.Count{},
		},
		{
			"an event is missing", "I7 I8", func(e *end) { e.row(e.an(paidOrder)).Record.Events = nil },
			play.Count{},
		},
		{"the log holds a customer", "I13", func(e *end) { e.Leaks = []string{`{"error":"canary"}`} }, play.Count{}},
	}
}

func TestEveryInvariantIsListedAlsoIfNothingIsBroken(t *testing.T) {
	t.Parallel()
	e := newEnd(t, 200)
	_, checks, err := play.Close(e.script, e.End)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range checks {
		ids = append(ids, c.ID)
	}
	slices.Sort(ids)
	if got, want := strings.Join(ids, " "), "I1 I11 I13 I15 I2 I3 I4 I7 I8 I9"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestALargeTableIsComparedWhole(t *testing.T) {
	t.Parallel()
	e := newEnd(t, 2500)
	e.forgetRow(e.script.Messages(2499)[0])
	got, _, err := play.Close(e.script, e.End)
	if err != nil || got.Orders < 2400 || got.Lost != 1 || got.Settled != got.Orders-1 {
		t.Errorf("%+v, %v, want every order settled but the one that is lost", got, err)
	}
}

func TestATableThatCannotBeReadIsNoEmptyOne(t *testing.T) {
	t.Parallel()
	e := newEnd(t, 10)
	e.Unread = errors.New("no answer")
	if _, _, err := play.Close(e.script, e.End); !errors.Is(err, e.Unread) {
		t.Errorf("error = %v, want the table's", err)
	}
}

func TestAnotherHandlerHasPromisedNoInvariant(t *testing.T) {
	t.Parallel()
	e := newEnd(t, 200)
	e.Ours = false
	e.charge(e.an(paidOrder))
	e.Rows, e.Leaks = append(e.Rows, play.Row{OrderID: "ORD-1"}), []string{"canary"}
	got, checks, err := play.Close(e.script, e.End)
	if err != nil || checks != nil || got.ChargedTwice != 1 {
		t.Errorf("%+v, %+v, %v, want one order charged twice and no check", got, checks, err)
	}
}
