package simulation

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
)

// Invariant is a promise of docs/design.md, by its number there.
type Invariant string

// The invariants that a world can see, the gravest first. I13 is about logs.
const (
	ChargedOnce      Invariant = "I1"  // at most one successful charge per order, for ever
	ChargedAmount    Invariant = "I2"  // the charge is the claimed amount and currency
	ConflictParked   Invariant = "I9"  // same id, other content: never charged, always parked, the first order untouched
	NoFalseDecline   Invariant = "I15" // nobody is told "declined" for money that moved or for a bank that wants the customer
	BooksAgree       Invariant = "I4"  // at rest, table and ledger agree both ways
	AckedWhenDurable Invariant = "I5"  // nothing is acknowledged before what justifies it is durable
	AsAllowed        Invariant = "I7"  // transitions only as the diagram allows
	OneEventEach     Invariant = "I8"  // exactly one event row per transition out of a state
	NeighborsApart   Invariant = "I10" // a poison message never delays or repeats its neighbors
	AllAnswered      Invariant = "I6"  // received = acknowledged + redelivered + parked
	EverythingEnds   Invariant = "I3"  // every message ends in a settled order or is parked with a reason
	SettlesSoon      Invariant = "I11" // with faults off, everything settles within two deliveries and one lease
	CheapDuplicate   Invariant = "I12" // a duplicate of a settled order costs one call to the store and none to Stripe
	SameHistory      Invariant = "I14" // the same seed gives the same history
)

// Invariants lists every invariant that a world can see, the gravest first.
func Invariants() []Invariant {
	return []Invariant{
		ChargedOnce, ChargedAmount, ConflictParked, NoFalseDecline, BooksAgree,
		AckedWhenDurable, AsAllowed, OneEventEach, NeighborsApart, AllAnswered,
		EverythingEnds, SettlesSoon, CheapDuplicate, SameHistory,
	}
}

// Violation is a broken promise.
type Violation struct {
	Invariant Invariant
	Order     order.ID
	Detail    string
}

// String is the violation in one line, in the form that guards/break reads.
func (v Violation) String() string {
	return fmt.Sprintf("%s broken for order %s: %s", v.Invariant, v.Order, v.Detail)
}

// mostCalm is how many deliveries without any fault a message may need.
const mostCalm = 2

// oracle watches a world. It keeps the first promise that was broken.
type oracle struct {
	broken  *Violation
	orders  []*watched
	calm    map[string]int // by message id: deliveries since the last fault
	audited int            // lines of the ledger
	owners  []string       // of every claim

	noticed     *Violation // the first promise that a row or a call broke
	noticedAt   int        // how much of the history tells of it
	noticedStep int
}

// watched is what the oracle remembers of one order.
type watched struct {
	id          order.ID
	claimed     *Message // whose content the first claim took
	fingerprint string
	row         order.Record // after the last step
	status      order.Status
	changes     int
	touched     bool           // somebody outside changed its intent, and no operator has asked since
	outside     bool           // somebody outside has changed its intent at some time
	mistaken    bool           // a person wrote another order's intent into its row
	restored    bool           // an operator has tried to bind its intent to its row again
	dead        []order.Reason // why messages were parked, by their place in the case
	answered    []bool         // messages that were acknowledged or parked
}

func newOracle(all []Message) oracle {
	o := oracle{calm: map[string]int{}}
	for _, m := range all {
		if o.of(m.ID) == nil {
			o.orders = append(o.orders, &watched{
				id: m.ID, status: order.Open, dead: make([]order.Reason, len(all)), answered: make([]bool, len(all)),
			})
		}
	}
	return o
}

func (o *oracle) must(ok bool, i Invariant, id order.ID, format string, args ...any) {
	if !ok && o.broken == nil {
		o.broken = &Violation{i, id, fmt.Sprintf(format, args...)}
	}
}

func (o *oracle) of(id order.ID) *watched {
	for _, x := range o.orders {
		if x.id == id {
			return x
		}
	}
	return nil
}

// disturbed tells that something unusual happened.
func (o *oracle) disturbed() { clear(o.calm) }

func (o *oracle) delivered(w *World, m sqstest.Message) {
	o.calm[m.ID]++
	if o.calm[m.ID] > mostCalm && w.other == nil {
		o.must(
			false,
			SettlesSoon,
			w.Messages[numberOf(m)].ID,
			"nothing went wrong any more, and yet delivery %d was needed",
			m.Receives,
		)
	}
}

