// Package refundtest has the contract suites of package refund's ports, a store and a
// provider in memory that pass them, and test doubles.
package refundtest

import (
	"cmp"
	"context"
	"errors"
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

// Account returns the order's account.
func (m *Memory) Account(_ context.Context, id order.ID) (refund.Account, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, _, err := m.account(id)
	return a, err
}

// Save writes a change and its event.
func (m *Memory) Save(_ context.Context, c refund.Change) (refund.Account, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, seen, err := m.account(c.Before.OrderID)
	if errors.Is(err, order.ErrNotFound) {
		return refund.Account{}, order.ErrStale
	}
	if err != nil {
		return refund.Account{}, err
	}
	items, stale := merge(now.Items, c)
	if stale || now.Status != c.Before.Status || now.Seq != c.Before.Seq || now.Left() != c.Before.Left() ||
		now.Outside != c.Before.Outside {
		return now, order.ErrStale
	}
	r := seen
	r.Status, r.Seq, r.UpdatedAt = c.After.Status, c.After.Seq, c.After.UpdatedAt
	if !c.After.Due.Equal(c.Before.Due) {
		r.DueAt = c.After.Due
	}
	if c.Event.Seq > 0 {
		r.Events = append(slices.Clip(r.Events), c.Event)
	}
	if !m.Orders.Replace(seen, r) {
		return now, order.ErrStale
	}
	m.kept[c.After.OrderID] = kept{items, c.After.Outside}
	now, _, err = m.account(c.After.OrderID)
	return now, err
}

// merge returns the items with those that the change changes. stale reports whether one of
// these is not as it was before.
func merge(now []refund.Item, c refund.Change) (items []refund.Item, stale bool) {
	items = slices.DeleteFunc(slices.Clone(now), func(i refund.Item) bool {
		_, knew := c.Before.Item(i.ID)
		_, stays := c.After.Item(i.ID)
		return knew && !stays
	})
	for _, after := range c.After.Items {
		before, knew := c.Before.Item(after.ID)
		if knew && before == after {
			continue
		}
		n, known := slices.BinarySearchFunc(items, after.ID, func(i refund.Item, id refund.ID) int {
			return cmp.Compare(i.ID, id)
		})
		switch {
		case known != knew || known && items[n] != before:
			return nil, true
		case known:
			items[n] = after
		default:
			items = slices.Insert(items, n, after)
		}
	}
	return items, false
}

// account returns an order's account with its record.
func (m *Memory) account(id order.ID) (refund.Account, order.Record, error) {
	r, known := m.Orders.Peek(id)
	if !known {
		return refund.Account{}, r, order.ErrNotFound
	}
	return refund.Account{
		OrderID: id, Status: r.Status, Charged: r.Total, Intent: r.Intent, Seq: r.Seq, Trace: r.Trace,
		Items: slices.Clone(m.kept[id].items), Outside: m.kept[id].outside, UpdatedAt: r.UpdatedAt, Due: r.DueAt,
	}, r, nil
}

func (m *Memory) transitions() refund.Transitions { return refund.Transitions{Store: m} }

// Begin claims the refund.
func (m *Memory) Begin(ctx context.Context, r refund.Request, l order.Lease) (refund.Claim, error) {
	return m.transitions().Begin(ctx, r, l)
}

// Mark records when and under which key a request is sent.
func (m *Memory) Mark(ctx context.Context, c refund.Claim, keySeq int, now time.Time) (refund.Claim, error) {
	return m.transitions().Mark(ctx, c, keySeq, now)
}

// Finish records the outcome.
func (m *Memory) Finish(ctx context.Context, c refund.Claim, o refund.Outcome, at time.Time) error {
	return m.transitions().Finish(ctx, c, o, at)
}

// Release ends the claim and records the reason.
func (m *Memory) Release(ctx context.Context, c refund.Claim, why order.Reason, at time.Time) error {
	return m.transitions().Release(ctx, c, why, at)
}

// Apply writes a change and its event.
func (m *Memory) Apply(ctx context.Context, c refund.Change) error {
	return m.transitions().Apply(ctx, c)
}
