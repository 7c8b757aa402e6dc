package run_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/lab/storm/run"
)

// newRefundEnd returns the correct end of a storm in which every order may get refunds:
// the messages for them arrived one after the other, after the orders.
func newRefundEnd(t *testing.T) *end {
	t.Helper()
	e := newEndOf(t, run.Workload{Seed: 7, Orders: 200, Later: true, Refunded: 1, Resent: 1})
	for n := range e.workload.Orders {
		for _, m := range e.workload.RefundMessages(n) {
			e.refund(m)
		}
	}
	return e
}

// refund makes or parks a refund, as the product does.
func (e *end) refund(m run.RefundMessage) {
	o := e.row(run.Message{OrderID: m.OrderID}).Order
	known := slices.ContainsFunc(o.Refunds, func(i refund.Item) bool { return i.ID == m.ID })
	dead := run.Message{Name: m.Name}
	switch {
	case known && m.Conflicting:
		e.park(dead, order.ReasonConflict)
	case known:
	case o.Status == order.Declined:
		e.park(dead, refund.ReasonNotCharged)
	case m.Amount > o.Left:
		e.park(dead, refund.ReasonExceeds)
	default:
		e.make(m)
	}
}

// make makes a refund and records it.
func (e *end) make(m run.RefundMessage) {
	row := e.row(run.Message{OrderID: m.OrderID})
	o := row.Order
	stripeID := "re_" + m.OrderID + "_" + string(m.ID)
	e.Refunds = append(e.Refunds, &stripetest.Refund{
		ID: stripeID, Amount: m.Amount, Currency: string(o.Total.Currency), Status: stripetest.RefundSucceeded,
		Metadata: map[string]string{"orderId": m.OrderID, "refundId": string(m.ID)},
	})
	o.Refunds = append(o.Refunds, refund.Item{
		ID: m.ID, Amount: m.Amount, Reason: refund.RequestedByCustomer, Status: refund.Succeeded, Refund: refund.ProviderID(stripeID),
	})
	o.Left -= m.Amount
	before := o.Status
	if o.Status = order.PartiallyRefunded; o.Left <= 0 {
		o.Status = order.Refunded
	}
	row.Status = o.Status
	o.Seq++
	o.Events = append(o.Events, order.Event{
		Seq: o.Seq, From: before, To: o.Status,
		Refund: order.RefundEvent{ID: string(m.ID), Status: string(refund.Succeeded), Amount: m.Amount},
	})
}

// refunded returns the messages for refunds of the first paid order that fit.
func (e *end) refunded(fits func([]run.RefundMessage) bool) []run.RefundMessage {
	e.t.Helper()
	for n := range e.workload.Orders {
		all := e.workload.RefundMessages(n)
		if len(all) > 0 && e.workload.Messages(n)[0].Want == order.Paid && fits(all) {
			return all
		}
	}
	e.t.Fatal("no order of the workload fits")
	return nil
}

// parts returns whether an order has so many refunds, none with another content.
func parts(n int) func([]run.RefundMessage) bool {
	return func(all []run.RefundMessage) bool {
		conflicting := func(m run.RefundMessage) bool { return m.Conflicting }
		return len(all) == 3*n && !slices.ContainsFunc(all, conflicting)
	}
}

// at returns the row, the first item and Stripe's refund of an order.
func (e *end) at(m run.RefundMessage) (row *run.Row, i *refund.Item, made *stripetest.Refund) {
	row = e.row(run.Message{OrderID: m.OrderID})
	n := slices.IndexFunc(e.Refunds, func(r *stripetest.Refund) bool { return r.Metadata["orderId"] == m.OrderID })
	return row, &row.Order.Refunds[0], e.Refunds[n]
}

// call calls the only refund of an order something, with an event.
func (e *end) call(m run.RefundMessage, s refund.Status) {
	row, i, _ := e.at(m)
	i.Status, i.Refund = s, ""
	row.Order.Seq++
	row.Order.Events = append(row.Order.Events, order.Event{
		Seq: row.Order.Seq, From: row.Status, To: row.Status,
		Refund: order.RefundEvent{ID: string(m.ID), Status: string(s), Amount: m.Amount},
	})
}

func TestTheAuditReadsRefunds(t *testing.T) {
	t.Parallel()
	for _, tt := range []violation{
		{claim: "a correct end has no violation", change: func(*end) {}},
		{claim: "a refund is made twice", broken: "I18 I19", change: func(e *end) {
			_, _, made := e.at(e.refunded(parts(3))[0])
			again := *made
			again.ID = "re_again"
			e.Refunds = append(e.Refunds, &again)
		}},
		{claim: "a refund is of an unknown order", broken: "I19", change: func(e *end) {
			e.Refunds = append(e.Refunds, &stripetest.Refund{ID: "re_outside", Amount: 1, Status: stripetest.RefundSucceeded})
		}},
		{claim: "a refund of more than is left is acknowledged", broken: "I3", change: func(e *end) {
			e.removeDead(e.refunded(parts(4))[9].Name)
		}},
	} {
		t.Run(tt.claim, func(t *testing.T) {
			t.Parallel()
			e := newRefundEnd(t)
			tt.change(e)
			_, checks, err := run.Audit(e.workload, e.End)
			must(t, err)
			if got := brokenOf(checks); got != tt.broken {
				t.Errorf("got broken invariants %q, want %q\n%+v", got, tt.broken, checks)
			}
		})
	}
}

func TestRefundsAreCounted(t *testing.T) {
	t.Parallel()
	e := newRefundEnd(t)
	correct, err := run.CountRefunds(e.workload, e.End)
	must(t, err)
	if correct.Made < 300 || correct.Exceeding < 20 || correct.NotCharged < 10 ||
		correct.Asked != correct.Made+correct.Exceeding+correct.NotCharged || correct.Messages != 3*correct.Asked {
		t.Errorf("got %+v, want every refund made, exceeding or not charged, in three messages", correct)
	}
	m := e.refunded(parts(1))[0]
	_, _, made := e.at(m)
	again := *made
	again.ID = "re_again"
	e.Refunds = append(e.Refunds, &again)
	e.call(e.refunded(parts(3))[0], refund.Refused)
	e.call(e.refunded(parts(6))[0], refund.Unknown)
	e.row(e.first(paidOrder)).Order.Status = order.Canceled
	got, err := run.CountRefunds(e.workload, e.End)
	must(t, err)
	want := correct
	want.Doubled, want.Refused, want.Unknown, want.Canceled = 1, 1, 1, 1
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}
