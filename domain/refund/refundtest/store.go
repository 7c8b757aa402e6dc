package refundtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
)

// Scope is the scope of the orders in these tests.
const Scope = order.Scope("test")

// paidFor is the total of ordertest.Order.
const paidFor = 3998

// TestStore tests the contract of refund.Store. open returns a store of refunds and the
// store of its orders. They may be the same each time: no two tests of one run use the
// same order.
func TestStore(t *testing.T, open func(t *testing.T) (order.Store, refund.Store)) {
	t.Helper()
	ordertest.TestSaves(t, func(t *testing.T) ordertest.Saves[refund.Account] {
		t.Helper()
		orders, store := open(t)
		return saves(orders, store)
	})
}

func noon() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// paid returns the record of a paid order.
func paid(id order.ID) order.Record {
	return order.Record{
		OrderID: id, Total: order.Money{Amount: 5000, Currency: "usd"}, Fingerprint: "v1:x", Status: order.Paid,
		Attempt: 1, Intent: "pi_1", Seq: 1, CreatedAt: noon(), UpdatedAt: noon(),
	}
}

// account returns the account of a paid order with two refunds.
func account(id order.ID, r1 refund.Item) refund.Account {
	r2 := refund.Item{
		ID: "R2", Amount: 10, Fingerprint: "v1:y", Status: refund.Open, Attempt: 1, KeySeq: 1,
		CreatedAt: noon(), UpdatedAt: noon(),
	}
	p := paid(id)
	return refund.Account{
		OrderID: id, Status: p.Status, Charged: p.Total, Intent: p.Intent, Seq: p.Seq, UpdatedAt: noon(),
		Items: []refund.Item{r1, r2},
	}
}

// saves returns a store for TestSaves. An order that does not exist has no account: the
// first write saves its record too.
func saves(orders order.Store, store refund.Store) ordertest.Saves[refund.Account] {
	return ordertest.Saves[refund.Account]{
		Load: func(ctx context.Context, id order.ID) (refund.Account, error) {
			a, err := store.Load(ctx, id)
			if errors.Is(err, order.ErrNotFound) {
				return refund.Account{OrderID: id}, nil
			}
			return a, err
		},
		Save: func(ctx context.Context, before, after refund.Account) (refund.Account, error) {
			if before.Status == "" {
				p := paid(after.OrderID)
				if _, err := orders.Save(ctx, order.Record{}, p); err != nil && !errors.Is(err, order.ErrStale) {
					return refund.Account{}, err
				}
				before = account(p.OrderID, refund.Item{})
				before.Items = nil
			}
			return store.Save(ctx, before, after)
		},
		Missing: func(id order.ID) refund.Account { return refund.Account{OrderID: id} },
		Bare: func(id order.ID) refund.Account {
			return account(id, refund.Item{
				ID: "R1", Amount: 1000, Fingerprint: "v1:x", Status: refund.Open, Attempt: 1, KeySeq: 1,
				CreatedAt: noon(), UpdatedAt: noon(),
			})
		},
		Full: func(id order.ID) refund.Account {
			later := func(n int) time.Time { return noon().Add(time.Duration(n) * time.Minute) }
			a := account(id, refund.Item{
				ID: "R1", Amount: 2000, Reason: refund.Duplicate, Fingerprint: "v1:z", Status: refund.Unknown,
				Owner: "owner", Until: later(1), Attempt: 2, KeySeq: 2, SentAt: later(2), Refund: "re_1",
				Failure:   "failure",
				LastError: "last", CreatedAt: later(3), UpdatedAt: later(4),
			})
			a.Items[1].LastError = "last"
			a.Status, a.Seq, a.Outside, a.UpdatedAt, a.Due = order.PartiallyRefunded, 7, 100, later(5), later(6)
			return a
		},
		Fields: fields(), Stale: stale,
	}
}

// item is a field of the first refund.
func item(name string, cp func(to *refund.Item, from refund.Item)) ordertest.Field[refund.Account] {
	return ordertest.Field[refund.Account]{Name: name, Copy: func(to *refund.Account, from refund.Account) {
		to.Items = slices.Clone(to.Items)
		cp(&to.Items[0], from.Items[0])
	}}
}

func fields() []ordertest.Field[refund.Account] {
	type account = refund.Account
	return []ordertest.Field[account]{
		{Name: "order's status", Copy: func(to *account, from account) { to.Status = from.Status }},
		{Name: "order's update", Copy: func(to *account, from account) { to.UpdatedAt = from.UpdatedAt }},
		{Name: "seq", Copy: func(to *account, from account) { to.Seq = from.Seq }},
		{Name: "due", Copy: func(to *account, from account) { to.Due = from.Due }},
		{Name: "outside", Copy: func(to *account, from account) { to.Outside = from.Outside }},
		{Name: "another refund", Copy: func(to *account, from account) {
			to.Items = slices.Clone(to.Items)
			to.Items[1] = from.Items[1]
		}},
		item("amount", func(to *refund.Item, from refund.Item) { to.Amount = from.Amount }),
		item("reason", func(to *refund.Item, from refund.Item) { to.Reason = from.Reason }),
		item("status", func(to *refund.Item, from refund.Item) { to.Status = from.Status }),
		item("fingerprint", func(to *refund.Item, from refund.Item) { to.Fingerprint = from.Fingerprint }),
		item("owner", func(to *refund.Item, from refund.Item) { to.Owner = from.Owner }),
		item("provider's id", func(to *refund.Item, from refund.Item) { to.Refund = from.Refund }),
		item("lease", func(to *refund.Item, from refund.Item) { to.Until = from.Until }),
		item("failure", func(to *refund.Item, from refund.Item) { to.Failure = from.Failure }),
		item("attempt", func(to *refund.Item, from refund.Item) { to.Attempt = from.Attempt }),
		item("last error", func(to *refund.Item, from refund.Item) { to.LastError = from.LastError }),
		item("key", func(to *refund.Item, from refund.Item) { to.KeySeq = from.KeySeq }),
		item("created", func(to *refund.Item, from refund.Item) { to.CreatedAt = from.CreatedAt }),
		item("sent", func(to *refund.Item, from refund.Item) { to.SentAt = from.SentAt }),
		item("updated", func(to *refund.Item, from refund.Item) { to.UpdatedAt = from.UpdatedAt }),
	}
}

// stale reports what a write rests on: the order, what is left of its charge, and the
// refund that the write changes.
func stale(meanwhile, write string) bool {
	order := []string{"order's status", "order's update", "seq", "due", "outside", "another refund"}
	claim := []string{"status", "owner", "lease", "attempt", "key", "sent"}
	if slices.Contains(claim, meanwhile) && !slices.Contains(order, write) {
		return true
	}
	guard := []string{"order's status", "seq", "outside", "amount"}
	return ordertest.AnyOf(guard, []string{"order's update"})(meanwhile, write)
}
