package stripetest

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// RefundStatus is a refund's status (docs.stripe.com/api/refunds/object). Refunds that
// need the customer are not modeled.
type RefundStatus string

// The statuses of refunds.
const (
	RefundPending   RefundStatus = "pending"
	RefundSucceeded RefundStatus = "succeeded"
	RefundFailed    RefundStatus = "failed"
)

// Refund is a refund of a charge at one moment. It is immutable: every change makes
// another Refund.
type Refund struct {
	ID       string
	Charge   string // The id of the refunded charge.
	Intent   string
	Amount   int64
	Currency string
	Reason   string
	Metadata map[string]string
	Status   RefundStatus
	Failure  string // failure_reason of a failed refund.
	Created  time.Time
}

// wire is the refund as Stripe sends it (docs.stripe.com/api/refunds/object).
func (r *Refund) wire() object {
	o := object{
		"id": r.ID, "object": "refund", "amount": r.Amount, "charge": r.Charge, "created": r.Created.Unix(),
		"currency": r.Currency, "metadata": r.Metadata, "payment_intent": r.Intent, "reason": orNull(r.Reason),
		"status": string(r.Status),
	}
	if r.Failure != "" {
		o["failure_reason"] = r.Failure
	}
	return o
}

// Refunds returns the current version of every refund, oldest first. They are read-only.
func (m *Machine) Refunds() []*Refund { return slices.Clone(m.refunds) }

// RefundInDashboard refunds a part of an intent's charge as an operator can: without
// metadata.
func (m *Machine) RefundInDashboard(now time.Time, intent string, amount int64) (*Refund, error) {
	i, err := m.unlocked(intent, is(StatusSucceeded))
	if err != nil {
		return nil, err
	}
	if refused := m.refuseRefund(i, amount); refused != nil {
		return nil, fmt.Errorf("%w: %s", ErrNotAllowed, refused.Error.Message)
	}
	return m.refund(now, i, Refund{
		Amount: amount, Reason: "requested_by_customer", Metadata: map[string]string{},
	}), nil
}

// ChangeRefund changes a refund's status as the bank does: a pending refund succeeds or
// fails. docs.stripe.com/refunds: a refund may fail long after it has succeeded, and then
// the amount is no longer refunded.
func (m *Machine) ChangeRefund(id string, to RefundStatus) error {
	n := slices.IndexFunc(m.refunds, func(r *Refund) bool { return r.ID == id })
	if n < 0 {
		return fmt.Errorf("%w: no refund %q", ErrNotAllowed, id)
	}
	changed := *m.refunds[n]
	if to == RefundPending || to == changed.Status || changed.Status == RefundFailed {
		return fmt.Errorf("%w: refund %s is %s", ErrNotAllowed, id, changed.Status)
	}
	i := m.Intent(changed.Intent)
	if changed.Status = to; to == RefundFailed {
		changed.Failure = "lost_or_stolen_card"
		m.latestCharge(i).Refunded -= changed.Amount
	}
	m.refunds[n] = &changed
	m.emit(Event{Type: "refund.updated", Intent: i, Refund: &changed, object: changed.wire()})
	if to == RefundFailed {
		m.emit(Event{Type: "refund.failed", Intent: i, Refund: &changed, object: changed.wire()})
	}
	return nil
}

// RollForward executes the refund requests that have not had their effect: those that
// were answered with a 500, and those that were lost on their way.
// docs.stripe.com/error-low-level: Stripe may roll a failed request forward, and the
// result of a 500 is indeterminate.
func (m *Machine) RollForward(now time.Time) {
	late := m.late
	m.late = nil
	for _, c := range late {
		if c.fault.Kind == ServerErrorBeforeEffect {
			m.createRefund(now, &c)
		} else {
			m.Do(now, c.Request)
		}
	}
}

// checkRefund checks the parameters of docs.stripe.com/api/refunds/create. A refund by
// its charge is not modeled.
func (m *Machine) checkRefund(c *call) *Response {
	amount, err := strconv.ParseInt(c.Form.Get("amount"), 10, 64)
	switch {
	case c.id == "":
		return invalid("parameter_missing", "payment_intent", "Missing required param: payment_intent.")
	case m.Intent(c.id) == nil:
		return missing("payment_intent", "payment_intent", c.id)
	case c.Form.Has("amount") && (err != nil || amount < 1):
		return invalid("parameter_invalid_integer", "amount", "Invalid positive integer")
	}
	return first(
		checkMetadata(metadata(c.Form)),
		oneOf(c.Form, "reason", "duplicate", "fraudulent", "requested_by_customer"),
	)
}

func (m *Machine) createRefund(now time.Time, c *call) Response {
	intent := m.Intent(c.id)
	amount, _ := strconv.ParseInt(c.Form.Get("amount"), 10, 64)
	if refused := m.refuseRefund(intent, amount); refused != nil {
		return *refused
	}
	made := Refund{Amount: amount, Reason: c.Form.Get("reason"), Metadata: metadata(c.Form)}
	return Response{Status: 200, Refund: m.refund(now, intent, made)}
}

func (m *Machine) readRefund(_ time.Time, c *call) Response {
	if r := find(m.refunds, c.id); r != nil {
		return Response{Status: 200, Refund: r}
	}
	return *refuse(404, "resource_missing", "id", "No such refund: '%s'", c.id)
}

// refuseRefund returns why a charge cannot be refunded (docs.stripe.com/error-codes,
// charge_disputed and charge_already_refunded). An amount above what is left has a
// parameter and no code, as users report (github.com/hackerai-tech/hackerai/pull/939). An
// amount with a fraction of a unit that the currency has no more is refused
// (support.stripe.com/questions/deprecation-of-fractional-isk-charges-and-refunds).
func (m *Machine) refuseRefund(i *Intent, amount int64) *Response {
	charge := m.latestCharge(i)
	switch {
	case i.Status != StatusSucceeded:
		return invalid("", "payment_intent", "PaymentIntent %s has no successful charge to refund.", i.ID)
	case m.chargedBack(i.LatestCharge):
		return invalid("charge_disputed", "", "Charge %s has been charged back.", i.LatestCharge)
	case !whole(amount, i.Currency):
		return invalid("invalid_charge_amount_no_decimal_compatible", "amount", "Invalid amount.")
	case charge.Refunded == charge.Amount:
		return invalid("charge_already_refunded", "", "Charge %s has already been refunded.", i.LatestCharge)
	case amount > charge.Amount-charge.Refunded:
		return invalid("", "amount", "Refund amount (%d) is greater than unrefunded amount (%d)",
			amount, charge.Amount-charge.Refunded)
	}
	return nil
}

// refund adds a refund, of what is left if r has no amount. docs.stripe.com/testing: that
// of pm_card_pendingRefund is pending at first.
func (m *Machine) refund(now time.Time, i *Intent, r Refund) *Refund {
	charge := m.latestCharge(i)
	if r.Amount == 0 {
		r.Amount = charge.Amount - charge.Refunded
	}
	r.ID, r.Intent, r.Charge = fmt.Sprintf("re_%06d", len(m.refunds)+1), i.ID, i.LatestCharge
	r.Currency, r.Created = charge.Currency, now
	if r.Status = RefundSucceeded; i.PaymentMethod == "pm_card_pendingRefund" {
		r.Status = RefundPending
	}
	charge.Refunded += r.Amount
	m.refunds = append(m.refunds, &r)
	m.emit(Event{Type: "refund.created", Intent: i, Refund: &r, object: r.wire()})
	m.emit(Event{Type: "charge.refunded", Intent: i, object: charge.wire(i.LatestCharge)})
	return &r
}
