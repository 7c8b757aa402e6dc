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
)

func TestWaiting(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	ordertest.TestWaiting(t, func(*testing.T) ordertest.WaitingStore { return dynamodb.New(h.Config, h.Table) })
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
