package run

import (
	"fmt"
	"math/rand/v2"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
)

// fate is what happens to an order beside its messages.
type fate struct {
	// loses means that its worker is killed and its message is deleted as soon as Stripe
	// has an outcome, so that only a webhook or the function of the schedule can settle
	// it. An order with several messages keeps them.
	loses bool
	// byBank means that it is paid by bank, which takes days.
	byBank bool
	// ends is how a payment ends that waits for the bank: Paid, Declined, or "" if it
	// still waits at the end. A customer who must authenticate does so if it is Paid.
	ends order.Status
}

const (
	lostShare   = 0.03 // of all orders
	bankShare   = 0.03
	paidShare   = 0.5 // of the orders that wait for the customer or the bank
	bounceShare = 0.25
)

const (
	messageDice = iota
	fateDice
	webhookDice
	refundDice
	cancelDice
	madeDice
	httpDice
	stockDice
)

// dice returns dice of a kind for a number. The same Workload always rolls the same. Dice
// of their own leave the messages as they are without what the dice decide.
func (s Workload) dice(kind, n int) *rand.Rand {
	return rand.New(rand.NewPCG(s.Seed, uint64(kind)<<40|uint64(n))) //nolint:gosec // it must be reproducible
}

func (s Workload) fate(n int) fate {
	dice := s.dice(fateDice, n)
	f := fate{loses: dice.Float64() < lostShare, byBank: dice.Float64() < bankShare}
	switch roll := dice.Float64(); {
	case roll < paidShare:
		f.ends = order.Paid
	case roll < paidShare+bounceShare:
		f.ends = order.Declined
	}
	return f
}

func (d *draft) live(f fate) {
	if f.byBank && d.want == order.Paid {
		d.method, d.want = "pm_usBankAccount_processing", order.Pending
	}
	d.waits = d.want == order.Pending || d.want == order.ActionRequired
	switch {
	case d.want == order.Pending && f.ends != "", d.want == order.ActionRequired && f.ends == order.Paid:
		d.want = f.ends
	}
}

// loses reports whether an order loses its only message.
func (s Workload) loses(n int) bool {
	messages := s.messages(n)
	return s.fate(n).loses && len(messages) == 1 && messages[0].content == original
}

// moment is when an operator cancels an order: as a call for it arrives at Stripe, or
// when Stripe has executed the call.
type moment struct {
	call   stripetest.Endpoint // "": the order is not canceled
	before bool
}

const canceledShare = 0.02

// cancels returns when an operator cancels an order: before or after its intent is
// created, or before or after it is confirmed.
func (s Workload) cancels(n int) (m moment) {
	dice := s.dice(cancelDice, n)
	if !s.Later || dice.Float64() >= canceledShare {
		return moment{}
	}
	if m = (moment{stripetest.Create, dice.IntN(2) == 0}); dice.IntN(2) == 0 {
		m.call = stripetest.Confirm
	}
	return m
}

const (
	httpShare = 0.2
	// scarceShare is the share of the orders for stock of which there are half as many as
	// are ordered.
	scarceShare = 0.02
	// kinds is the number of other stock, and scarceKinds of scarce ones: so many that few
	// transactions meet at one.
	kinds       = 200
	scarceKinds = 4
	plenty      = 1_000_000
)

// byHTTP reports whether an order is put by HTTP, and not sent to the queue.
func (s Workload) byHTTP(n int) bool {
	messages := s.messages(n)
	return s.Later && len(messages) == 1 && messages[0].content == original && !s.loses(n) &&
		s.dice(httpDice, n).Float64() < httpShare
}

// scarce reports whether there may be nothing left of what an order buys.
func (s Workload) scarce(n int) bool { return s.Later && s.dice(stockDice, n).Float64() < scarceShare }

func (s Workload) sku(n int) string {
	if s.scarce(n) {
		return fmt.Sprintf("LAST-%d", n%scarceKinds)
	}
	return fmt.Sprintf("TSHIRT-%d", n%kinds)
}

func (s Workload) stock() map[string]int64 {
	all := map[string]int64{}
	for n := range kinds {
		all[fmt.Sprintf("TSHIRT-%d", n)] = plenty
	}
	for n := range s.Orders {
		if s.scarce(n) {
			all[s.sku(n)]++ // an order buys two on average
		}
	}
	return all
}

// deliveries plans the webhooks of an event: most come once and at once, some are lost,
// some come twice, and some up to two days late.
func (s Workload) deliveries(e stripetest.Event) []time.Duration {
	dice := s.dice(webhookDice, e.Number)
	late := time.Duration(dice.Int64N(int64(48 * time.Hour)))
	switch dice.IntN(10) {
	case 0, 1:
		return nil
	case 2:
		return []time.Duration{0, late}
	case 3:
		return []time.Duration{late}
	}
	return []time.Duration{0}
}
