package dynamodb_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
)

func TestWaiting(t *testing.T) {
	t.Parallel()
	s := open(t).Store
	ordertest.TestDue(t, func(*testing.T) (order.Store, settle.Waiting) { return s, s })
}

// A page has 100 orders, and the orders of one shard are many pages. Orders of every
// shard are found, and each shard comes first in some run of any schedule, exact to the
// minute.
func TestDueReturnsEveryPageAndBeginsAtAnotherShard(t *testing.T) {
	t.Parallel()
	f := open(t)
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
		in := &sdk.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{f.Table: puts}}
		_, err := f.Client.BatchWriteItem(t.Context(), in)
		f.must(err)
	}
	found := map[order.ID]bool{}
	for id, err := range f.DueIn(t.Context(), dynamodb.OrderShards, 16, noon) {
		f.must(err)
		found[id] = true
	}
	if len(found) != orders-30 || !found["ORD-000"] || !found["ORD-219"] || found["ORD-220"] {
		t.Errorf("got %d orders, want the %d that are due", len(found), orders-30)
	}
	for _, every := range []time.Duration{time.Minute, 5 * time.Minute, 16 * time.Minute, time.Hour} {
		first := map[order.ID]bool{}
		for n := range 100 {
			for id, err := range f.DueIn(t.Context(), dynamodb.OrderShards, 16, noon.Add(time.Duration(n)*every)) {
				f.must(err)
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

// Whatever the counts of two releases: the one with more shards reads each that the other
// writes, and no order waits among the registrations of any release.
func TestShardsOfOrdersAndRegistrationsNeverMeet(t *testing.T) {
	t.Parallel()
	kind := map[uint32]uint32{}
	for _, shards := range []uint32{1, 15, 16, 17, 32, 33, 48, 64, 100, 256} {
		for n := range 5000 {
			id := order.ID(fmt.Sprintf("ORD-%d", n))
			for _, first := range []uint32{dynamodb.OrderShards, dynamodb.RegistrationShards} {
				key := dynamodb.ShardKeyOf(first, id, shards)
				if of, known := kind[key]; known && of != first {
					t.Fatalf("%d shards: key %d is one of both kinds", shards, key)
				}
				if kind[key] = first; shards == 16 && key != first+dynamodb.ShardOf(id, 16) {
					t.Fatalf("16 shards: got key %d, want that of release 0.1.0", key)
				}
			}
		}
		if len(kind) != 2*int(shards) {
			t.Errorf("%d shards: got %d keys of this count and of smaller ones, want 2 for each shard", shards, len(kind))
		}
	}
}

// While a release with 64 shards rolls out, the rows of both counts wait in the index.
// Each release takes over and ends the orders of the other, and leaves no key behind.
func TestTheCountOfShardsMayGrow(t *testing.T) {
	t.Parallel()
	f := open(t)
	fewer, more := map[order.ID]bool{}, map[order.ID]bool{}
	for n := range 40 {
		id := order.ID(fmt.Sprintf("O-%d", n))
		f.bound(id)
		item, shards := f.rows(id)[0], []uint32{16, 64}[n%2] // of the release that wrote it
		item["openShard"] = number(int64(dynamodb.ShardKeyOf(dynamodb.OrderShards, id, shards)))
		f.put(item)
		if more[id] = true; dynamodb.ShardOf(id, shards) < 16 {
			fewer[id] = true
		}
	}
	wantDue := func(shards uint32, want map[order.ID]bool) {
		t.Helper()
		found := map[order.ID]bool{}
		for id, err := range f.DueIn(t.Context(), dynamodb.OrderShards, shards, at(time.Hour)) {
			f.must(err)
			found[id] = true
		}
		if diff := cmp.Diff(found, want); diff != "" {
			t.Errorf("%d shards (-got +want):\n%s", shards, diff)
		}
	}
	wantDue(16, fewer)
	wantDue(64, more)
	later := order.Lease{Owner: "second", From: at(30 * time.Minute), Until: at(31 * time.Minute)}
	var claims []order.Claim
	for id := range more {
		c, err := order.Begin(t.Context(), f, ordertest.Order(id), later, nil)
		f.must(err)
		claims = append(claims, c)
	}
	wantDue(64, more)
	for _, c := range claims {
		f.must(c.Finish(t.Context(), f, asPaid(), at(time.Hour)))
	}
	wantDue(64, map[order.ID]bool{})
}
