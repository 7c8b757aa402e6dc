package refund

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"orderonce/domain/order"
)

// Account is an order's money as the store keeps it: what was charged, and what went
// back.
type Account struct {
	OrderID order.ID
	Status  order.Status
	Charged order.Money // the order's total
	Intent  order.IntentID
	Seq     int // number of events
	Trace   order.Trace
	Items   []Item // by id
	Outside int64  // given back by others, such as in the provider's Dashboard
	// UpdatedAt and Due are those of the order's record. Due is when to look at its refunds.
	UpdatedAt, Due time.Time
	Events         []order.Event // of the changes since it was loaded
}

// Item is one refund of an order.
type Item struct {
	ID          ID
	Amount      int64
	Reason      Reason // "" if it was adopted from the provider
	Fingerprint order.Fingerprint
	Status      Status
	Owner       string     // of the current claim; "" if there is none
	Until       time.Time  // end of the owner's lease
	Attempt     int        // number of claims
	KeySeq      int        // of the idempotency key, from 1
	SentAt      time.Time  // by the provider's clock, before the first Create; zero before that
	Refund      ProviderID // the provider's id; "" if none is known
	Failure     string     // of a failed, refused or unknown one: a code; or UnknownStatus
	LastError   string     // the reason of the last attempt that did not settle it
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Abandoned reports whether an open refund has had no attempt for a day, so that its
// message may be gone. A message in the queue comes back within minutes.
func (i Item) Abandoned(now time.Time) bool {
	return i.Status == Open && !order.LeaseRunning(i.Until, now) && now.Sub(i.UpdatedAt) >= 24*time.Hour
}

// Item returns the refund with this id.
func (a Account) Item(id ID) (i Item, found bool) {
	n := slices.IndexFunc(a.Items, func(i Item) bool { return i.ID == id })
	if n < 0 {
		return Item{}, false
	}
	return a.Items[n], true
}

// Refunded returns how much went back, as the provider counts: pending refunds too.
func (a Account) Refunded() int64 { return a.Outside + a.sum(Status.Counts) }

// Left returns how much a new refund may give back. What may have been given back is
// reserved.
func (a Account) Left() int64 { return a.Charged.Amount - a.Outside - a.sum(Status.reserves) }

func (a Account) sum(which func(Status) bool) (total int64) {
	for _, i := range a.Items {
		if which(i.Status) {
			total += i.Amount
		}
	}
	return total
}

// DueAt returns when to look at the order's refunds, or the zero time if none of them
// waits.
func (a Account) DueAt() (due time.Time) {
	for _, i := range a.Items {
		after, waits := i.Status.RecheckAfter()
		at := i.UpdatedAt.Add(after)
		if at.Before(a.UpdatedAt) { // it was rechecked before, and would count as overdue
			at = a.UpdatedAt.Add(after)
		}
		if waits && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}

// with returns the account with one item replaced or added, and the status that follows
// from the new sum.
func (a Account) with(i Item) Account {
	n, found := slices.BinarySearchFunc(a.Items, i.ID, func(i Item, id ID) int { return cmp.Compare(i.ID, id) })
	a.Items = slices.Clone(a.Items)
	if found {
		a.Items[n] = i
	} else {
		a.Items = slices.Insert(a.Items, n, i)
	}
	return a.counted()
}

// counted returns the account with the status that follows from its sums.
func (a Account) counted() Account {
	switch refunded := a.Refunded(); {
	case !a.Status.Charged():
	case refunded <= 0:
		a.Status = order.Paid
	case refunded < a.Charged.Amount:
		a.Status = order.PartiallyRefunded
	default:
		a.Status = order.Refunded
	}
	return a
}

// recorded returns the account with one more event, and with the time of the next
// recheck.
func (a Account) recorded(from order.Status, at time.Time, failure string, r order.RefundEvent) Account {
	a.Seq++
	a.UpdatedAt, a.Due = at, a.DueAt()
	a.Events = slices.Concat(a.Events, []order.Event{{
		Seq: a.Seq, From: from, To: a.Status, Intent: a.Intent, Failure: failure, At: at, Refund: r,
	}})
	return a
}

// changed returns the account with the new status of one item, and its event.
func changed(a Account, i Item, at time.Time) Account {
	i.UpdatedAt = at
	return a.with(i).recorded(a.Status, at, i.Failure, order.RefundEvent{
		ID: string(i.ID), Status: string(i.Status), Amount: i.Amount,
	})
}

// Outcome is the result of a refund. Failure is a provider code, never free text.
type Outcome struct {
	Status  Status
	Refund  ProviderID
	Failure string
}

// Settled returns the account with an outcome, or the error of Transition. It ends the
// claim.
func Settled(a Account, id ID, o Outcome, at time.Time) (Account, error) {
	i, found := a.Item(id)
	if !found {
		return Account{}, fmt.Errorf("refund %q of order %s: %w", id, a.OrderID, order.ErrNotFound)
	}
	if err := i.Status.Transition(o.Status); err != nil {
		return Account{}, err
	}
	return settled(a, i, o, at), nil
}

func settled(a Account, i Item, o Outcome, at time.Time) Account {
	i.Status, i.Failure, i.Refund = o.Status, o.Failure, cmp.Or(o.Refund, i.Refund)
	i.Owner, i.Until = "", time.Time{}
	return changed(a, i, at)
}
