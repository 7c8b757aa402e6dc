package prove

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
)

// Invariant is a promise of docs/design.md, by its number there.
type Invariant string

// The invariants that a world can see, the gravest first.
const (
	ChargedOnce      Invariant = "I1"  // at most one successful charge per order, for ever
	ChargedAmount    Invariant = "I2"  // the charge is the claimed amount and currency
	ConflictParked   Invariant = "I9"  // same id, other content: never charged, always parked, the first order untouched
	NoFalseDecline   Invariant = "I15" // nobody is told "declined" for money that moved or for a bank that wants the customer
	BooksAgree       Invariant = "I4"  // at rest, table and ledger agree both ways
	AckedWhenDurable Invariant = "I5"  // nothing is acknowledged before what justifies it is durable
	AsDrawn          Invariant = "I7"  // transitions only as drawn
	OneEventEach     Invariant = "I8"  // exactly one event row per transition out of a state
	EverythingEnds   Invariant = "I3"  // every message ends in a settled order or is parked with a reason
	SettlesSoon      Invariant = "I11" // with faults off, everything settles within two deliveries and one lease
)

// Invariants lists every invariant that a world can see, the gravest first.
func Invariants() []Invariant {
	return []Invariant{
		ChargedOnce, ChargedAmount, ConflictParked, NoFalseDecline, BooksAgree,
		AckedWhenDurable, AsDrawn, OneEventEach, EverythingEnds, SettlesSoon,
	}
}

// Violation is a broken promise.
type Violation struct {
	Invariant Invariant
	Order     order.ID
	Detail    string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s broken for order %s: %s", v.Invariant, v.Order, v.Detail)
}

// mostCalm is how many deliveries without any fault a message may need.
const mostCalm = 2

// oracle watches a world. It keeps the first promise that was broken.
type oracle struct {
	broken *Violation
	orders []*watched
	calm   map[string]int // by message id: deliveries since the last fault
	dead   map[int]bool   // messages that were parked, by their place in the case
}

// watched is what the oracle remembers of one order.
type watched struct {
	id          order.ID
	claimed     *Message // whose content the first claim took
	fingerprint order.Fingerprint
	status      order.Status
	changes     int
}

func newOracle(all []Message) oracle {
	o := oracle{calm: map[string]int{}, dead: map[int]bool{}}
	for _, m := range all {
		if !slices.ContainsFunc(o.orders, func(x *watched) bool { return x.id == m.ID }) {
			o.orders = append(o.orders, &watched{id: m.ID, status: order.Open})
		}
	}
	return o
}

func (o *oracle) must(ok bool, i Invariant, id order.ID, format string, args ...any) {
	if !ok && o.broken == nil {
		o.broken = &Violation{i, id, fmt.Sprintf(format, args...)}
	}
}

// disturbed tells that something unusual happened.
func (o *oracle) disturbed() { clear(o.calm) }

func (o *oracle) delivered(w *World, m sqstest.Message) {
	o.calm[m.ID]++
	id := w.Messages[w.numbers[m.ID]].ID
	o.must(o.calm[m.ID] <= mostCalm, SettlesSoon, id, "nothing went wrong any more, and yet delivery %d was needed", m.Receives)
}

// acknowledged is asked before a message is forgotten.
func (o *oracle) acknowledged(w *World, number int) {
	m := w.Messages[number]
	x := o.of(m.ID)
	r, known := w.row(m.ID)
	o.must(x.claimed == nil || *x.claimed == m, ConflictParked, m.ID,
		"message %d has other content and was acknowledged, not parked", number+1)
	o.must(known && r.Status != order.Open, AckedWhenDurable, m.ID,
		"message %d was acknowledged although the row is not settled", number+1)
}

func (o *oracle) parked(w *World, number int, why order.Reason) {
	id := w.Messages[number].ID
	o.dead[number] = true
	o.must(why != "", EverythingEnds, id, "message %d was parked without a reason", number+1)
}

func (o *oracle) of(id order.ID) *watched {
	return o.orders[slices.IndexFunc(o.orders, func(x *watched) bool { return x.id == id })]
}

// afterStep checks what must hold at every moment.
func (o *oracle) afterStep(w *World) {
	for _, x := range o.orders {
		r, known := w.row(x.id)
		if known && x.claimed == nil {
			x.claimed, x.fingerprint = &w.Messages[w.acting], r.Fingerprint
		}
		o.money(w, x)
		if known {
			o.record(w, x, r)
		}
	}
}

