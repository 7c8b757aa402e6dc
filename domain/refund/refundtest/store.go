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

// fields returns the fields of the order's money, of the first refund, and the second
// refund as one.
func fields() []ordertest.Field[refund.Account] {
	type field = ordertest.Field[refund.Account]
	all := ordertest.FieldsBut[refund.Account]("OrderID", "Charged", "Intent", "Trace", "Items", "Events")
	for _, f := range ordertest.FieldsBut[refund.Item]("ID") {
		all = append(all, field{Name: "R1 " + f.Name, Copy: func(to *refund.Account, from refund.Account) {
			to.Items = slices.Clone(to.Items)
			f.Copy(&to.Items[0], from.Items[0])
		}})
	}
	return append(all, field{Name: "R2", Copy: func(to *refund.Account, from refund.Account) {
		to.Items = slices.Clone(to.Items)
		to.Items[1] = from.Items[1]
	}})
}

// stale reports what a write rests on: the order, what is left of its charge, and the
// refund that the write changes.
func stale(meanwhile, write string) bool {
	of := []string{"Status", "UpdatedAt", "Seq", "Due", "Outside", "R2"}
	claim := []string{"R1 Status", "R1 Owner", "R1 Until", "R1 Attempt", "R1 KeySeq", "R1 SentAt"}
	if slices.Contains(claim, meanwhile) && !slices.Contains(of, write) {
		return true
	}
	guard := []string{"Status", "Seq", "Outside", "R1 Amount"}
	return ordertest.AnyOf(guard, []string{"UpdatedAt"})(meanwhile, write)
}
