package refund

import (
	"context"
	"fmt"
	"time"

	"orderonce/domain/order"
)

// Provider is the payment provider. Every error is an *order.PaymentError.
// refundtest.TestProvider tests this contract.
type Provider interface {
	// Open returns a session, which has one connection to the provider. The caller closes
	// it.
	Open(ctx context.Context) Session
}

// Session is a sequence of calls over one connection.
type Session interface {
	// Read returns the intent, its charge and every refund of it, in their current state.
	// A refund that was just made may be missing, because the provider's list may lag.
	Read(ctx context.Context, id order.IntentID) (Ledger, error)

	// ReadRefund returns one refund in its current state.
	ReadRefund(ctx context.Context, id ProviderID) (Refund, error)

	// Create makes a refund. It is sent over the connection of the last Read and within 30
	// seconds of it, or not at all: then the error is Unavailable. Replayed: the key holds
	// a stored failure. KeyReused: the key was used with other parameters. Refused: the
	// provider does not make this refund, or has made it already.
	Create(ctx context.Context, p CreateParams) (Refund, error)

	// Close closes the connection.
	Close()
}

// ProviderID is the provider's id of a refund.
type ProviderID string

// CreateParams are the parameters of a refund to make. Every field follows from the item,
// so that all attempts send the same parameters under the same key.
type CreateParams struct {
	Intent  order.IntentID
	OrderID order.ID
	ID      ID
	Amount  int64
	Reason  Reason
	Key     string
}

// Ledger is one intent with its charge and refunds, as the provider reports them.
type Ledger struct {
	Intent   order.Intent
	Charged  int64 // 0 if the intent has no successful charge
	Disputed bool
	Refunds  []Refund
	Now      time.Time // by the provider's clock
}

// Refund is a refund at the provider.
type Refund struct {
	ID      ProviderID
	Status  Status // Pending, Succeeded or Failed
	Total   order.Money
	Intent  order.IntentID
	OrderID order.ID // as our request named them; "" of a refund that we did not make
	Scope   order.Scope
	For     ID
	Reason  Reason
	Failure string // a provider code of a failed one; UnknownStatus of some pending ones
}

// UnknownStatus is the failure of a refund whose status the provider does not name, or
// this release does not know. It counts as pending until the provider says more.
const UnknownStatus = "unknown_status"

// Claim is the right of one attempt to work on a refund until another attempt begins it.
type Claim struct {
	Request Request
	Lease   order.Lease
	Account Account // as Begin or Mark left it
}

// item returns the claimed item.
func (c Claim) item() Item {
	i, _ := c.Account.Item(c.Request.ID())
	return i
}

// unsent returns the claim without the time of its first request.
func (c Claim) unsent() Claim {
	i := c.item()
	i.SentAt = time.Time{}
	c.Account = c.Account.with(i)
	return c
}

// NotChargedError reports an order that was not charged, so that nothing can go back.
type NotChargedError struct{ Status order.Status }

// Error names the status.
func (e *NotChargedError) Error() string {
	return fmt.Sprintf("order is %s: nothing can be refunded", e.Status)
}

// ExceedsError reports a refund of more than is left of the charge.
type ExceedsError struct{ Amount, Left order.Money }

// Error names both amounts.
func (e *ExceedsError) Error() string {
	return fmt.Sprintf("refund of %s exceeds the %s that is left of the charge", e.Amount, e.Left)
}

// ErrTooMany means that the order has MaxRefunds refunds, whatever came of them.
var ErrTooMany = fmt.Errorf("the order has %d refunds and gets no more", MaxRefunds)

// ConflictError reports a refund id that was used with another amount or reason. It is an
// order.ErrConflict.
type ConflictError struct{ ID ID }

// Error names the id.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("refund id %s already used with different content", e.ID)
}

// Is reports whether target is order.ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == order.ErrConflict }

// SettledError reports a claim on a refund that has an outcome.
type SettledError struct {
	Item  Item
	Order order.Status
}

// Error names the refund's status.
func (e *SettledError) Error() string { return "refund already settled: " + string(e.Item.Status) }

// CheckBegin returns why the account does not allow a claim. It returns nil if a new
// refund may be claimed, if an open one has no running lease, and if the item already
// carries the lease's owner because the answer to our write was lost.
func CheckBegin(a Account, r Request, l order.Lease) error {
	i, known := a.Item(r.ID())
	switch {
	case r.currency != "" && r.currency != a.Charged.Currency:
		return &order.InvalidError{Of: "refund", Problems: []order.Problem{{
			Field: "currency", Value: order.Quote(string(r.currency)),
			Want: string(a.Charged.Currency) + ", as the order",
		}}}
	case !known && !a.Status.Charged():
		return &NotChargedError{a.Status}
	case !known && len(a.Items) >= MaxRefunds:
		return ErrTooMany
	case !known && a.Left() < r.Amount():
		asked, left := a.Charged, a.Charged
		asked.Amount, left.Amount = r.Amount(), a.Left()
		return &ExceedsError{asked, left}
	case !known:
		return nil
	case i.Fingerprint != r.Fingerprint():
		return &ConflictError{r.ID()}
	case i.Status != Open:
		return &SettledError{Item: i, Order: a.Status}
	case i.Owner == l.Owner:
		return nil
	case order.LeaseRunning(i.Until, l.From):
		return &order.InProgressError{Until: i.Until}
	}
	return nil
}

// Begun returns the account as Begin leaves it, for a claim that CheckBegin allows.
func Begun(a Account, r Request, l order.Lease) Account {
	i, known := a.Item(r.ID())
	if !known {
		i = Item{
			ID: r.ID(), Amount: r.Amount(), Reason: r.Reason(), Fingerprint: r.Fingerprint(), Status: Open,
			KeySeq: 1, CreatedAt: l.From,
		}
	}
	if i.Owner != l.Owner {
		i.Attempt++
	}
	i.Owner, i.Until, i.UpdatedAt = l.Owner, l.Until, l.From
	a = a.with(i)
	a.UpdatedAt = l.From
	if !known {
		a.Due = a.DueAt()
	}
	return a
}
