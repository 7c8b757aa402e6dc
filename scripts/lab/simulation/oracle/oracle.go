// Package oracle decides whether what happens in a world is correct. The world reports
// observations: a delivery, a call, its response, an acknowledgment, the end of a step.
// The oracle compares them with the rows and with Stripe's ledger, which it reads through
// a View, and keeps the first broken invariant.
//
// It refuses to know how the product works and how a world is made. It shares the
// product's vocabulary (statuses, reasons, records and ids of package order), but no rule
// and no number: the transitions, the meaning of an intent, the reasons that need a
// person and every limit are stated here once more, so that a bug or a wrong constant
// cannot be on both sides.
package oracle

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/lab/stage"
)

// Oracle checks one world.
type Oracle struct {
	view    View
	subject Subject
	sent    []Sent
	rules   Rules
	orders  []*tracked

	steps       int
	undisturbed map[string]int // deliveries by message id, since the last disturbance
	audited     int            // lines of the ledger that were checked
	owners      []string       // of every claim
	foreign     []string       // intents that this deployment did not make
	edited      bool           // a person wrote a wrong intent into some row

	broken    *stage.Violation
	noted     *stage.Violation // the first one of a row or of a call
	notedStep int
	change    change // the one that is checked, kept to save an allocation
}

// Neighbor is the scope of another deployment on the same Stripe account. Its idempotency
// keys begin with it.
const Neighbor = order.Scope("neighbor")

// Subject is what else the oracle may expect of a world.
type Subject struct {
	// Reconciles means that the reconciler has looked at every waiting order at rest.
	Reconciles bool
	// Publishes means that every event was published at rest.
	Publishes bool
	// Loses allows the queue to lose messages, because an outage is longer than its
	// retention.
	Loses bool
	// Strict forbids canceled orders. The product breaks this, so that tests of the
	// search have something to find.
	Strict bool
}

type tracked struct {
	id          order.ID
	claimed     *Sent // whose content the first claim took
	fingerprint string
	row         order.Record // after the last step
	status      order.Status
	changes     int
	charged     int            // lines of the ledger when its charges were last checked
	outside     bool           // somebody has changed its intent at Stripe
	edited      bool           // a person wrote another order's intent into its row
	published   int            // events that the bus has accepted, up to the first that it has not
	reported    bool           // the last run of the reconciler says that its message may be gone
	parked      []order.Reason // why messages were parked, by their place
	answered    []bool         // whether messages were acknowledged or parked, by their place
}

// New returns an oracle for the messages that are sent in a world.
func New(v View, r Rules, s Subject, sent []Sent) *Oracle {
	o := &Oracle{view: v, subject: s, sent: sent, rules: r, undisturbed: map[string]int{}}
	for _, m := range sent {
		if o.of(m.ID) == nil {
			o.orders = append(o.orders, &tracked{
				id: m.ID, status: order.Open, charged: -1,
				parked: make([]order.Reason, len(sent)), answered: make([]bool, len(sent)),
			})
		}
	}
	return o
}

// Broken returns the first broken invariant, or nil. Conclude may replace it.
func (o *Oracle) Broken() *stage.Violation { return o.broken }

// Noted reports whether a row or a call has broken an invariant. The world continues,
// because a more serious violation may follow.
func (o *Oracle) Noted() bool { return o.noted != nil }

// Conclude returns the most serious violation of the world, and whether it is the noted
// one.
func (o *Oracle) Conclude() (v *stage.Violation, noted bool) {
	all := Invariants()
	if o.noted != nil && (o.broken == nil ||
		slices.Index(all, o.noted.Invariant) < slices.Index(all, o.broken.Invariant)) {
		o.broken, noted = o.noted, true
	}
	return o.broken, noted
}

// Continue reports whether the world may take another step after a number of steps
// without a deviation. If the number is too large, the world does not settle.
func (o *Oracle) Continue(quiet int) bool {
	if o.noted != nil && o.steps > o.notedStep+stepsAfterNote {
		return false
	}
	if quiet > maxSteps {
		o.fail(SettlesSoon, o.sent[0].ID, "not settled after %d steps without a fault", maxSteps)
	}
	return o.broken == nil
}

// Disturbed reports that something unusual happened, so that more deliveries are needed.
func (o *Oracle) Disturbed() { clear(o.undisturbed) }

// ChangedOutside reports that a customer, a bank or a person changed an order's intent.
func (o *Oracle) ChangedOutside(id order.ID) { o.of(id).outside = true }

// CancelReturned reports that an operator's cancel ended without an error, and the status
// that it returned.
func (o *Oracle) CancelReturned(id order.ID, s order.Status) {
	if s != order.Canceled && s != order.Paid {
		o.fail(BooksAgree, id, "cancel returned no error, and the order is %s", s)
	}
}

// Edited reports that a person wrote the intent of something else into an order's row.
func (o *Oracle) Edited(id order.ID) { o.of(id).edited, o.edited = true, true }

