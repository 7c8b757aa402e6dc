package system_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/invariants"
	"orderonce/scripts/local/system"
)

//nolint:ireturn // as the SDK has it
func text(s string) types.AttributeValue {
	return &types.AttributeValueMemberS{Value: s}
}

//nolint:ireturn // as the SDK has it
func number(s string) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: s}
}

func TestAttributes(t *testing.T) {
	t.Parallel()
	item := system.Item{"status": text("paid"), "amount": number("1999")}
	if got := system.Text(item, "status"); got != "paid" {
		t.Errorf("status = %q, want paid", got)
	}
	if got := system.Number(item, "amount"); got != 1999 {
		t.Errorf("amount = %d, want 1999", got)
	}
	for _, name := range []string{"amount", "nothing"} {
		if got := system.Text(item, name); got != "" {
			t.Errorf("Text(%s) = %q, want none", name, got)
		}
	}
	for _, name := range []string{"status", "nothing"} {
		if got := system.Number(item, name); got != 0 {
			t.Errorf("Number(%s) = %d, want 0", name, got)
		}
	}
}

//nolint:ireturn // as the SDK has it
func refundMap(status, stripeID string) types.AttributeValue {
	m := system.Item{
		"amount": number("350"), "reason": text("duplicate"), "status": text(status), "attempt": number("2"),
		"keySeq": number("1"), "failure": text("code"), "lastError": text("store"),
	}
	if stripeID != "" {
		m["stripeRefundId"] = text(stripeID)
	}
	return &types.AttributeValueMemberM{Value: m}
}

func TestAdd(t *testing.T) {
	t.Parallel()
	got := invariants.Order{Record: order.Record{OrderID: "A"}}
	for _, item := range []system.Item{
		{
			"sk": text("order"), "customerId": text("CUST-1"), "amount": number("1999"), "currency": text("usd"),
			"fingerprint": text("v1:00"), "status": text("declined"), "attempt": number("2"), "seq": number("1"), "owner": text("me"),
			"intentId": text("pi_1"), "failure": text("card_declined"), "lastError": text("provider_unknown"),
			"disputeId": text("du_1"), "disputeStatus": text("open"), "refundable": number("999"), "refundedOutside": number("300"),
			"refund#B": refundMap("open", ""), "refund#A": refundMap("succeeded", "re_1"),
		},
		{
			"sk": text("event#000001"), "seq": number("1"), "from": text("open"), "to": text("declined"), "intentId": text("pi_1"),
			"failure": text("card_declined"),
		},
		{
			"sk": text("event#000002"), "seq": number("2"), "from": text("declined"), "to": text("declined"), "intentId": text("pi_1"),
			"disputeId": text("du_1"), "disputeStatus": text("open"),
		},
		{
			"sk": text("event#000003"), "seq": number("3"), "from": text("paid"), "to": text("refunded"), "intentId": text("pi_1"),
			"refundId": text("R"), "refundStatus": text("pending"), "refundAmount": number("1999"),
		},
	} {
		must(t, system.Add(&got, item))
	}
	record := order.Record{
		OrderID: "A", CustomerID: "CUST-1", Total: order.Money{Amount: 1999, Currency: "usd"}, Fingerprint: "v1:00",
		Status: order.Declined, Owner: "me", Attempt: 2, Intent: "pi_1", Failure: "card_declined", LastError: "provider_unknown", Seq: 1,
		Dispute: order.Dispute{ID: "du_1", Status: order.DisputeOpen},
		Events: []order.Event{
			{Seq: 1, From: order.Open, To: order.Declined, Intent: "pi_1", Failure: "card_declined"},
			{
				Seq: 2, From: order.Declined, To: order.Declined, Intent: "pi_1",
				Dispute: order.Dispute{ID: "du_1", Status: order.DisputeOpen},
			},
			{
				Seq: 3, From: order.Paid, To: order.Refunded, Intent: "pi_1",
				Refund: order.RefundEvent{ID: "R", Status: "pending", Amount: 1999},
			},
		},
	}
	item := refund.Item{Amount: 350, Reason: refund.Duplicate, Attempt: 2, KeySeq: 1, Failure: "code", LastError: "store"}
	made, open := item, item
	made.ID, made.Status, made.Refund = "A", refund.Succeeded, "re_1"
	open.ID, open.Status = "B", refund.Open
	want := invariants.Order{Record: record, Refunds: []refund.Item{made, open}, Outside: 300, Left: 999}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("- got, + want:\n%s", diff)
	}
	if err := system.Add(&got, system.Item{"sk": text("lock")}); err == nil {
		t.Error("got no error for an unknown sort key")
	}
}

func TestAnOrderWithoutRefundsHasAllLeft(t *testing.T) {
	t.Parallel()
	var got invariants.Order
	must(t, system.Add(&got, system.Item{"sk": text("order"), "amount": number("1999")}))
	if got.Left != 1999 {
		t.Errorf("got %d left, want 1999", got.Left)
	}
}

func TestATableHasAUniqueNameInASharedEngine(t *testing.T) {
	t.Parallel()
	if got := system.TableIn(dynamodbtest.Location{Binary: "dynoxide"}, "orders"); got != "orders" {
		t.Errorf("got %q, want orders in an engine of our own", got)
	}
	shared := dynamodbtest.Location{Endpoint: "http://127.0.0.1:8000"}
	if one, other := system.TableIn(shared, "orders"), system.TableIn(shared, "orders"); one == other {
		t.Errorf("two systems share the table %q", one)
	}
}
