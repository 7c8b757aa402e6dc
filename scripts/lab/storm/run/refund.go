package run

import (
	"fmt"
	"strconv"

	"orderonce/domain/refund"
)

type refundMessage struct {
	order, number int // number counts the messages for refunds of its order
	id            refund.ID
	amount        int64
	reason        refund.Reason
	early         bool // sent before the order's own messages, and not a wave later
}

func (m refundMessage) name() string {
	return strconv.Itoa(m.order) + refundNames + strconv.Itoa(m.number)
}

// refundNames is in the name of every message for a refund, and in no other name.
const refundNames = ".refund-"

func (m refundMessage) body() string {
	return fmt.Sprintf(`{"type":"refund","orderId":%q,"refundId":%q,"amount":%d,"reason":%q}`,
		orderID(m.order), m.id, m.amount, m.reason)
}

const (
	// copies is how often a refund is sent, unless it is sent once.
	copies = 3
	// earlyShare is the share of the messages that are sent before the order.
	earlyShare = 0.2
	// resent is the share of the refunds that are sent so often.
	resent = 0.5
	// otherShare is the share of the refunds whose last copy has another content.
	otherShare = 0.1
)

// refundPlans are the refunds of an order, in percent of its total: all of it; a big part
// and two small ones; small parts; and more than the total, so that one part exceeds what
// is left.
func refundPlans() [][]int64 {
	return [][]int64{{100}, {60, 15, 15}, {10, 10, 10, 10, 10, 10}, {30, 30, 30, 30}}
}

// refunds returns the messages for refunds of an order. Three kinds of orders have none,
// because it depends on the moment whether such a refund is made: one that waits for
// customer or bank, one with a conflicting duplicate, and one that loses its message on
// the last day.
func (s Workload) refunds(n int) (all []refundMessage) {
	dice := s.dice(refundDice, n)
	if !s.Later || dice.Float64() >= s.Refunded || n >= s.lastDay() && s.loses(n) {
		return nil
	}
	of := s.messages(n)
	for _, m := range of {
		if m.content != original || m.waits {
			return nil
		}
	}
	step, plan := of[0].total.Currency.Step(), refundPlans()[dice.IntN(len(refundPlans()))]
	for part, percent := range plan {
		m := refundMessage{order: n, id: refund.ID(fmt.Sprintf("part-%d", part+1))}
		m.reason, m.amount = refund.RequestedByCustomer, of[0].total.Amount*percent/100
		m.amount -= m.amount % step
		sent := 1
		if dice.Float64() < resent {
			sent = copies
		}
		differs := sent > 1 && dice.Float64() < otherShare
		for copied := range sent {
			m.number, m.early = len(all), dice.Float64() < earlyShare
			if differs && copied == sent-1 {
				m.amount += step
			}
			all = append(all, m)
		}
	}
	return all
}
