package receipttest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
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
	for claim, test := range map[string]func(storeTest){
		"an item that does not exist has revision 0":               storeTest.loadsNothing,
		"load returns what save wrote":                             storeTest.saves,
		"save of another revision is refused and leaves no trace":  storeTest.refusesStale,
		"a repeated save changes nothing and is no error":          storeTest.repeats,
		"of fifty claims at once, one is saved":                    storeTest.races,
		"the receipts of one order are listed and no others":       storeTest.listsOfOrder,
		"a receipt is listed as doubtful exactly while it is":      storeTest.listsDoubts,
		"a second receipt of an order is independent of the first": storeTest.keepsKeysApart,
	} {
		t.Run(claim, func(t *testing.T) {
			id := order.ID(strings.Map(func(r rune) rune {
				if r == ' ' || r == ',' {
					return '-'
				}
				return r
			}, claim))
			test(storeTest{T: t, Store: open(t), id: id})
		})
	}
}

type storeTest struct {
	*testing.T
	Store

	id order.ID
}

func noon() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// item returns a receipt in a status, with every field that it can have.
func (t storeTest) item(k receipt.Key, s receipt.Status, revision int) receipt.Item {
	i := receipt.Item{
		OrderID: t.id, Key: k, Status: s, Attempt: 1, Revision: revision,
		CreatedAt: noon(), UpdatedAt: noon().Add(time.Duration(revision) * time.Second),
	}
	switch s {
	case receipt.Sending:
		i.Owner, i.Until = "owner", noon().Add(time.Minute)
	case receipt.Sent, receipt.Delivered, receipt.Bounced:
		i.Message = "message-1"
	case receipt.Doubtful, receipt.Failed:
		i.Failure = "why"
	}
	return i
}

func (t storeTest) save(before, after receipt.Item) {
	t.Helper()
	if err := t.Save(t.Context(), before, after); err != nil {
		t.Fatal(err)
	}
}

func (t storeTest) want(want receipt.Item) {
	t.Helper()
	got, err := t.Load(t.Context(), want.OrderID, want.Key)
	if diff := cmp.Diff(got, want); err != nil || diff != "" {
		t.Errorf("load: %v (-got +want):\n%s", err, diff)
	}
}

func (t storeTest) loadsNothing() { t.want(receipt.Item{OrderID: t.id, Key: receipt.Paid}) }

func (t storeTest) saves() {
	before := receipt.Item{}
	for n, s := range []receipt.Status{
		receipt.Sending, receipt.Doubtful, receipt.Sent, receipt.Delivered, receipt.Bounced, receipt.Failed,
	} {
		after := t.item(receipt.Paid, s, n+1)
		t.save(before, after)
		t.want(after)
		before = after
	}
}

func (t storeTest) refusesStale() {
	first := t.item(receipt.Paid, receipt.Sending, 1)
	second := t.item(receipt.Paid, receipt.Sent, 2)
	for _, before := range []receipt.Item{first, second} { // neither exists
		if err := t.Save(t.Context(), before, second); !errors.Is(err, order.ErrStale) {
			t.Errorf("save after revision %d of nothing: got %v, want ErrStale", before.Revision, err)
		}
	}
	t.want(receipt.Item{OrderID: t.id, Key: receipt.Paid})
	t.save(receipt.Item{}, first)
	t.save(first, second)
	for _, before := range []receipt.Item{{}, first} {
		err := t.Save(t.Context(), before, t.item(receipt.Paid, receipt.Doubtful, before.Revision+1))
		if !errors.Is(err, order.ErrStale) {
			t.Errorf("save after revision %d: got %v, want ErrStale", before.Revision, err)
		}
	}
	t.want(second)
}

func (t storeTest) repeats() {
	first := t.item(receipt.Paid, receipt.Sending, 1)
	t.save(receipt.Item{}, first)
	t.save(receipt.Item{}, first)
	t.want(first)
	another := first
	another.Owner = "another"
	if err := t.Save(t.Context(), receipt.Item{}, another); !errors.Is(err, order.ErrStale) {
		t.Errorf("the same claim of another owner: got %v, want ErrStale", err)
	}
}

func (t storeTest) races() {
	var wait sync.WaitGroup
	results := make([]error, 50)
	for n := range results {
		wait.Go(func() {
			i := t.item(receipt.Paid, receipt.Sending, 1)
			i.Owner = fmt.Sprintf("owner-%d", n)
			results[n] = t.Save(t.Context(), receipt.Item{}, i)
		})
	}
	wait.Wait()
	won := 0
	for _, err := range results {
		if err == nil {
			won++
		} else if !errors.Is(err, order.ErrStale) {
			t.Errorf("got %v, want ErrStale", err)
		}
	}
	if won != 1 {
		t.Errorf("%d claims were saved, want 1", won)
	}
}

func (t storeTest) keepsKeysApart() {
	refund := receipt.OfRefund("R-1")
	t.save(receipt.Item{}, t.item(receipt.Paid, receipt.Sent, 1))
	t.want(receipt.Item{OrderID: t.id, Key: refund})
	t.save(receipt.Item{}, t.item(refund, receipt.Failed, 1))
	t.want(t.item(receipt.Paid, receipt.Sent, 1))
}

func (t storeTest) listsOfOrder() {
	other := t
	other.id += "-other"
	want := []receipt.Item{
		t.item(receipt.Paid, receipt.Sent, 1), t.item(receipt.OfRefund("R-1"), receipt.Doubtful, 1),
		t.item(receipt.OfRefund("R-2"), receipt.Failed, 1),
	}
	for _, i := range append(want, other.item(receipt.Paid, receipt.Sent, 1)) {
		t.save(receipt.Item{}, i)
	}
	got, err := t.OfOrder(t.Context(), t.id)
	if diff := cmp.Diff(got, want); err != nil || diff != "" {
		t.Errorf("receipts of the order: %v (-got +want):\n%s", err, diff)
	}
}

func (t storeTest) listsDoubts() {
	sending, doubtful := t.item(receipt.Paid, receipt.Sending, 1), t.item(receipt.Paid, receipt.Doubtful, 2)
	for _, step := range []struct {
		before, after receipt.Item
		listed        bool
	}{
		{receipt.Item{}, sending, false},
		{sending, doubtful, true},
		{doubtful, t.item(receipt.Paid, receipt.Sent, 3), false},
	} {
		t.save(step.before, step.after)
		if got := t.doubts(); slices.Contains(got, step.after) != step.listed || len(got) > 1 {
			t.Errorf("a %s receipt: listed %v, want %v", step.after.Status, got, step.listed)
		}
	}
}

// doubts returns the doubtful receipts of the test's order.
func (t storeTest) doubts() (own []receipt.Item) {
	t.Helper()
	for i, err := range t.Doubtful(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if i.OrderID == t.id {
			own = append(own, i)
		}
	}
	return own
}