// born notes whether a delivery has anything to do.
func (o *oracle) born(w *World, k *Worker) {
	m := w.Messages[numberOf(k.messages[0])]
	x := o.of(m.ID)
	k.settled = atEnd(x.status) && *x.claimed == m && w.Batch == 0 && (!w.Releases || !k.old)
}

// buried asks what a delivery has cost.
func (o *oracle) buried(w *World, k *Worker) {
	if k.old || k.behind != 0 {
		o.disturbed() // what it did, such as a long delay, is over only now
	}
	if k.settled && k.calls > 1 {
		o.must(
			false,
			CheapDuplicate,
			w.Messages[numberOf(k.messages[0])].ID,
			"a duplicate of a settled order made %d calls",
			k.calls,
		)
	}
}

// acknowledged is asked before a message is forgotten.
func (o *oracle) acknowledged(k *Worker, message sqstest.Message) {
	w, i := k.World, numberOf(message)
	m := w.Messages[i]
	x := o.of(m.ID)
	x.answered[i] = true
	if w.other != nil {
		return
	}
	r, known := w.row(m.ID)
	o.must(x.claimed == nil || *x.claimed == m, ConflictParked, m.ID,
		"message %d has other content and was acknowledged, not parked", i+1)
	o.must(known && atEnd(r.Status), AckedWhenDurable, m.ID,
		"message %d was acknowledged although the row is not settled", i+1)
}

func (o *oracle) parked(k *Worker, message sqstest.Message, why order.Reason) {
	w, i := k.World, numberOf(message)
	x := o.of(w.Messages[i].ID)
	x.answered[i], x.dead[i] = true, why
	if why == "record_lost" && !x.restored {
		w.redriven = false // an operator restores the row, and moves the message back once more
	}
	o.replies(k, x.id, why)
	o.must(why != "", EverythingEnds, x.id, "message %d was parked without a reason", i+1)
	o.must(
		why != "key_reused" && (why != "record_lost" || w.looksLost(message, x.id)), SettlesSoon, x.id,
		"message %d was parked, although the table knows its order", i+1,
	)
	old := w.now.Sub(message.Sent)+honestSkew >= retention-lastDay
	worn := message.Receives >= maxFailures && (byItself(why) || w.other != nil) ||
		message.Receives > maxReceives-lastChances
	o.must(forPeople(why) || old || k.absurd || worn, SettlesSoon, x.id,
		"message %d was parked for %s, which passes", i+1, why)
}

// looksLost reports whether a row looks as if it replaced a lost one: it is younger than
// its message by more than a day, and Stripe has more of its order than one intent that
// waits.
func (w *World) looksLost(message sqstest.Message, id order.ID) bool {
	r, known := w.row(id)
	sent := message.Sent
	if first, err := time.Parse(time.RFC3339, message.Attributes[sqs.AttrFirstSent].Text); err == nil {
		sent = first // of a redriven message
	}
	if !known || r.CreatedAt.Sub(sent) <= day {
		return false
	}
	waiting, others := 0, 0
	for _, i := range w.stripe.Intents() {
		switch {
		case i.OrderID() != string(id):
		case i.Status == stripetest.StatusRequiresConfirmation:
			waiting++
		default:
			others++
		}
	}
	return w.mistaken || others > 0 || waiting > 1 // a mistake may leave one intent of other content
}

// forPeople are the reasons that no waiting removes.
func forPeople(r order.Reason) bool {
	return slices.Contains(
		[]order.Reason{"conflict", "mismatch", "refused", "key_reused", "record_lost", "invalid_order"},
		r,
	)
}

// byItself are the reasons of an order that fails, and not of something around it that
// will be better one day.
func byItself(r order.Reason) bool { return r == "unconfirmed" || r == "panic" }

// afterStep checks what must hold at every moment.
func (o *oracle) afterStep(w *World) {
	if w.other == nil {
		o.tries(w)
	}
	for _, x := range o.orders {
		if w.other != nil {
			o.baseline(w, x)
			continue
		}
		r, known := w.row(x.id)
		if known && x.claimed == nil {
			x.claimed, x.fingerprint = &w.Messages[w.acting], content(r)
		}
		o.money(w, x)
		if known {
			o.record(w, x, r)
			o.look(w, x, r)
		}
	}
}

// content is a fingerprint without its version, which another release may have rewritten.
func content(r order.Record) string {
	_, hash, _ := strings.Cut(string(r.Fingerprint), ":")
	return hash
}

