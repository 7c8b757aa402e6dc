package receipttest

import (
	"context"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/receipt"
)

// TestStore tests the contract of receipt.Store. open returns a store. It may be the same
// each time: no two tests of one run use the same order.
func TestStore(t *testing.T, open func(t *testing.T) receipt.Store) {
	t.Helper()
	ordertest.TestSaves(t, func(t *testing.T) ordertest.Saves[receipt.Item] {
		t.Helper()
		return saves(open(t))
	})
}

// item returns a receipt with what every one has.
func item(id order.ID, s receipt.Status, revision int) receipt.Item {
	at := time.Date(2026, 5, 1, 12, 0, revision, 0, time.UTC)
	return receipt.Item{
		OrderID: id, Key: receipt.Paid, Status: s, Attempt: 1, Revision: revision, CreatedAt: at, UpdatedAt: at,
	}
}

// saves returns a store for TestSaves. Every write counts the revision, so that each
// refuses every other one.
func saves(s receipt.Store) ordertest.Saves[receipt.Item] {
	all := ordertest.FieldsBut[receipt.Item]("OrderID", "Key", "Status", "Owner", "Revision")
	claim := func(to *receipt.Item, from receipt.Item) { to.Status, to.Owner = from.Status, from.Owner }
	all = append(all, ordertest.Field[receipt.Item]{Name: "claim", Copy: claim})
	for n, f := range all {
		all[n].Copy = func(to *receipt.Item, from receipt.Item) {
			f.Copy(to, from)
			to.Revision++
		}
	}
	return ordertest.Saves[receipt.Item]{
		Load: func(ctx context.Context, id order.ID) (receipt.Item, error) {
			return s.Load(ctx, id, receipt.Paid)
		},
		Save:    s.Save,
		Missing: func(id order.ID) receipt.Item { return receipt.Item{OrderID: id, Key: receipt.Paid} },
		Bare:    func(id order.ID) receipt.Item { return item(id, receipt.Failed, 1) },
		Full: func(id order.ID) receipt.Item {
			i := item(id, receipt.Sending, 2)
			i.Owner, i.Until, i.Attempt = "owner", i.UpdatedAt.Add(time.Minute), 2
			i.Message, i.Failure = "message-1", "why"
			return i
		},
		Fields: all, Stale: func(string, string) bool { return true },
	}
}
