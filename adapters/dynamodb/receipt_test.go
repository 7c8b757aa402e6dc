package dynamodb_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	receipttable "orderonce/adapters/dynamodb/receipts"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/receipt/receipttest"
)

// openReceipts returns an empty table of receipts, which is the fixture's Table.
func openReceipts(t *testing.T) (fixture, *receipttable.Store) {
	t.Helper()
	f := open(t)
	f.Table += "-receipts"
	f.must(dynamodbtest.Create(t.Context(), f.Client, dynamodbtest.ReceiptsDefinition(f.Table)))
	f.Proxy.Reset()
	return f, receipttable.New(f.Config, f.Table)
}

func TestReceipts(t *testing.T) {
	t.Parallel()
	_, store := openReceipts(t)
	receipttest.TestStore(t, func(*testing.T) receipt.Store { return store })
}

func claim() receipt.Item {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	return receipt.Item{
		OrderID: "ORD-1", Key: receipt.Paid, Status: receipt.Sending, Owner: "owner", Until: now.Add(time.Minute),
		Attempt: 1, Revision: 1, CreatedAt: now, UpdatedAt: now,
	}
}

// Otherwise a claim would be lost to itself, and the e-mail never sent.
func TestAClaimWhoseAnswerWasLostIsKept(t *testing.T) {
	t.Parallel()
	f, store := openReceipts(t)
	f.Proxy.Fail(dynamodbtest.Fault{Kind: dynamodbtest.LoseAfter, Number: 1, Times: 1})
	precise := claim()
	precise.Until = precise.Until.Add(123 * time.Nanosecond) // the table stores milliseconds
	_, err := store.Save(t.Context(), receipt.Item{}, precise)
	f.must(err)
	if diff := cmp.Diff(f.Proxy.Counts(), map[string]int{"PutItem": 2}); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
}

// A receipt that was edited by hand is an error, and not a second e-mail.
func TestACorruptReceiptIsRefused(t *testing.T) {
	t.Parallel()
	f, store := openReceipts(t)
	_, err := store.Save(t.Context(), receipt.Item{OrderID: "ORD-1", Key: receipt.Paid}, claim())
	f.must(err)
	all, err := f.Client.Scan(t.Context(), &sdk.ScanInput{TableName: &f.Table})
	f.must(err)
	for attribute, want := range map[string]error{"owner": order.ErrCorrupt, "status": order.ErrUnknownVersion} {
		damaged := maps.Clone(all.Items[0])
		damaged[attribute] = text("")
		f.put(damaged)
		_, err := store.Load(t.Context(), "ORD-1", receipt.Paid)
		if _, listErr := store.OfOrder(t.Context(), "ORD-1"); !errors.Is(err, want) || !errors.Is(listErr, want) {
			t.Errorf("%s: got %v and %v from the list, want %v", attribute, err, listErr, want)
		}
	}
}

func TestReceiptsAreListedByOrderAndByDoubt(t *testing.T) {
	t.Parallel()
	f, store := openReceipts(t)
	item := func(id order.ID, k receipt.Key, s receipt.Status, revision int) receipt.Item {
		i := claim()
		i.OrderID, i.Key, i.Status, i.Owner, i.Until, i.Revision = id, k, s, "", time.Time{}, revision
		return i
	}
	want := []receipt.Item{
		item("ORD-1", receipt.Paid, receipt.Failed, 1), item("ORD-1", receipt.OfRefund("R-1"), receipt.Sent, 1),
		item("ORD-1", receipt.OfRefund("R-2"), receipt.Failed, 1),
	}
	for _, i := range append(want, item("ORD-10", receipt.Paid, receipt.Sent, 1)) {
		_, err := store.Save(t.Context(), receipt.Item{}, i)
		f.must(err)
	}
	got, err := store.OfOrder(t.Context(), "ORD-1")
	if diff := cmp.Diff(got, want); err != nil || diff != "" {
		t.Errorf("receipts of the order: %v (-got +want):\n%s", err, diff)
	}
	before := want[0]
	for n, s := range []receipt.Status{receipt.Doubtful, receipt.Sent, receipt.Delivered, receipt.Bounced} {
		after := item("ORD-1", receipt.Paid, s, n+2)
		_, err := store.Save(t.Context(), before, after)
		f.must(err)
		before = after
		listed := 0
		for i, err := range store.Doubtful(t.Context()) {
			if listed++; err != nil || i != after {
				t.Errorf("got %+v, %v, want %+v", i, err, after)
			}
		}
		if (listed == 1) != (s == receipt.Doubtful) {
			t.Errorf("a %s receipt: %d listed", s, listed)
		}
	}
}