// Foreign reports that an intent was made by a person or by another deployment.
func (o *Oracle) Foreign(intent string) {
	if o.Ours(intent) {
		o.foreign = append(o.foreign, intent)
	}
}

// Ours reports whether this deployment made an intent.
func (o *Oracle) Ours(intent string) bool { return !slices.Contains(o.foreign, intent) }

// Claimed returns the message whose content the first claim of an order took, or nil.
func (o *Oracle) Claimed(id order.ID) *Sent { return o.of(id).claimed }

func (o *Oracle) of(id order.ID) *tracked {
	for _, x := range o.orders {
		if x.id == id {
			return x
		}
	}
	return nil
}

// fail keeps the first violation that ends a world.
func (o *Oracle) fail(i stage.Invariant, id order.ID, format string, args ...any) {
	if o.broken == nil {
		o.broken = &stage.Violation{Invariant: i, Order: string(id), Detail: fmt.Sprintf(format, args...)}
	}
}

// note keeps the first violation of a row or of a call. It does not end the world.
func (o *Oracle) note(i stage.Invariant, id order.ID, text string) {
	if o.noted == nil {
		o.noted, o.notedStep = &stage.Violation{Invariant: i, Order: string(id), Detail: text}, o.steps+1
	}
}

// AfterStep checks what must always hold. The message is the one that was worked on last,
// and c is what changed the world.
func (o *Oracle) AfterStep(message int, c Cause) {
	attempts := o.view.Stripe().Attempts()
	if attempts > o.audited {
		o.checkTries(o.view.Stripe().Ledger())
	}
	for _, x := range o.orders {
		r, known := o.view.Row(x.id)
		if known && x.claimed == nil {
			x.claimed, x.fingerprint, x.charged = &o.sent[message], content(r.Fingerprint), -1
		}
		o.checkCharges(x, attempts)
		if known {
			o.checkContent(x, &r)
			o.checkRules(x, &r, c)
		}
	}
	o.steps++
}

// content returns a fingerprint without its version, which another release may rewrite.
func content(f order.Fingerprint) string {
	_, hash, _ := strings.Cut(string(f), ":")
	return hash
}

// checkTries checks what this deployment has asked of cards: once per intent, and only of
// its own.
func (o *Oracle) checkTries(ledger []stripetest.Charge) {
	for n := o.audited; n < len(ledger); n++ {
		c := ledger[n]
		if c.Key == "" || strings.HasPrefix(c.Key, string(Neighbor)) {
			continue // a person, a bank or another deployment
		}
		if !o.Ours(c.Intent) {
			o.fail(ChargedAmount, order.ID(c.OrderID), "%s was confirmed, which was made for something else", c.Intent)
		}
		for _, earlier := range ledger[:n] {
			if earlier.Key != "" && earlier.Intent == c.Intent {
				o.note(NoFalseDecline, order.ID(c.OrderID), "the card of "+c.Intent+" was charged or declined twice")
			}
		}
	}
	o.audited = len(ledger)
}

// checkCharges checks the charges of an order, if the ledger or the claim has changed.
func (o *Oracle) checkCharges(x *tracked, attempts int) {
	if x.charged == attempts {
		return
	}
	x.charged = attempts
	charges := o.charges(x.id)
	if len(charges) > 1 {
		o.fail(ChargedOnce, x.id, "%d successful charges", len(charges))
	}
	if len(charges) > 0 && x.status == order.Canceled {
		o.fail(BooksAgree, x.id, "the order was canceled, and then charged")
	}
	if len(charges) > 0 && x.claimed == nil {
		o.fail(BooksAgree, x.id, "charged without a row")
		return
	}
	for _, c := range charges {
		if c.Amount != x.claimed.Amount || c.Currency != x.claimed.Currency {
			o.fail(ChargedAmount, x.id, "%d %s were charged for an order of %d %s",
				c.Amount, c.Currency, x.claimed.Amount, x.claimed.Currency)
		}
		payer := o.view.Stripe().Intent(c.Intent).Customer
		if payer != x.claimed.Payer {
			o.fail(ChargedAmount, x.id, "%s was charged for an order of %s", payer, x.claimed.Payer)
		}
	}
}

// charges returns the charges of an order, without those of other deployments and people.
func (o *Oracle) charges(id order.ID) []stripetest.Charge {
	return slices.DeleteFunc(o.view.Stripe().Ledger(), func(c stripetest.Charge) bool {
		return c.OrderID != string(id) || c.Outcome != stripetest.Charged || !o.Ours(c.Intent)
	})
}

