package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"orderonce/domain/order"
)

// Class is a kind of difference. docs/guides/audit.md has a row for each.
type Class string

// The classes. A repair of the first four needs no judgement.
const (
	MissingRow        Class = "missing_row"        // Stripe has the order, the table does not
	RowOlder          Class = "row_older"          // the row lacks what Stripe did with the intent
	RefundsDiffer     Class = "refunds_differ"     // the row lacks what went back
	DisputeUnrecorded Class = "dispute_unrecorded" // the row lacks a dispute, or its end
	TwoCharges        Class = "two_charges"        // two intents of one order took money
	OtherCharged      Class = "other_charged"      // an intent took money that the row does not name
	IntentMissing     Class = "intent_missing"     // Stripe lacks the intent that the row names
	ContentDiffers    Class = "content_differs"    // amount, currency, order id, scope or content
	StatusContradicts Class = "status_contradicts" // no transition leads from the row to Stripe
	RefundUnknown     Class = "refund_unknown"     // both agree, and nobody knows whether a refund was made
	RowUnreadable     Class = "row_unreadable"     // the row is corrupt or of a newer release
)

type class struct {
	Class

	remedy string
	step   string // of a repair that needs no judgement; "" if a person decides
}

func classes() []class {
	return []class{
		{MissingRow, "--repair writes the row from the PaymentIntent and settles it", "settle it"},
		{RowOlder, "--repair binds and settles the row as Stripe says", "settle it"},
		{RefundsDiffer, "--repair records what Stripe gave back", "record its refunds"},
		{DisputeUnrecorded, "--repair records the dispute", "record its dispute"},
		{TwoCharges, "the customer paid twice: refund the one that the row does not name", ""},
		{OtherCharged, "find out who confirmed it, then refund it, or cancel the order and keep the money", ""},
		{IntentMissing, "compare key, account and mode with those of the charge; nothing was changed", ""},
		{ContentDiffers, "an edit, or other content after the row was lost: orders restore --help", ""},
		{StatusContradicts, "compare the PaymentIntent's history with the order's events, then decide", ""},
		{RefundUnknown, "find out whether it was made, then end it: orders refund resolve --help", ""},
		{RowUnreadable, "look at the item: it was edited by hand, or a newer release wrote it", ""},
	}
}

// Classes returns every class.
func Classes() (all []Class) {
	for _, c := range classes() {
		all = append(all, c.Class)
	}
	return all
}

func (c Class) of() class {
	all := classes()
	return all[slices.IndexFunc(all, func(known class) bool { return known.Class == c })]
}

// Repairable reports whether a repair needs no judgement.
func (c Class) Repairable() bool { return c.of().step != "" }

// Remedy returns what to do about a finding of the class.
func (c Class) Remedy() string { return c.of().remedy }

// Finding is one difference of one order.
type Finding struct {
	OrderID order.ID       `json:"orderId"`
	Class   Class          `json:"class"`
	Intent  order.IntentID `json:"intent,omitempty"` // the one that the finding is about
	Detail  string         `json:"detail"`           // what each side has

	Risk     Risk `json:"risk,omitempty"`
	Bind     bool `json:"bind,omitempty"`     // the row does not name the intent
	Disputed bool `json:"disputed,omitempty"` // the intent's charge is, or was
}

// Order is what both sides have of one order. Row is nil if the table has none.
type Order struct {
	ID       order.ID
	Row      *Row
	Payments []Payment
}

// Result is what came of a comparison. An order without findings that is not in progress
// matches.
type Result struct {
	Findings   []Finding
	InProgress bool // a worker holds it, or is about to get its message again
	Strays     int  // unbound intents without money that nothing confirms
}

// youth is how long after its PaymentIntent was made an open order counts as in progress:
// by then the lease of a killed worker has ended, and its message has come back.
const youth = order.MaxLease + order.MaxSkew

// Compare compares both sides of one order of a scope.
func Compare(o Order, s order.Scope, now time.Time) Result {
	bound, others := split(o)
	took := slices.DeleteFunc(slices.Clone(others), func(p Payment) bool { return !p.took() })
	r := Result{Strays: len(others) - len(took)}
	if o.Row == nil {
		return lost(o, took)
	}
	if bound != nil && bound.took() {
		took = append([]Payment{*bound}, took...)
	}
	switch {
	case o.Row.Problem != "":
		r.add(o, RowUnreadable, Payment{}, o.Row.Problem)
	case order.LeaseRunning(o.Row.BusyUntil, now), o.young(now):
		r.InProgress = true
	case len(took) > 1:
		r.add(o, TwoCharges, took[0], describe(took))
	case len(took) == 1 && o.Row.Intent == "":
		r.unbound(o, s, took[0])
	case len(took) == 1 && took[0].ID != o.Row.Intent:
		r.add(o, OtherCharged, took[0], fmt.Sprintf("row names %s, %s", o.Row.Intent, describe(took)))
	case older(*o.Row, others):
		r.Strays--
		r.unbound(o, s, best(others))
	case bound == nil && o.Row.Intent != "":
		r.add(o, IntentMissing, Payment{Intent: order.Intent{ID: o.Row.Intent}},
			"row "+string(o.Row.Status)+", Stripe does not have it")
	case bound != nil:
		r.compare(o, s, *bound)
	}
	return r
}

// split returns the bound intent and the others of the order.
func split(o Order) (bound *Payment, others []Payment) {
	for _, p := range o.Payments {
		switch {
		case o.Row != nil && p.ID == o.Row.Intent:
			bound = &p
		case p.OrderID == o.ID:
			others = append(others, p)
		}
	}
	return bound, others
}