func (o *oracle) money(w *World, x *watched) {
	charges := w.charges(x.id)
	if len(charges) == 0 {
		return
	}
	o.must(len(charges) == 1, ChargedOnce, x.id, "%d successful charges", len(charges))
	o.must(x.claimed != nil, BooksAgree, x.id, "money moved without a row")
	if x.claimed == nil {
		return
	}
	for _, c := range charges {
		o.must(
			c.Amount == x.claimed.amount() && c.Currency == x.claimed.Currency,
			ChargedAmount,
			x.id,
			"%d %s were charged for something that costs %d %s",
			c.Amount,
			c.Currency,
			x.claimed.amount(),
			x.claimed.Currency,
		)
		payer := w.stripe.Intent(c.Intent).Customer
		o.must(
			payer == x.claimed.Payer || w.other != nil,
			ChargedAmount,
			x.id,
			"%s was charged for an order of %s",
			payer,
			x.claimed.Payer,
		)
	}
}

// charges lists what was charged for an order, leaving out what other deployments and
// people charge for things of their own.
func (w *World) charges(id order.ID) []stripetest.Charge {
	return slices.DeleteFunc(w.stripe.Charges(string(id)), func(c stripetest.Charge) bool {
		return slices.Contains(w.strays, c.Intent)
	})
}

// tries checks what this deployment has asked of cards: once for each order, and never
// for an intent that it did not make.
func (o *oracle) tries(w *World) {
	ledger := w.stripe.Ledger()
	for n := o.audited; n < len(ledger); n++ {
		c := ledger[n]
		if c.Key == "" || strings.HasPrefix(c.Key, string(neighbor)) {
			continue // a person, a bank or another deployment
		}
		id := order.ID(c.OrderID)
		o.must(
			!slices.Contains(w.strays, c.Intent),
			ChargedAmount,
			id,
			"%s was confirmed, which was made for something else",
			c.Intent,
		)
		for _, earlier := range ledger[:n] {
			if earlier.Key != "" && earlier.Intent == c.Intent {
				o.note(w, 0, NoFalseDecline, id, "the card of "+c.Intent+" was asked for money twice")
			}
		}
	}
	o.audited = len(ledger)
}

// baseline checks a baseline against the ledger alone, because the oracle cannot read its
// table.
func (o *oracle) baseline(w *World, x *watched) {
	if charges := w.charges(x.id); len(charges) > 0 {
		if x.claimed == nil {
			x.claimed = &w.Messages[w.acting]
		}
		o.money(w, x)
	}
}

func (o *oracle) record(w *World, x *watched, r order.Record) {
	claimed := order.Money{Amount: x.claimed.amount(), Currency: order.Currency(x.claimed.Currency)}
	if content(r) != x.fingerprint || r.Total != claimed || r.CustomerID != x.claimed.Customer {
		o.must(false, ConflictParked, x.id, "other content took over the row")
	}
	if r.Status != x.status {
		o.must(allowed(x.status, r.Status) && (!w.Strict || r.Status != order.Canceled), AsAllowed, x.id,
			"it went from %s to %s", x.status, r.Status)
		x.changes++
		if r.Status == order.Declined {
			o.decline(w, x.id, r)
		}
		o.must(len(r.Events) == x.changes && lastIs(r.Events, x.status, r.Status), OneEventEach, x.id,
			"change %d was from %s to %s, and the events are %v", x.changes, x.status, r.Status, r.Events)
		x.status = r.Status
	}
	if len(r.Events) != x.changes || r.Seq != x.changes {
		o.must(false, OneEventEach, x.id, "%d changes, %d events", x.changes, len(r.Events))
	}
}

// decline is asked when the row begins to say "declined". What a person outside did
// between Stripe's answer and our write is nobody's lie, and the next one who asks Stripe
// mends it.
func (o *oracle) decline(w *World, id order.ID, r order.Record) {
	if o.of(id).outside {
		return
	}
	i := w.stripe.Intent(string(r.Intent))
	o.must(len(w.charges(id)) == 0, NoFalseDecline, id, "it is told declined, and the money moved")
	o.must(i != nil && i.LastError != nil && i.LastError.DeclineCode != "authentication_required",
		NoFalseDecline, id, "it is told declined, and no bank has declined it")
}

// allowed is the diagram of docs/design.md, once more.
func allowed(from, to order.Status) bool {
	return slices.Contains([]string{
		"open paid", "open declined", "open canceled", "open action_required", "open pending",
		"action_required paid", "action_required declined", "action_required canceled",
		"pending paid", "pending declined", "pending canceled", "declined paid",
		"open refused", "refused open", "refused paid", "refused declined", "refused canceled", "refused action_required",
		"refused pending",
	}, string(from)+" "+string(to))
}

