package baselines_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/scripts/lab/baselines"
)

func TestMapImplementsTable(t *testing.T) {
	t.Parallel()
	testTable(t, new(baselines.Map))
}

func TestDynamoDBImplementsTable(t *testing.T) {
	t.Parallel()
	testTable(t, newDynamoDB(t, dynamodbtest.Open(t)))
}

// newDynamoDB creates a table and drops it after the test.
func newDynamoDB(t *testing.T, engine *dynamodbtest.Harness) *baselines.DynamoDB {
	t.Helper()
	d := baselines.NewDynamoDB(engine.Config, "baselines-"+rand.Text())
	must(t, d.Create(t.Context()))
	t.Cleanup(func() { must(t, d.Drop(context.WithoutCancel(t.Context()))) })
	return d
}

// The simulation runs the baselines on Map, the storm on DynamoDB.
func TestConcurrentDeliveriesEndTheSameInMemoryAndOnDynamoDB(t *testing.T) {
	t.Parallel()
	engine := dynamodbtest.Open(t)
	for _, b := range baselines.All() {
		for _, step := range []int{1, 2} {
			concurrent := func(store baselines.Table) outcome {
				h := newHarness(t, b)
				if store != nil {
					h.store = store
				}
				h.before = h.atStep(step, func() { _ = h.deliver(paidBy("m1")) })
				_ = h.deliverUntilDeleted(paidBy("m1"))
				return h.outcome()
			}
			if got, want := concurrent(newDynamoDB(t, engine)), concurrent(nil); got != want {
				t.Errorf("%s, second delivery at step %d: got %q on DynamoDB, want %q as in memory", b.Name,
					step, got, want)
			}
		}
	}
}

// After a lost response the SDK repeats the conditional put, which fails on its own item:
// the handler takes the message for a duplicate and deletes it.
func TestALostDynamoDBResponseLosesTheOrderOfMessageIDBefore(t *testing.T) {
	t.Parallel()
	engine := dynamodbtest.Open(t)
	engine.Config.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
	}
	for name, want := range map[string]outcome{"message-id-before": lost, "message-id-after": ok, "idempotency-record-24h": ok} {
		h := harnessOf(t, name)
		h.store = newDynamoDB(t, engine)
		engine.Proxy.Fail(dynamodbtest.Fault{Operation: "PutItem", Times: 1, Kind: dynamodbtest.LoseAfter})
		_ = h.deliverUntilDeleted(paidBy("m1"))
		if got := h.outcome(); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// testTable tests the promises of Table.
func testTable(t *testing.T, table baselines.Table) {
	t.Helper()
	ctx, now := t.Context(), time.Unix(1_000, 0)
	first := baselines.Item{
		baselines.ID: baselines.S("a"), "status": baselines.S("INPROGRESS"), "in_progress_expiration": baselines.N(1_000_000),
		baselines.Expiration: baselines.N(2_000),
	}
	must(t, table.PutIf(ctx, first, baselines.Condition{}))
	second := baselines.Item{baselines.ID: baselines.S("a"), baselines.Expiration: baselines.N(1_000)}
	for claim, c := range map[string]baselines.Condition{
		"an item that exists":                     {},
		"a record in progress until its deadline": {FreeAt: now},
	} {
		failed, ok := errors.AsType[*baselines.ConditionFailedError](table.PutIf(ctx, second, c))
		if !ok || !cmp.Equal(failed.Old, first) || !cmp.Equal(get(t, table, "a"), first) {
			t.Errorf("%s: got %+v, want a *ConditionFailedError and an unchanged item", claim, failed)
		}
	}
	must(t, table.PutIf(ctx, second, baselines.Condition{FreeAt: now.Add(time.Millisecond)}))
	if diff := cmp.Diff(get(t, table, "a"), second); diff != "" {
		t.Errorf("after the deadline: (-got +want)\n%s", diff)
	}
	if _, ok := errors.AsType[*baselines.ConditionFailedError](table.PutIf(ctx, first, baselines.Condition{FreeAt: now})); !ok {
		t.Error("got no error before the record expires")
	}
	must(t, table.PutIf(ctx, first, baselines.Condition{FreeAt: now.Add(time.Second)}))
	must(t, table.Put(ctx, second))
	for range 2 {
		must(t, table.Delete(ctx, "a"))
		if got := get(t, table, "a"); len(got) > 0 {
			t.Errorf("after a delete: got %v, want no item", got)
		}
	}
	if table.Put(ctx, baselines.Item{"n": baselines.N(1)}) == nil {
		t.Error("got no error for an item without an id")
	}
	var wins atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if table.PutIf(ctx, first, baselines.Condition{}) == nil {
				wins.Add(1)
			}
		})
	}
	wg.Wait()
	if got := wins.Load(); got != 1 {
		t.Errorf("got %d successful conditional puts of 50, want 1", got)
	}
}

func TestExpiredItemsStayUntilTheyAreDeleted(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000, 0)
	table := new(baselines.Map)
	for id, expiration := range map[baselines.S]baselines.N{"old": 999, "due": 1_000, "young": 1_001} {
		must(t, table.Put(t.Context(), baselines.Item{baselines.ID: id, baselines.Expiration: expiration}))
	}
	must(t, table.Put(t.Context(), baselines.Item{baselines.ID: baselines.S("without expiration")}))
	if len(get(t, table, "old")) == 0 {
		t.Error("an expired item is not readable before Expire")
	}
	table.Expire(now)
	for id, want := range map[string]bool{"old": false, "due": true, "young": true, "without expiration": true} {
		if got := get(t, table, id); (len(got) > 0) != want {
			t.Errorf("%s: got %v, want an item: %t", id, got, want)
		}
	}
}

// must ends the test on an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func get(t *testing.T, table baselines.Table, id string) baselines.Item {
	t.Helper()
	item, err := table.Get(t.Context(), id)
	must(t, err)
	return item
}
