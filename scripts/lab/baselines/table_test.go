package baselines_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
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
	testTable(t, func(*testing.T) baselines.Table { return new(baselines.Map) })
}

func TestDynamoDBImplementsTable(t *testing.T) {
	t.Parallel()
	engine := dynamodbtest.Open(t)
	testTable(t, func(t *testing.T) baselines.Table { t.Helper(); return newDynamoDB(t, engine) })
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
func testTable(t *testing.T, open func(*testing.T) baselines.Table) {
	t.Helper()
	item := baselines.Item{
		baselines.ID: baselines.S("a"),
		"status":     baselines.S("INPROGRESS"),
		"n":          baselines.N(-5),
	}
	for name, test := range map[string]func(*testing.T, baselines.Table){
		"a put item is readable until it is deleted": func(t *testing.T, table baselines.Table) {
			t.Helper()
			must(t, table.Put(t.Context(), item))
			if diff := cmp.Diff(get(t, table, "a"), item); diff != "" {
				t.Errorf("after a put: (-got +want)\n%s", diff)
			}
			replacement := baselines.Item{baselines.ID: baselines.S("a"), "other": baselines.S("")}
			must(t, table.Put(t.Context(), replacement))
			if diff := cmp.Diff(get(t, table, "a"), replacement); diff != "" {
				t.Errorf("after a second put: (-got +want)\n%s", diff)
			}
			for range 2 {
				must(t, table.Delete(t.Context(), "a"))
				if got := get(t, table, "a"); len(got) > 0 {
					t.Errorf("after a delete: got %v, want no item", got)
				}
			}
		},
		"a failed condition changes nothing and returns the existing item": func(t *testing.T, table baselines.Table) {
			t.Helper()
			must(t, table.PutIf(t.Context(), item, baselines.Absent(baselines.ID)))
			err := table.PutIf(t.Context(), baselines.Item{baselines.ID: baselines.S("a")}, baselines.Absent(baselines.ID))
			failed, ok := errors.AsType[*baselines.ConditionFailedError](err)
			if !ok || !cmp.Equal(failed.Old, item) || !cmp.Equal(get(t, table, "a"), item) {
				t.Errorf("got %#v and %v, want a *ConditionFailedError and an unchanged %v", err, get(t, table, "a"), item)
			}
			err = table.PutIf(t.Context(), baselines.Item{baselines.ID: baselines.S("b")}, baselines.Equal("n", baselines.N(1)))
			failed, ok = errors.AsType[*baselines.ConditionFailedError](err)
			if !ok || len(failed.Old) > 0 || len(get(t, table, "b")) > 0 {
				t.Errorf("got %#v and %v, want a *ConditionFailedError and no item", err, get(t, table, "b"))
			}
		},
		"a condition holds exactly when Holds reports it": func(t *testing.T, table baselines.Table) {
			t.Helper()
			for _, c := range conditions() {
				must(t, table.Put(t.Context(), item))
				if err := table.PutIf(t.Context(), item, c.Condition); (err == nil) != c.holds {
					t.Errorf("%s: got %v, want it to hold: %t", c.name, err, c.holds)
				}
				if got := c.Holds(item); got != c.holds {
					t.Errorf("%s: Holds = %t, want %t", c.name, got, c.holds)
				}
			}
		},
		"one of 50 concurrent conditional puts succeeds": func(t *testing.T, table baselines.Table) {
			t.Helper()
			var wins atomic.Int64
			var wg sync.WaitGroup
			for i := range 50 {
				wg.Go(func() {
					item := baselines.Item{baselines.ID: baselines.S("a"), "n": baselines.N(i)}
					if table.PutIf(t.Context(), item, baselines.Absent(baselines.ID)) == nil {
						wins.Add(1)
					}
				})
			}
			wg.Wait()
			if got := wins.Load(); got != 1 {
				t.Errorf("got %d successful puts, want 1", got)
			}
		},
		"an item without an id is rejected": func(t *testing.T, table baselines.Table) {
			t.Helper()
			if table.Put(t.Context(), baselines.Item{"n": baselines.N(1)}) == nil {
				t.Error("got no error for an item without an id")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func TestATableThatCannotBeReachedIsAnErrorOfEachCall(t *testing.T) {
	t.Parallel()
	config := dynamodbtest.Config("http://127.0.0.1:1", func(string) string { return "" })
	config.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	d, ctx := baselines.NewDynamoDB(config, "unreachable"), t.Context()
	_, getErr := d.Get(ctx, "a")
	for call, err := range map[string]error{
		"create table": d.Create(ctx), "delete table": d.Drop(ctx), "get": getErr,
		"put": d.Put(ctx, baselines.Item{baselines.ID: baselines.S("a")}), "delete": d.Delete(ctx, "a"),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), call+" ") {
			t.Errorf("got error %v, want one that names the call: %s", err, call)
		}
	}
}

type condition struct {
	baselines.Condition

	name  string
	holds bool
}

// conditions are for an item with n = -5 and status = INPROGRESS.
func conditions() []condition {
	yes, no := baselines.Equal("n", baselines.N(-5)), baselines.Equal("status", baselines.S("COMPLETED"))
	return []condition{
		{baselines.Condition{}, "the zero value", false},
		{baselines.Absent("other"), "absent", true},
		{baselines.Absent("n"), "present", false},
		{yes, "an equal number", true},
		{no, "another text", false},
		{baselines.Equal("status", baselines.N(0)), "another type", false},
		{baselines.Equal("other", baselines.S("")), "equal to what is missing", false},
		{baselines.Less("n", -4), "less", true},
		{baselines.Less("n", -5), "the same", false},
		{baselines.Less("other", 1), "less than what is missing", false},
		{baselines.Less("status", 1), "less as a text", false},
		{baselines.Or(no, yes), "or", true},
		{baselines.Or(no, no), "neither", false},
		{baselines.And(yes, baselines.Less("n", 0)), "and", true},
		{baselines.And(yes, no), "not both", false},
		{baselines.Or(no, baselines.And(yes, baselines.Or(no, baselines.Absent("x")))), "within one another", true},
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
