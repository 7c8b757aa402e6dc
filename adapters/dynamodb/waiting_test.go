package dynamodb_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
)

func TestWaiting(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	s := dynamodb.New(h.Config, h.Table)
	ordertest.TestDue(t, func(*testing.T) (order.Store, settle.Waiting) { return s, s })
}

// A page has 100 orders, and the orders of one shard are many pages. Orders of every
// shard are found, and each shard comes first in some run of any schedule, exact to the
// minute.
func TestDueReturnsEveryPageAndBeginsAtAnotherShard(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const orders = 250
	for i := 0; i < orders; i += 25 {
		var puts []types.WriteRequest
		for n := i; n < i+25; n++ { // the first 16 in a shard each, and all others in one
			due := noon.Add(-time.Hour)
			if n >= orders-30 {
				due = noon.Add(1000 * time.Hour)
			}
			puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: row{
				"orderId": text(fmt.Sprintf("ORD-%03d", n)), "sk": text("order"),
				"openShard": number(int64(min(n, 15))), "dueAt": number(due.UnixMilli()),
			}}})
		}
		in := &sdk.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{h.Table: puts}}
		if _, err := h.Client.BatchWriteItem(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	s := dynamodb.New(h.Config, h.Table)
	found := map[order.ID]bool{}
	for id, err := range s.Due(t.Context(), noon) {
		if err != nil {
			t.Fatal(err)
		}
		found[id] = true
	}
	if len(found) != orders-30 || !found["ORD-000"] || !found["ORD-219"] || found["ORD-220"] {
		t.Errorf("got %d orders, want the %d that are due", len(found), orders-30)
	}
	for _, every := range []time.Duration{time.Minute, 5 * time.Minute, 16 * time.Minute, time.Hour} {
		first := map[order.ID]bool{}
		for n := range 100 {
			for id, err := range s.Due(t.Context(), noon.Add(time.Duration(n)*every)) {
				if err != nil {
					t.Fatal(err)
				}
				first[id] = true
				break
			}
		}
		if len(first) != 16 {
			t.Errorf("every %v: got %d shards that came first, want 16: %v", every, len(first), first)
		}
	}
}

func TestDueEndsAtTheFirstError(t *testing.T) {
	t.Parallel()
	s := newStore(alwaysResponds(http.StatusBadRequest, `{"__type":"AccessDeniedException"}`))
	n := 0
	for id, err := range s.Due(t.Context(), time.UnixMilli(1)) {
		if n++; id != "" || err == nil {
			t.Errorf("got %q, %v, want an error", id, err)
		}
	}
	if n != 1 {
		t.Errorf("got %d results, want one error", n)
	}
}
