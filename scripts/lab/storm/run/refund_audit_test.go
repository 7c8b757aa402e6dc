package run_test

import (
	"slices"
	"strings"
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
		ID: stripeID, Amount: m.Amount, Status: stripetest.RefundSucceeded,
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

func conflictingRefund(all []run.RefundMessage) bool { return all[2].Conflicting }

// at returns the row, the first item, the last event and Stripe's refund of an order.
func (e *end) at(m run.RefundMessage) (row *run.Row, i *refund.Item, last *order.Event, made *stripetest.Refund) {
	row = e.row(run.Message{OrderID: m.OrderID})
	n := slices.IndexFunc(e.Refunds, func(r *stripetest.Refund) bool { return r.Metadata["orderId"] == m.OrderID })
	return row, &row.Order.Refunds[0], &row.Order.Events[len(row.Order.Events)-1], e.Refunds[n]
}

// unmake removes the only refund of an order at Stripe and its event.
func (e *end) unmake(m run.RefundMessage) {
	row, _, _, made := e.at(m)
	e.Refunds = slices.DeleteFunc(e.Refunds, func(r *stripetest.Refund) bool { return r == made })
	row.Status, row.Order.Status, row.Order.Seq = order.Paid, order.Paid, 1
	row.Order.Events = row.Order.Events[:1]
}

// call calls the only refund of an order something, with an event.
func (e *end) call(m run.RefundMessage, s refund.Status) {
	row, i, _, _ := e.at(m)
	i.Status, i.Refund = s, ""
	row.Order.Seq++
	row.Order.Events = append(row.Order.Events, order.Event{
		Seq: row.Order.Seq, From: row.Status, To: row.Status,
		Refund: order.RefundEvent{ID: string(m.ID), Status: string(s), Amount: m.Amount},
	})
}

func TestAuditFindsEachViolationOfARefund(t *testing.T) {
	t.Parallel()
	for _, tt := range slices.Concat(wrongSums(), wrongCalls(), wrongMessages()) {
		t.Run(tt.claim, func(t *testing.T) {
			t.Parallel()
			e := newRefundEnd(t)
			tt.change(e)
			_, checks, err := run.Audit(e.workload, e.End)
			must(t, err)
			var broken []string
			for _, c := range checks {
				if len(c.Broken) > 0 {
					broken = append(broken, c.ID)
				}
			}
			slices.Sort(broken)
			if names := strings.Join(broken, " "); names != tt.broken {
				t.Errorf("got broken invariants %q, want %q\n%+v", names, tt.broken, checks)
			}
		})
	}
}

func wrongSums() []violation {
	return []violation{
		{claim: "a correct end has no violation", change: func(*end) {}},
		{claim: "a refund is made twice, and the row shows the second as outside", broken: "I18", change: func(e *end) {
			m := e.refunded(parts(3))[3]
			row, _, last, made := e.at(m)
			again := *made
			again.ID, again.Metadata, again.Amount = "re_again", map[string]string{"orderId": m.OrderID, "refundId": string(m.ID)}, 1
			e.Refunds = append(e.Refunds, &again)
			row.Order.Outside, row.Order.Left, row.Order.Seq = 1, row.Order.Left-1, row.Order.Seq+1
			outside := order.RefundEvent{Status: order.RefundedOutside, Amount: 1}
			row.Order.Events = append(row.Order.Events, order.Event{Seq: last.Seq + 1, From: last.To, To: last.To, Refund: outside})
		}},
		{claim: "a refund is made twice, and the row shows one", broken: "I18 I19", change: func(e *end) {
			_, _, _, made := e.at(e.refunded(parts(3))[0])
			again := *made
			again.ID = "re_again"
			e.Refunds = append(e.Refunds, &again)
		}},
		{claim: "one counts of two with an id, the other failed", change: func(e *end) {
			_, _, _, made := e.at(e.refunded(parts(3))[0])
			again := *made
			again.ID, again.Status = "re_again", stripetest.RefundFailed
			e.Refunds = append(e.Refunds, &again)
		}},
		{claim: "more goes back than was charged", broken: "I19", change: func(e *end) {
			e.make(run.RefundMessage{OrderID: e.refunded(parts(1))[0].OrderID, ID: "part-9", Amount: 1})
		}},
		{claim: "an order shows the wrong status after a refund", broken: "I19", change: func(e *end) {
			row, _, last, _ := e.at(e.refunded(parts(1))[0])
			row.Status, row.Order.Status, last.To = order.PartiallyRefunded, order.PartiallyRefunded, order.PartiallyRefunded
		}},
		{claim: "a row reserves what nobody asked for", broken: "I19", change: func(e *end) {
			row, _, _, _ := e.at(e.refunded(parts(3))[0])
			row.Order.Left--
		}},
		{claim: "a row shows money outside that Stripe did not give back", broken: "I19", change: func(e *end) {
			row, _, _, _ := e.at(e.refunded(parts(3))[0])
			row.Order.Outside, row.Order.Left = 1, row.Order.Left-1
		}},
		{claim: "a refund is of an unknown order", broken: "I19", change: func(e *end) {
			e.Refunds = append(e.Refunds, &stripetest.Refund{ID: "re_outside", Amount: 1, Status: stripetest.RefundSucceeded})
		}},
		{claim: "an order is canceled and charged", broken: "I15 I4", change: func(e *end) {
			m := e.first(func(m []run.Message) bool { return paidOrder(m) && len(e.row(m[0]).Order.Refunds) == 0 })
			row := e.row(m)
			row.Status, row.Order.Status, row.Order.Events[0].To = order.Canceled, order.Canceled, order.Canceled
		}},
		{claim: "an order is canceled and charged, and an operator canceled it", broken: "I4", change: func(e *end) {
			*e = *newEndOf(e.t, run.Workload{Seed: 7, Orders: 400, Later: true})
			m := e.first(func(m []run.Message) bool {
				call, _ := e.workload.Cancels(m[0].Number)
				return call != "" && paidOrder(m)
			})
			row := e.row(m)
			row.Status, row.Order.Status, row.Order.Events[0].To = order.Canceled, order.Canceled, order.Canceled
		}},
	}
}

func wrongCalls() []violation {
	return []violation{
		{claim: "a refund is called made, and Stripe has none", broken: "I19 I20", change: func(e *end) {
			_, _, _, made := e.at(e.refunded(parts(1))[0])
			e.Refunds = slices.DeleteFunc(e.Refunds, func(r *stripetest.Refund) bool { return r == made })
		}},
		{claim: "a refund is called succeeded, and Stripe has it pending", broken: "I20", change: func(e *end) {
			_, _, _, made := e.at(e.refunded(parts(1))[0])
			made.Status = stripetest.RefundPending
		}},
		{claim: "two refunds of one amount name each other's at Stripe", broken: "I20", change: func(e *end) {
			row, _, _, _ := e.at(e.refunded(parts(3))[0])
			second, third := &row.Order.Refunds[1], &row.Order.Refunds[2]
			second.Refund, third.Refund = third.Refund, second.Refund
		}},
		{claim: "a refund is called refused, and Stripe has made it", broken: "I19 I20", change: func(e *end) {
			m := e.refunded(parts(1))[0]
			_, _, last, _ := e.at(m)
			last.Refund.Status = string(refund.Unknown)
			e.call(m, refund.Refused)
		}},
		{claim: "a row lacks a refund that Stripe has made", broken: "I19 I20", change: func(e *end) {
			row, _, _, _ := e.at(e.refunded(parts(3))[0])
			row.Order.Refunds = row.Order.Refunds[1:]
		}},
		{claim: "an event repeats the status of its refund", broken: "I20", change: func(e *end) {
			row, _, last, _ := e.at(e.refunded(parts(1))[0])
			again := *last
			again.From, again.Seq, row.Order.Seq = last.To, last.Seq+1, last.Seq+1
			row.Order.Events = append(row.Order.Events, again)
		}},
		{claim: "an event has another amount", broken: "I20", change: func(e *end) {
			_, _, last, _ := e.at(e.refunded(parts(1))[0])
			last.Refund.Amount++
		}},
		{claim: "the event of a refund is missing", broken: "I20 I7 I8", change: func(e *end) {
			row, _, _, _ := e.at(e.refunded(parts(1))[0])
			row.Order.Events = row.Order.Events[:1]
		}},
		{claim: "a refund is open at the end", broken: "I21", change: func(e *end) {
			m := e.refunded(parts(1))[0]
			_, i, _, _ := e.at(m)
			e.unmake(m)
			i.Status, i.Refund = refund.Open, ""
		}},
	}
}

func wrongMessages() []violation {
	unknown := func(e *end) []run.RefundMessage {
		all := e.refunded(parts(1))
		row, i, _, _ := e.at(all[0])
		e.unmake(all[0])
		i.Status, i.Refund, row.Order.Seq = refund.Unknown, "", 2
		row.Order.Events = append(row.Order.Events, order.Event{
			Seq: 2, From: order.Paid, To: order.Paid,
			Refund: order.RefundEvent{ID: string(i.ID), Status: string(refund.Unknown), Amount: i.Amount},
		})
		return all
	}
	return []violation{
		{claim: "an unknown refund whose messages are parked is correct", change: func(e *end) {
			for _, m := range unknown(e) {
				e.park(run.Message{Name: m.Name}, refund.ReasonUnknown)
			}
		}},
		{claim: "the messages of an unknown refund are acknowledged", broken: "I20", change: func(e *end) { unknown(e) }},
		{claim: "another content under a known id is acknowledged", broken: "I20", change: func(e *end) {
			e.removeDead(e.refunded(conflictingRefund)[2].Name)
		}},
		{claim: "another content under a known id is parked with another reason", broken: "I20", change: func(e *end) {
			name := e.refunded(conflictingRefund)[2].Name
			e.removeDead(name)
			e.park(run.Message{Name: name}, refund.ReasonExceeds)
		}},
		{claim: "a refund of more than is left is acknowledged", broken: "I20", change: func(e *end) {
			e.removeDead(e.refunded(parts(4))[9].Name)
		}},
		{claim: "a refund that would fit is parked as too much", broken: "I20", change: func(e *end) {
			all := e.refunded(parts(1))
			row, _, _, _ := e.at(all[0])
			e.unmake(all[0])
			row.Order.Refunds, row.Order.Left = nil, row.Order.Total.Amount
			for _, m := range all {
				e.park(run.Message{Name: m.Name}, refund.ReasonExceeds)
			}
		}},
		{claim: "a refund of an order that was not charged is acknowledged", broken: "I20", change: func(e *end) {
			for n := range e.workload.Orders {
				all := e.workload.RefundMessages(n)
				if len(all) > 0 && e.workload.Messages(n)[0].Want == order.Declined {
					e.removeDead(all[0].Name)
					return
				}
			}
			e.t.Fatal("no order is declined")
		}},
		{claim: "the message of a made refund is left in the dead-letter queue", broken: "I20", change: func(e *end) {
			e.park(run.Message{Name: e.refunded(parts(1))[0].Name}, "")
		}},
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
	_, _, _, made := e.at(m)
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
