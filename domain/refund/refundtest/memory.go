// Package refundtest has the contract suites of package refund's ports, a store and a
// provider in memory that pass them, and test doubles.
package refundtest

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
)

var _ refund.Store = (*Memory)(nil)

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

// Load returns the order's account.
func (m *Memory) Load(_ context.Context, id order.ID) (refund.Account, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, _, err := m.account(id)
	return a, err
}

// Save writes after in place of before.
func (m *Memory) Save(_ context.Context, before, after refund.Account) (refund.Account, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, seen, err := m.account(after.OrderID)
	if errors.Is(err, order.ErrNotFound) {
		return refund.Account{}, order.ErrStale
	}
	if err != nil {
		return refund.Account{}, err
	}
	there, r, stale, events := now, seen, false, after.Events
	now.Items = slices.Clone(now.Items)
	for _, is := range after.Items {
		was, knew := before.Item(is.ID)
		n, known := slices.BinarySearchFunc(now.Items, is.ID, func(i refund.Item, id refund.ID) int {
			return cmp.Compare(i.ID, id)
		})
		switch {
		case known != knew:
			stale = true
		case known:
			stale = mergeItem(&now.Items[n], was, is) || stale
		default:
			now.Items = slices.Insert(now.Items, n, is)
		}
	}
	stale = stale || now.Status != before.Status || now.Seq != before.Seq || there.Left() != before.Left() ||
		ordertest.Set(&now.Outside, before.Outside, after.Outside) ||
		ordertest.Set(&r.DueAt, before.Due, after.Due)
	if after.Events = nil; stale && reflect.DeepEqual(there, after) {
		return there, nil
	}
	if stale {
		return there, order.ErrStale
	}
	_ = ordertest.Set(&r.UpdatedAt, before.UpdatedAt, after.UpdatedAt)
	r.Status, r.Seq = after.Status, after.Seq
	for _, e := range events {
		if e.Seq > before.Seq {
			r.Events = append(slices.Clip(r.Events), e)
		}
	}
	if !m.Orders.Replace(seen, r) {
		return there, order.ErrStale
	}
	m.kept[after.OrderID] = kept{now.Items, now.Outside}
	now, _, err = m.account(after.OrderID)
	return now, err
}

// mergeItem writes into now what is changes of was. stale reports whether now differs
// from was in one of these fields, or in what every write of the refund rests on.
func mergeItem(now *refund.Item, was, is refund.Item) (stale bool) {
	if was == is {
		return false
	}
	stale = now.Status != was.Status || now.Owner != was.Owner || now.Attempt != was.Attempt ||
		!now.Until.Equal(was.Until) || now.KeySeq != was.KeySeq || !now.SentAt.Equal(was.SentAt)
	now.Status, now.Owner, now.Attempt, now.Until = is.Status, is.Owner, is.Attempt, is.Until
	now.KeySeq, now.SentAt = is.KeySeq, is.SentAt
	for _, lost := range [...]bool{
		ordertest.Set(&now.Amount, was.Amount, is.Amount), ordertest.Set(&now.Reason, was.Reason, is.Reason),
		ordertest.Set(&now.Fingerprint, was.Fingerprint, is.Fingerprint),
		ordertest.Set(&now.Refund, was.Refund, is.Refund), ordertest.Set(&now.Failure, was.Failure, is.Failure),
		ordertest.Set(&now.LastError, was.LastError, is.LastError),
		ordertest.Set(&now.CreatedAt, was.CreatedAt, is.CreatedAt),
		ordertest.Set(&now.UpdatedAt, was.UpdatedAt, is.UpdatedAt),
	} {
		stale = stale || lost
	}
	return stale
}

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