func (o *oracle) money(w *World, x *watched) {
	charges := w.stripe.Charges(string(x.id))
	o.must(len(charges) <= 1, ChargedOnce, x.id, "%d successful charges", len(charges))
	for _, c := range charges {
		o.must(x.claimed != nil, BooksAgree, x.id, "money moved without a row")
		o.must(x.claimed == nil || c.Amount == x.claimed.amount() && c.Currency == "usd",
			ChargedAmount, x.id, "%d %s were charged for something that costs another sum", c.Amount, c.Currency)
	}
}

func (o *oracle) record(w *World, x *watched, r order.Record) {
	o.must(r.Fingerprint == x.fingerprint, ConflictParked, x.id, "other content took over the row")
	o.must(r.Total.Amount == x.claimed.amount(), ConflictParked, x.id, "the row's amount is not the first message's")
	if r.Status != x.status {
		o.must(drawn(x.status, r.Status), AsDrawn, x.id, "it went from %s to %s", x.status, r.Status)
		x.changes++
		if r.Status == order.Declined {
			o.decline(w, x.id, r)
		}
		o.must(len(r.Events) == x.changes && lastIs(r.Events, x.status, r.Status), OneEventEach, x.id,
			"change %d was from %s to %s, and the events are %v", x.changes, x.status, r.Status, r.Events)
		x.status = r.Status
	}
	o.must(len(r.Events) == x.changes && r.Seq == x.changes, OneEventEach, x.id, "%d changes, %d events", x.changes, len(r.Events))
}

// decline is asked when the row begins to say "declined".
func (o *oracle) decline(w *World, id order.ID, r order.Record) {
	i := w.stripe.Intent(string(r.Intent))
	o.must(len(w.stripe.Charges(string(id))) == 0, NoFalseDecline, id, "it is told declined, and the money moved")
	o.must(i != nil && i.LastError != nil && i.LastError.DeclineCode != "authentication_required",
		NoFalseDecline, id, "it is told declined, and no bank has declined it")
}

// drawn is the drawing of docs/design.md, once more.
func drawn(from, to order.Status) bool {
	return slices.Contains([]string{
		"open paid", "open declined", "open canceled", "open action_required", "open pending",
		"action_required paid", "action_required declined", "action_required canceled",
		"pending paid", "pending declined", "declined paid", "paid refunded",
	}, string(from)+" "+string(to))
}

func lastIs(events []order.Event, from, to order.Status) bool {
	n := len(events)
	return n > 0 && events[n-1].Seq == n && events[n-1].From == from && events[n-1].To == to
}

// atRest checks what must hold once nothing is left to do.
func (o *oracle) atRest(w *World) {
	counts := must1(w.queue.Counts(w.now, orders))
	o.must(counts.Expired == 0 && counts.DeadLettered == 0, EverythingEnds, w.Messages[0].ID, "the queue lost a message: %+v", counts)
	for number, m := range w.Messages {
		x := o.of(m.ID)
		o.must(o.dead[number] || x.status != order.Open, EverythingEnds, m.ID, "message %d is gone and the order is open", number+1)
		o.must(x.claimed == nil || *x.claimed == m || o.dead[number], ConflictParked, m.ID,
			"message %d has other content and was not parked", number+1)
		o.books(w, m.ID)
	}
}

// books compares the row with Stripe's intent and ledger, both ways.
func (o *oracle) books(w *World, id order.ID) {
	r, _ := w.row(id)
	said, moved := order.Open, len(w.stripe.Charges(string(id)))
	if i := w.stripe.Intent(string(r.Intent)); i != nil {
		said = saidBy(i)
	}
	o.must(cmp.Or(r.Status, order.Open) == said, BooksAgree, id, "the row says %s and Stripe says %s", r.Status, said)
	o.must((r.Status == order.Paid) == (moved == 1), BooksAgree, id, "the row says %s and there are %d charges", r.Status, moved)
}

// saidBy is what an intent means to a customer.
func saidBy(i *stripetest.Intent) order.Status {
	switch i.Status {
	case stripetest.StatusSucceeded:
		return order.Paid
	case stripetest.StatusProcessing:
		return order.Pending
	case stripetest.StatusCanceled:
		return order.Canceled
	case stripetest.StatusRequiresAction:
		return order.ActionRequired
	case stripetest.StatusRequiresConfirmation:
		return order.Open
	case stripetest.StatusRequiresPaymentMethod:
		switch {
		case i.LastError == nil:
			return order.Open
		case i.LastError.DeclineCode == "authentication_required":
			return order.ActionRequired
		}
		return order.Declined
	}
	return ""
}

// row is an order's record, and whether there is one.
func (w *World) row(id order.ID) (r order.Record, known bool) {
	r, err := w.store.Load(context.Background(), id)
	if errors.Is(err, order.ErrNotFound) {
		return r, false
	}
	must(err)
	return r, true
}
