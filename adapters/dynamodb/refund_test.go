package dynamodb_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

func TestRefunds(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	refundtest.TestStore(t, func(*testing.T) (ordertest.Store, refundtest.Store) {
		store := dynamodb.New(h.Config, h.Table)
		return store, &dynamodb.Refunds{Store: store}
	})
}

// A new refund costs three calls and a duplicate one, beside the provider's.
func TestCallsOfARefund(t *testing.T) {
	t.Parallel()
	f := open(t)
	store := &dynamodb.Refunds{Store: f.Store}
	f.settled("O1", order.Paid)
	r, err := refund.New(refund.Draft{OrderID: "O1", RefundID: "R1", Amount: 1000, Reason: "duplicate"})
	f.must(err)
	f.Proxy.Reset()
	c, err := store.Begin(t.Context(), r, lease("first"))
	f.must(err)
	c, err = store.Mark(t.Context(), c, 1, at(0))
	f.must(err)
	f.must(store.Finish(t.Context(), c, refund.Outcome{Status: refund.Succeeded, Refund: "re_1"}, at(0)))
	if diff := cmp.Diff(map[string]int{"UpdateItem": 2, "TransactWriteItems": 1}, f.Proxy.Counts()); diff != "" {
		t.Errorf("calls of a new refund (-want +got):\n%s", diff)
	}
	f.Proxy.Reset()
	if _, err := store.Begin(t.Context(), r, lease("second")); err == nil {
		t.Error("got no error for a duplicate, want one")
	}
	if diff := cmp.Diff(map[string]int{"UpdateItem": 1}, f.Proxy.Counts()); diff != "" {
		t.Errorf("calls of a duplicate (-want +got):\n%s", diff)
	}
	f.Proxy.Reset()
	duplicate := order.Lease{Owner: "third", From: at(time.Hour), Until: at(2 * time.Hour)}
	if _, err := f.Begin(t.Context(), ordertest.Order("O1"), duplicate); err == nil || f.Proxy.Total() != 1 {
		t.Errorf("a duplicate of the order: got error %v and %d calls, want a SettledError and 1", err, f.Proxy.Total())
	}
}