// young reports whether the order's message is still expected.
func (o Order) young(now time.Time) bool {
	return o.Row.Status == order.Open && slices.ContainsFunc(o.Payments, func(p Payment) bool {
		return p.CreatedAt.After(now.Add(-youth))
	})
}

func (r *Result) add(o Order, c Class, p Payment, detail string) {
	r.Findings = append(r.Findings, Finding{
		OrderID: o.ID, Class: c, Intent: p.ID, Detail: detail, Disputed: p.Disputed, Risk: risk(o, c),
	})
}

// lost is Compare without a row. A repair binds the best intent, also a canceled one:
// without its row, a message of the order would be charged.
func lost(o Order, took []Payment) Result {
	if len(took) > 1 {
		r := Result{Strays: len(o.Payments) - len(took)}
		r.add(o, TwoCharges, took[0], "no row, "+describe(took))
		return r
	}
	p := best(o.Payments)
	r := Result{Strays: len(o.Payments) - 1}
	r.add(o, MissingRow, p, "no row, "+describe([]Payment{p}))
	r.Findings[0].Bind = true
	return r
}

// best returns the intent that says what became of an order: the one that took money,
// otherwise one that was confirmed, otherwise one that was canceled. One that waits comes
// last, because to bind it would charge an order that may have been canceled. Of several
// it is the newest.
func best(all []Payment) Payment {
	return slices.MaxFunc(all, func(a, b Payment) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.CreatedAt.Compare(b.CreatedAt))
	})
}

// waits is the rank of an intent without an outcome.
const waits = 0

func rank(p Payment) int {
	_, settled := order.OutcomeOf(p.Intent)
	switch {
	case p.took():
		return 3
	case p.State == order.IntentCanceled:
		return 1
	case settled:
		return 2
	}
	return waits
}

// older reports whether a row without an intent lacks the outcome of one, so that a
// message would charge the order again.
func older(row Row, others []Payment) bool {
	mayBeCharged := row.Status == order.Open || row.Status == order.Refused
	return row.Intent == "" && mayBeCharged && len(others) > 0 && rank(best(others)) > waits
}

// unbound compares a row without an intent with the intent that says what became of the
// order.
func (r *Result) unbound(o Order, s order.Scope, p Payment) {
	switch differs := content(o, s, p); {
	case differs != "":
		r.add(o, ContentDiffers, p, differs)
	case o.Row.Status != order.Open:
		r.add(o, StatusContradicts, p, "row "+string(o.Row.Status)+" without an intent, "+describe([]Payment{p}))
	default:
		r.add(o, RowOlder, p, "row open without an intent, "+describe([]Payment{p}))
		r.Findings[0].Bind = true
	}
}

func (r *Result) compare(o Order, s order.Scope, p Payment) {
	if differs := content(o, s, p); differs != "" {
		r.add(o, ContentDiffers, p, differs)
		return
	}
	now := o.Row.Status
	outcome, found := order.Unrecorded(now, p.Intent)
	both := fmt.Sprintf("row %s, %s", now, describe([]Payment{p}))
	switch {
	case found && now.Transition(outcome.Status) == nil:
		r.add(o, RowOlder, p, both)
		return
	case found, now.Charged() && p.State != order.Succeeded:
		r.add(o, StatusContradicts, p, both)
		return
	case !now.Charged():
		return
	}
	switch differs := refunds(*o.Row, p); {
	case differs != "":
		r.add(o, RefundsDiffer, p, differs)
	case len(o.Row.Unknown) > 0:
		resolve := fmt.Sprintf("orders refund resolve %s ", o.ID)
		r.add(o, RefundUnknown, p, resolve+strings.Join(o.Row.Unknown, "; "+resolve))
	}
	if p.Disputed && (o.Row.Dispute.ID == "" || !p.Dispute.Is(o.Row.Dispute)) {
		r.add(o, DisputeUnrecorded, p, fmt.Sprintf("row %s, Stripe %s",
			dispute(o.Row.Dispute, "not disputed"), dispute(p.Dispute, "disputed")))
	}
}

// refunds returns how what went back differs, or "". A refund that failed and was made
// again in the Dashboard leaves the sum as it was.
func refunds(r Row, p Payment) string {
	if p.Refunded != r.Refunded {
		return fmt.Sprintf("row %s, Stripe %s given back",
			order.Money{Amount: r.Refunded, Currency: p.Total.Currency},
			order.Money{Amount: p.Refunded, Currency: p.Total.Currency})
	}
	for _, id := range r.Refunds {
		if !slices.Contains(p.Refunds, id) {
			return fmt.Sprintf("row counts %s, which gave nothing back at Stripe", id)
		}
	}
	return ""
}

// content returns how the intent's content differs from the row's, or "".
func content(o Order, s order.Scope, p Payment) string {
	if err := order.Verify(p.Intent, s, o.ID, o.Row.Total); err != nil {
		return err.Error()
	}
	if p.Fingerprint != "" && p.Fingerprint != o.Row.Fingerprint {
		return fmt.Sprintf("fingerprint of the row %s, of the PaymentIntent %s", o.Row.Fingerprint, p.Fingerprint)
	}
	return ""
}

func describe(all []Payment) string {
	parts := make([]string, 0, len(all))
	for _, p := range all {
		state := cmp.Or(string(p.State), "in an unknown status")
		parts = append(parts, fmt.Sprintf("%s %s, %s", p.ID, state, p.Total))
	}
	return strings.Join(parts, "; ")
}

func dispute(d order.Dispute, none string) string {
	if d.ID == "" {
		return none
	}
	return fmt.Sprintf("%s %s", d.ID, d.Status)
}
