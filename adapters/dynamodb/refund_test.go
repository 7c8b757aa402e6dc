package dynamodb_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	refundtable "orderonce/adapters/dynamodb/refunds"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

func TestRefunds(t *testing.T) {
	t.Parallel()
	f := open(t)
	refundtest.TestStore(t, func(*testing.T) (order.Store, refund.Store) { return f.Store, refundtable.New(f.Store) })
}

// A new refund costs four calls and a duplicate one, beside the provider's.
func TestCallsOfARefund(t *testing.T) {
	t.Parallel()
	f := open(t)
	store := refundtable.New(f.Store)
	f.settled("O1")
	r, err := refund.New(refund.Draft{OrderID: "O1", RefundID: "R1", Amount: 1000, Reason: "duplicate"})
	f.must(err)
	f.Proxy.Reset()
	c, err := refund.Begin(t.Context(), store, r, lease("first"))
	f.must(err)
	c, err = c.Mark(t.Context(), store, 1, at(0))
	f.must(err)
	f.must(c.Finish(t.Context(), store, refund.Outcome{Status: refund.Succeeded, Refund: "re_1"}, at(0)))
	if diff := cmp.Diff(map[string]int{"GetItem": 1, "UpdateItem": 2, "TransactWriteItems": 1}, f.Proxy.Counts()); diff != "" {
		t.Errorf("calls of a new refund (-want +got):\n%s", diff)
	}
	f.Proxy.Reset()
	if _, err := refund.Begin(t.Context(), store, r, lease("second")); err == nil {
		t.Error("got no error for a duplicate, want one")
	}
	if diff := cmp.Diff(map[string]int{"GetItem": 1}, f.Proxy.Counts()); diff != "" {
		t.Errorf("calls of a duplicate (-want +got):\n%s", diff)
	}
	f.Proxy.Reset()
	duplicate := order.Lease{Owner: "third", From: at(time.Hour), Until: at(2 * time.Hour)}
	if _, err := order.Begin(t.Context(), f, ordertest.Order("O1"), duplicate, nil); err == nil || f.Proxy.Total() != 1 {
		t.Errorf("a duplicate of the order: got error %v and %d calls, want a SettledError and 1", err, f.Proxy.Total())
	}
}

// A refund that was edited by hand is an error, and not a wrong decision about money.
func TestACorruptRefundIsRejected(t *testing.T) {
	t.Parallel()
	f := open(t)
	store := refundtable.New(f.Store)
	refunded := func(damaged string, value types.AttributeValue) row {
		made := row{
			"amount": number(1000), "status": text("succeeded"), "fingerprint": text("v1:x"), "attempt": number(1),
			"keySeq": number(1), "createdAt": millis(0), "updatedAt": millis(0), "sentAt": millis(0),
		}
		item := openRow()
		item["status"], item["refundable"], item["refundedOutside"] = text("paid"), number(2000), number(998)
		if made[damaged] != nil {
			made[damaged] = value
		} else {
			set(item, damaged, value)
		}
		item["refund#R1"] = &types.AttributeValueMemberM{Value: made}
		return item
	}
	f.put(refunded("none", nil))
	if a, err := store.Load(t.Context(), "O1"); err != nil || a.Left() != 2000 {
		t.Fatalf("got %+v, %v, want 20.00 left", a, err)
	}
	for damaged, value := range map[string]types.AttributeValue{
		"refundable": number(2001), "refundedOutside": text("all"), "amount": text("ten"), "keySeq": text("1"),
		"sentAt": text("yesterday"), "fingerprint": number(1), "updatedAt": text("today"),
	} {
		f.put(refunded(damaged, value))
		if _, err := store.Load(t.Context(), "O1"); !errors.Is(err, order.ErrCorrupt) || !names(err, damaged) {
			t.Errorf("%s: got %v, want %v with the attribute", damaged, err, order.ErrCorrupt)
		}
	}
}

// A row of a release that knew no refunds does not say what is left of its charge.
func TestARowOfAnOlderReleaseCanBeRefunded(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.settled("O1")
	r, err := refund.New(refund.Draft{OrderID: "O1", RefundID: "R1", Amount: 1000, Reason: "duplicate"})
	f.must(err)
	store := refundtable.New(f.Store)
	c, err := refund.Begin(t.Context(), store, r, lease("first"))
	if err != nil || c.Account.Left() != 2998 {
		t.Errorf("got %+v, %v, want 29.98 left", c.Account, err)
	}
	if a, err := store.Load(t.Context(), "O1"); err != nil || a.Left() != 2998 {
		t.Errorf("got %+v, %v, want 29.98 left", a, err)
	}
}