func lastIs(events []order.Event, from, to order.Status) bool {
	n := len(events)
	return n > 0 && events[n-1].Seq == n && events[n-1].From == from && events[n-1].To == to
}

// atRest checks what must hold once nothing is left to do.
func (o *oracle) atRest(w *World) {
	counts := must1(w.queue.Counts(w.now, w.ordersQueue))
	o.must(
		counts.Expired == 0 || w.Gap >= retention,
		EverythingEnds,
		w.Messages[0].ID,
		"the queue lost a message: %+v",
		counts,
	)
	for i, m := range w.Messages {
		x := o.of(m.ID)
		if w.other != nil {
			o.lost(w, x)
			continue
		}
		why := x.dead[i]
		o.must(
			x.status != order.Open || x.needsPerson(),
			EverythingEnds,
			m.ID,
			"message %d is gone (%s) and the order is open",
			i+1,
			why,
		)
		o.must(
			x.claimed == nil || *x.claimed == m || why != "",
			ConflictParked,
			m.ID,
			"message %d has other content and was not parked",
			i+1,
		)
		o.books(w, m.ID)
	}
}

// atEnd reports whether an order in s needs no more work by itself. A refused order is
// worked on again when its message comes back.
func atEnd(s order.Status) bool { return s != order.Open && s != order.Refused }

// needsPerson reports whether a message of the order was parked for a reason that leaves
// it open.
func (x *watched) needsPerson() bool {
	return slices.ContainsFunc(x.dead, func(why order.Reason) bool { return forPeople(why) && why != "refused" })
}

// lost reports whether a baseline at rest has lost an order that can be paid, or
// redelivers its message for ever.
func (o *oracle) lost(w *World, x *watched) {
	for i, m := range w.Messages {
		o.must(
			m.ID != x.id || x.answered[i],
			SettlesSoon,
			x.id,
			"nothing goes wrong any more, and message %d is a dead letter again",
			i+1,
		)
	}
	charges := len(w.charges(x.id))
	o.must(
		charges > 0 || !w.payable(x.id),
		EverythingEnds,
		x.id,
		"every message is gone and nothing was charged",
	)
	o.must(charges == 0 || w.other.Done(x.id), BooksAgree, x.id, "the money moved and the table does not say so")
}

func (w *World) payable(id order.ID) bool {
	return slices.ContainsFunc(w.Messages, func(m Message) bool {
		return m.ID == id && (m.Method == "pm_card_visa" || m.Method == "pm_card_mastercard")
	})
}

// books compares the row with Stripe's intent and ledger, both ways.
func (o *oracle) books(w *World, id order.ID) {
	r, _ := w.row(id)
	said, moved := order.Open, len(w.charges(id))
	i := w.stripe.Intent(string(r.Intent))
	if o.of(id).mistaken && i != nil && (i.OrderID() != string(id) || !w.ours(i)) {
		i = nil // it is not this order's, and must not count as its payment
	}
	if i != nil {
		said = saidBy(i)
	}
	now := cmp.Or(r.Status, order.Open)
	o.must(now == said || untold(now, said), BooksAgree, id, "the row says %s and Stripe says %s", now, said)
	o.must(
		(r.Status == order.Paid) == (moved == 1),
		BooksAgree,
		id,
		"the row says %s and there are %d charges",
		r.Status,
		moved,
	)
}

// untold are the states of an intent after it failed of which nobody is told
// (order.Refresh): the customer tries again.
func untold(row, said order.Status) bool {
	return row == order.Declined && said != order.Paid || row == order.ActionRequired && said == order.Pending ||
		row == order.Refused && said == order.Open
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

// row returns an order's record, and whether there is one.
func (w *World) row(id order.ID) (r order.Record, known bool) { return w.store.Peek(id) }

// appendState appends what the oracle remembers.
func (o *oracle) appendState(b []byte) []byte {
	for _, x := range o.orders {
		b = append(append(b, x.status...), x.fingerprint...)
		b = binary.AppendVarint(
			b,
			int64(x.changes)<<4|bit(x.restored)<<3|bit(x.outside)<<2|bit(x.touched)<<1|bit(x.mistaken),
		)
		for i := range x.dead {
			b = append(append(b, x.dead[i]...), byte(bit(x.answered[i]))) //nolint:gosec // G115: 0 or 1
		}
	}
	ids := make([]string, 0, len(o.calm))
	for id := range o.calm {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		b = binary.AppendVarint(append(b, id...), int64(o.calm[id]))
	}
	return b
}
