package receipttest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/receipt"
)

// Store is a store of receipts and its list of doubts.
type Store interface {
	receipt.Store
	receipt.Doubts
}

// TestStore tests the contracts of receipt.Store and receipt.Doubts. open returns a
// store. It may be the same each time: no two tests of one run use the same order.
func TestStore(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	ordertest.TestSaves(t, func(t *testing.T) ordertest.Saves[receipt.Item] {
		t.Helper()
		return saves(open(t))
	})
	t.Run("the receipts of one order are listed and no others", func(t *testing.T) { testOfOrder(t, open(t)) })
	t.Run("a receipt is listed as doubtful exactly while it is", func(t *testing.T) { testDoubtful(t, open(t)) })
}

// item returns a receipt with what every one has.
func item(id order.ID, k receipt.Key, s receipt.Status, revision int) receipt.Item {
	at := time.Date(2026, 5, 1, 12, 0, revision, 0, time.UTC)
	return receipt.Item{
		OrderID: id, Key: k, Status: s, Attempt: 1, Revision: revision, CreatedAt: at, UpdatedAt: at,
	}
}

// saves returns a store for TestSaves. Every write counts the revision, so that each
// refuses every other one.
func saves(s Store) ordertest.Saves[receipt.Item] {
	all := ordertest.FieldsBut[receipt.Item]("OrderID", "Key", "Status", "Owner", "Revision")
	all = append(all, ordertest.Field[receipt.Item]{Name: "claim", Copy: func(to *receipt.Item, from receipt.Item) {
		to.Status, to.Owner = from.Status, from.Owner
	}})
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
		Bare:    func(id order.ID) receipt.Item { return item(id, receipt.Paid, receipt.Failed, 1) },
		Full: func(id order.ID) receipt.Item {
			i := item(id, receipt.Paid, receipt.Sending, 2)
			i.Owner, i.Until, i.Attempt = "owner", i.UpdatedAt.Add(time.Minute), 2
			i.Message, i.Failure = "message-1", "why"
			return i
		},
		Fields: all, Stale: func(string, string) bool { return true },
	}
}

func mustSave(t *testing.T, s Store, before, after receipt.Item) {
	t.Helper()
	if _, err := s.Save(t.Context(), before, after); err != nil {
		t.Fatal(err)
	}
}

func testOfOrder(t *testing.T, s Store) {
	t.Helper()
	want := []receipt.Item{
		item("listed", receipt.Paid, receipt.Sent, 1), item("listed", receipt.OfRefund("R-1"), receipt.Doubtful, 1),
		item("listed", receipt.OfRefund("R-2"), receipt.Failed, 1),
	}
	for _, i := range append(want, item("listed-not", receipt.Paid, receipt.Sent, 1)) {
		mustSave(t, s, receipt.Item{}, i)
	}
	got, err := s.OfOrder(t.Context(), "listed")
	if diff := cmp.Diff(got, want); err != nil || diff != "" {
		t.Errorf("receipts of the order: %v (-got +want):\n%s", err, diff)
	}
}

func testDoubtful(t *testing.T, s Store) {
	t.Helper()
	before := receipt.Item{}
	for n, status := range []receipt.Status{
		receipt.Failed, receipt.Doubtful, receipt.Sent, receipt.Delivered, receipt.Bounced,
	} {
		after := item("doubt", receipt.Paid, status, n+1)
		mustSave(t, s, before, after)
		before = after
		var own []receipt.Item // of this order
		for i, err := range s.Doubtful(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if i.OrderID == "doubt" {
				own = append(own, i)
			}
		}
		if slices.Contains(own, after) != (status == receipt.Doubtful) || len(own) > 1 {
			t.Errorf("a %s receipt: listed %v", status, own)
		}
	}
}
