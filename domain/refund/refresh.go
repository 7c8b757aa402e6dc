package refund

import (
	"context"
	"fmt"
	"slices"
	"time"

	"orderonce/domain/order"
)

// Refresher records what the provider did with an order's refunds: those that the bank
// settled or returned later, those that a lost answer left open, and those that others
// made. It never moves money.
type Refresher struct {
	Store    Store
	Provider Provider
	Scope    order.Scope
	Now      func() time.Time
}

// Refresh looks at one order and returns its account as it is afterwards. An order that
// was not charged is left as it is. Errors: those of Store and Provider, and
// *order.MismatchError.
func (f *Refresher) Refresh(ctx context.Context, id order.ID) (Account, error) {
	account, err := f.Store.Load(ctx, id)
	if err != nil {
		return Account{}, fmt.Errorf("load account of order %s: %w", id, err)
	}
	if !account.Status.Charged() {
		return account, nil
	}
	session := f.Provider.Open(ctx)
	defer session.Close()
	ledger, err := session.Read(ctx, account.Intent)
	if err == nil {
		err = order.Verify(ledger.Intent, f.Scope, id, account.Charged)
	}
	if err != nil {
		return account, fmt.Errorf("read refunds of order %s: %w", id, err)
	}
	for {
		after, found := NextChange(account, ledger, f.Scope, f.Now())
		if !found {
			return account, nil
		}
		if account, err = Apply(ctx, f.Store, account, after); err != nil {
			return account, err
		}
	}
}

// Seq is Refresh, and returns the order's number of events. See settle.Follower.
func (f *Refresher) Seq(ctx context.Context, id order.ID) (int, error) {
	account, err := f.Refresh(ctx, id)
	return account.Seq, err
}

// NextChange returns the account after the first change that the ledger shows.
func NextChange(a Account, l Ledger, s order.Scope, now time.Time) (after Account, found bool) {
	ours, counted := map[ID][]Refund{}, map[ID]bool{}
	var others int64
	for _, r := range l.Refunds {
		is := r.Scope == s && r.OrderID == a.OrderID && r.belongsTo(a)
		if is {
			ours[r.For] = append(ours[r.For], r)
		}
		if r.Status.Counts() && (!is || counted[r.For]) { // a second one with our id is not the item's
			others += r.Total.Amount
		}
		counted[r.For] = counted[r.For] || is && r.Status.Counts()
	}
	for _, i := range a.Items {
		if o, found := newOutcome(i, ours[i.ID], now); found {
			return settled(a, i, o, now), true
		}
	}
	for _, r := range l.Refunds {
		if _, known := a.Item(r.For); !known && len(ours[r.For]) > 0 {
			return adopted(a, ours[r.For][0], now), true
		}
	}
	if others != a.Outside {
		return outside(a, others, now), true
	}
	return a, false
}

// belongsTo reports whether a refund that names one of the account's items is that
// item's.
func (r Refund) belongsTo(a Account) bool {
	i, known := a.Item(r.For)
	return r.Intent == a.Intent && order.ValidID(string(r.For)) && r.Total.Currency == a.Charged.Currency &&
		(!known || r.Total.Amount == i.Amount)
}

// newOutcome returns the outcome that an item's refunds at the provider have and the item
// does not show. The item keeps the refund that it names, unless that one failed and
// another one counts. An open item under a running lease is left to its worker.
func newOutcome(i Item, made []Refund, now time.Time) (Outcome, bool) {
	if len(made) == 0 || i.Status == Open && order.LeaseRunning(i.Until, now) {
		return Outcome{}, false
	}
	listed := slices.ContainsFunc(made, func(r Refund) bool { return r.ID == i.Refund })
	if i.Status.Counts() && !listed { // the list lags
		return Outcome{}, false
	}
	best := made[0]
	for _, r := range made {
		if r.Status.Counts() && !best.Status.Counts() || r.ID == i.Refund && r.Status.Counts() {
			best = r
		}
	}
	if i.Status.Transition(best.Status) != nil { // also if the item shows it already
		return Outcome{}, false
	}
	return outcomeOf(best), true
}

// adopted returns the account with a refund of ours which the store lost.
func adopted(a Account, r Refund, at time.Time) Account {
	request := Request{orderID: a.OrderID, id: r.For, amount: r.Total.Amount, reason: r.Reason}
	return changed(a, Item{
		ID: r.For, Amount: r.Total.Amount, Reason: r.Reason, Fingerprint: request.Fingerprint(), Status: r.Status,
		Attempt: 1, KeySeq: 1, Refund: r.ID, Failure: r.Failure, CreatedAt: at,
	}, at)
}

// outside returns the account with what others gave back.
func outside(a Account, total int64, at time.Time) Account {
	was := a
	a.Outside = total
	return a.counted().recorded(was.Status, at, "", order.RefundEvent{
		Status: order.RefundedOutside, Amount: total - was.Outside,
	})
}
