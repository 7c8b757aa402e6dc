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

// A page has 100 orders, and the orders of one shard are many pages.
func TestDueReturnsEveryPage(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	const orders = 230
	for i := 0; i < orders; i += 23 {
		var puts []types.WriteRequest
		for n := i; n < i+23; n++ {
			puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: row{
				"orderId": text(fmt.Sprintf("ORD-%03d", n)), "sk": text("order"),
				"openShard": number(3), "dueAt": number(int64(orders - n)),
			}}})
		}
		in := &sdk.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{h.Table: puts}}
		if _, err := h.Client.BatchWriteItem(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[order.ID]bool{}
	for id, err := range dynamodb.New(h.Config, h.Table).Due(t.Context(), time.UnixMilli(orders-30)) {
		if err != nil {
			t.Fatal(err)
		}
		seen[id] = true
	}
	if len(seen) != orders-30 || seen["ORD-029"] || !seen["ORD-030"] || !seen["ORD-229"] {
		t.Errorf("got %d orders, want the %d that are due", len(seen), orders-30)
	}
}

// Orders of every shard are found, in a run of any time, and each shard comes first in
// some run: a schedule is exact to the minute.
func TestDueBeginsAtAnotherShard(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	s := dynamodb.New(h.Config, h.Table)
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const orders = 200 // of which each shard gets some
	for i := range orders {
		l := order.Lease{Owner: "owner", From: noon.Add(-time.Hour), Until: noon.Add(-59 * time.Minute)}
		if _, err := order.Begin(t.Context(), s, ordertest.Order(order.ID(fmt.Sprintf("ORD-%d", i))), l, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, every := range []time.Duration{time.Minute, 5 * time.Minute, 16 * time.Minute, time.Hour} {
		first := map[order.ID]int{}
		for n := range 100 {
			found := 0
			for id, err := range s.Due(t.Context(), noon.Add(time.Duration(n)*every)) {
				if err != nil {
					t.Fatal(err)
				}
				if found++; found == 1 {
					first[id]++
				}
				if n > 0 {
					break
				}
			}
			if n == 0 && found != orders {
				t.Errorf("got %d orders, want %d", found, orders)
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
