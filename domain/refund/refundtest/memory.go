// Package refundtest has the contract suites of package refund's ports, a store and a
// provider in memory that pass them, and test doubles.
package refundtest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
)

var (
	_ refund.Claims  = (*Memory)(nil)
	_ refund.Records = (*Memory)(nil)
)

// Memory keeps the refunds of the orders in an ordertest.Memory, and is the specification
// of a store of refunds.
type Memory struct {
	Orders *ordertest.Memory

	mu   sync.Mutex
	kept map[order.ID]kept
}

// kept is what a record of package order does not have.
type kept struct {
	items   []refund.Item
	outside int64
}

// NewMemory returns a store of refunds of these orders.
func NewMemory(orders *ordertest.Memory) *Memory {
	return &Memory{Orders: orders, kept: map[order.ID]kept{}}
}

// Begin claims the refund.
func (m *Memory) Begin(_ context.Context, r refund.Request, l order.Lease) (refund.Claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, record, err := m.account(r.OrderID())
	if err == nil {
		err = refund.CheckBegin(a, r, l)
	}
	if err != nil {
		return refund.Claim{}, err
	}
	_, known := a.Item(r.ID())
	a = refund.Begun(a, r, l)
	m.keep(a)
	if due := record; !known {
		due.DueAt = a.DueAt()
		m.Orders.Replace(record, due)
	}
	return refund.Claim{Request: r, Lease: l, Account: a}, nil
}

// Mark records when and under which key a request is sent.
func (m *Memory) Mark(_ context.Context, c refund.Claim, keySeq int, now time.Time) (refund.Claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, i, held := m.claimed(c)
	if !held {
		return refund.Claim{}, order.ErrClaimLost
	}
	if i.KeySeq = keySeq; i.SentAt.IsZero() {
		i.SentAt = now
	}
	c.Account = m.put(a, i)
	return c, nil
}

// Finish records the outcome.
func (m *Memory) Finish(_ context.Context, c refund.Claim, o refund.Outcome, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, i, held := m.claimed(c)
	switch {
	case i.Status == o.Status && i.Refund == o.Refund:
		return nil
	case !held:
		return order.ErrClaimLost
	}
	change, err := refund.Settled(a, i.ID, o, at)
	if err != nil {
		return err
	}
	return m.apply(change)
}

// Release ends the claim and records the reason.
func (m *Memory) Release(_ context.Context, c refund.Claim, why order.Reason, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, i, held := m.claimed(c)
	if !held {
		return order.ErrClaimLost
	}
	if claimed, _ := c.Account.Item(i.ID); claimed.SentAt.IsZero() {
		i.SentAt = time.Time{}
	}
	i.Owner, i.Until, i.LastError, i.UpdatedAt = "", time.Time{}, string(why), at
	m.put(a, i)
	return nil
}

// Account returns the order's account.
func (m *Memory) Account(_ context.Context, id order.ID) (refund.Account, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, _, err := m.account(id)
	return a, err
}

// Apply writes a change and its event. It leaves alone what Begin and Mark, which have no
// seq, wrote of other refunds meanwhile.
func (m *Memory) Apply(_ context.Context, c refund.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, _, err := m.account(c.Before.OrderID)
	id := refund.ID(c.Event.Refund.ID)
	_, knew := c.Before.Item(id)
	if _, knows := a.Item(id); err != nil || a.Seq != c.Before.Seq || knew != knows {
		return order.ErrStale
	}
	items := slices.DeleteFunc(a.Items, func(i refund.Item) bool { return i.ID == id })
	if i, about := c.After.Item(id); about {
		items = append(items, i)
		slices.SortFunc(items, func(i, j refund.Item) int { return cmp.Compare(i.ID, j.ID) })
	}
	c.After.Items = items
	return m.apply(c)
}

// apply writes a change to both stores.
func (m *Memory) apply(c refund.Change) error {
	_, seen, err := m.account(c.Before.OrderID)
	if err != nil {
		return err
	}
	r := seen
	r.Status, r.Seq, r.UpdatedAt, r.DueAt = c.After.Status, c.After.Seq, c.Event.At, c.After.DueAt()
	r.Events = append(slices.Clip(r.Events), c.Event)
	if !m.Orders.Replace(seen, r) {
		return order.ErrStale
	}
	m.keep(c.After)
	return nil
}

// account returns an order's account with its record.
func (m *Memory) account(id order.ID) (refund.Account, order.Record, error) {
	r, known := m.Orders.Peek(id)
	if !known {
		return refund.Account{}, r, order.ErrNotFound
	}
	return refund.Account{
		OrderID: id, Status: r.Status, Charged: r.Total, Intent: r.Intent, Seq: r.Seq, Trace: r.Trace,
		Items: slices.Clone(m.kept[id].items), Outside: m.kept[id].outside,
	}, r, nil
}

// claimed returns the claim's account and item. held is false if the claim was lost.
func (m *Memory) claimed(c refund.Claim) (a refund.Account, i refund.Item, held bool) {
	a, _, err := m.account(c.Request.OrderID())
	i, known := a.Item(c.Request.ID())
	return a, i, err == nil && known && i.Owner == c.Lease.Owner && i.Status == refund.Open
}

func (m *Memory) put(a refund.Account, i refund.Item) refund.Account {
	n := slices.IndexFunc(a.Items, func(other refund.Item) bool { return other.ID == i.ID })
	a.Items[n] = i
	m.keep(a)
	return a
}

func (m *Memory) keep(a refund.Account) {
	m.kept[a.OrderID] = kept{slices.Clone(a.Items), a.Outside}
}