func (o *Oracle) checkContent(x *tracked, r *order.Record) {
	total := order.Money{Amount: x.claimed.Amount, Currency: order.Currency(x.claimed.Currency)}
	if content(r.Fingerprint) != x.fingerprint || r.Total != total || r.CustomerID != x.claimed.Customer {
		o.fail(ConflictParked, x.id, "the row took other content")
	}
	if r.Status != x.status {
		if !allowed(x.status, r.Status) || o.subject.Strict && r.Status == order.Canceled {
			o.fail(AsAllowed, x.id, "invalid transition: %s -> %s", x.status, r.Status)
		}
		x.changes++
		if r.Status == order.Declined {
			o.checkDecline(x, r)
		}
		if r.Status == order.Canceled && len(o.charges(x.id)) > 0 {
			o.fail(BooksAgree, x.id, "the row says canceled, and the order was charged")
		}
		if len(r.Events) != x.changes || !lastIs(r.Events, x.status, r.Status) {
			o.fail(OneEventEach, x.id, "change %d was from %s to %s, and the events are %v",
				x.changes, x.status, r.Status, r.Events)
		}
		x.status = r.Status
	}
	if !r.Dispute.Is(x.row.Dispute) {
		x.changes++
	}
	if len(r.Events) != x.changes || r.Seq != x.changes {
		o.fail(OneEventEach, x.id, "%d changes, %d events", x.changes, len(r.Events))
	}
}

// checkDecline checks a row that becomes "declined". A change at Stripe between the
// response and the write is no error: the next refresh corrects the row.
func (o *Oracle) checkDecline(x *tracked, r *order.Record) {
	if x.outside {
		return
	}
	if len(o.charges(x.id)) > 0 {
		o.fail(NoFalseDecline, x.id, "the row says declined, and the order was charged")
	}
	i := o.view.Stripe().Intent(string(r.Intent))
	if i == nil || i.LastError == nil || i.LastError.DeclineCode == needsCustomer {
		o.fail(NoFalseDecline, x.id, "the row says declined, and no bank has declined it")
	}
}

// allowed is the state diagram of docs/design.md.
func allowed(from, to order.Status) bool {
	return slices.Contains([]string{
		"open paid", "open declined", "open canceled", "open action_required", "open pending", "open refused",
		"action_required paid", "action_required declined", "action_required canceled",
		"pending paid", "pending declined", "pending canceled", "declined paid", "declined canceled",
		"refused open", "refused paid", "refused declined", "refused canceled", "refused action_required",
		"refused pending",
	}, string(from)+" "+string(to))
}

func lastIs(events []order.Event, from, to order.Status) bool {
	n := len(events)
	return n > 0 && events[n-1].Seq == n && events[n-1].From == from && events[n-1].To == to
}

// AppendState appends all that the oracle remembers and that can change what it finds.
func (o *Oracle) AppendState(b []byte) []byte {
	for _, x := range o.orders {
		b = append(append(b, x.status...), x.fingerprint...)
		b = binary.AppendVarint(b, int64(x.changes)<<3|bit(x.outside)<<2|bit(x.edited)<<1|bit(x.reported))
		b = binary.AppendVarint(b, int64(x.published))
		for i := range x.parked {
			b = append(append(b, x.parked[i]...), byte(bit(x.answered[i]))) //nolint:gosec // G115: 0 or 1
		}
	}
	for _, id := range o.foreign {
		b = append(b, id...)
	}
	for _, id := range slices.Sorted(maps.Keys(o.undisturbed)) {
		b = binary.AppendVarint(append(b, id...), int64(o.undisturbed[id]))
	}
	return b
}

type invariant = stage.Invariant

// The invariants that the oracle checks, most serious first. I13 is about logs.
const (
	ChargedOnce      invariant = "I1"  // at most one successful charge per order, ever
	ChargedAmount    invariant = "I2"  // the charge has the claimed amount and currency
	ConflictParked   invariant = "I9"  // same id, other content: not charged, parked, the first order untouched
	NoFalseDecline   invariant = "I15" // no order shows "declined" if charged, or if it needs authentication
	BooksAgree       invariant = "I4"  // at rest, table and ledger agree
	AckedWhenDurable invariant = "I5"  // nothing is acknowledged before its outcome is durable
	AsAllowed        invariant = "I7"  // only the transitions of the diagram
	OneEventEach     invariant = "I8"  // one event per transition
	NeighborsApart   invariant = "I10" // a poison message never delays or repeats its neighbors
	AllAnswered      invariant = "I6"  // received = acknowledged + redelivered + parked
	EverythingEnds   invariant = "I3"  // every message ends in a settled order, or is parked with a reason
	NoneForgotten    invariant = "I17" // no order waits for ever: it gets its outcome, or is reported
	PublishedInOrder invariant = "I16" // every transition is published at least once, in order for each order
	SettlesSoon      invariant = "I11" // without faults, everything settles within two deliveries and one lease
	CheapDuplicate   invariant = "I12" // a duplicate of a settled order costs one store call and no Stripe call
	SameHistory      invariant = "I14" // the same seed gives the same history
)

// Invariants returns every invariant that a simulated world can break, most serious
// first.
func Invariants() []stage.Invariant {
	return []stage.Invariant{
		ChargedOnce, ChargedAmount, ConflictParked, NoFalseDecline, BooksAgree, AckedWhenDurable, AsAllowed,
		OneEventEach, NeighborsApart, AllAnswered, EverythingEnds, NoneForgotten, PublishedInOrder, SettlesSoon,
		CheapDuplicate, SameHistory,
	}
}
