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

func TestMapIsATable(t *testing.T) {
	t.Parallel()
	testTable(t, func(*testing.T) baselines.Table { return new(baselines.Map) })
}

func TestDynamoDBIsATable(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	testTable(t, func(t *testing.T) baselines.Table { t.Helper(); return inDynamoDB(t, h) })
}

// inDynamoDB is a table that is dropped after the test.
func inDynamoDB(t *testing.T, h *dynamodbtest.Harness) *baselines.DynamoDB {
	t.Helper()
	d := baselines.NewDynamoDB(h.Config, "designs-"+rand.Text())
	must(t, d.Create(t.Context()))
	t.Cleanup(func() {
		if err := d.Drop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return d
}

// What a search finds in memory has to be what a storm meets.
func TestHistoriesEndTheSameOnDynamoDB(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	for _, d := range baselines.All() {
		for _, step := range []int{1, 2} {
			var ends []verdict
			for _, engine := range []bool{false, true} {
				w := newWorld(t, d)
				if engine {
					w.store = inDynamoDB(t, h)
				}
				w.before = w.once(step, func() { _ = w.deliver(pays("m1")) })
				_ = w.settle(pays("m1"))
				ends = append(ends, w.verdict())
			}
			if ends[0] != ends[1] {
				t.Errorf("%s, twice at once at call %d: %q in memory, %q on DynamoDB", d.Name, step, ends[0], ends[1])
			}
		}
	}
}

// Nothing but an answer was lost, and yet the order is: the SDK's second try makes the message its own duplicate.
func TestALostAnswerOfDynamoDBLosesTheOrderWhoseIDIsPutFirst(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	h.Config.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
	}
	for name, want := range map[string]verdict{"message-id-before": lost, "message-id-after": ok, "idempotency-record": ok} {
		w := named(t, name)
		w.store = inDynamoDB(t, h)
		h.Proxy.Fail(dynamodbtest.Fault{Operation: "PutItem", Times: 1, Kind: dynamodbtest.LoseAfter})
		_ = w.settle(pays("m1"))
		if got := w.verdict(); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// testTable is what both tables promise.
func testTable(t *testing.T, open func(*testing.T) baselines.Table) {
	t.Helper()
	item := baselines.Item{baselines.ID: baselines.S("a"), "status": baselines.S("INPROGRESS"), "n": baselines.N(-5)}
	for name, test := range map[string]func(*testing.T, baselines.Table){
		"what was put is read until it is deleted": func(t *testing.T, table baselines.Table) {
			t.Helper()
			wantItem(t, table, "a", nil)
			must(t, table.Put(t.Context(), item))
			wantItem(t, table, "a", item)
			must(t, table.Put(t.Context(), baselines.Item{baselines.ID: baselines.S("a"), "other": baselines.S("")}))
			wantItem(t, table, "a", baselines.Item{baselines.ID: baselines.S("a"), "other": baselines.S("")})
			must(t, table.Delete(t.Context(), "a"))
			must(t, table.Delete(t.Context(), "a"))
			wantItem(t, table, "a", nil)
		},
		"a condition that fails changes nothing and tells what stands there": func(t *testing.T, table baselines.Table) {
			t.Helper()
			must(t, table.PutIf(t.Context(), item, baselines.Absent(baselines.ID)))
			wantRefused(t, table.PutIf(t.Context(), baselines.Item{baselines.ID: baselines.S("a")}, baselines.Absent(baselines.ID)), item)
			wantItem(t, table, "a", item)
			wantRefused(t, table.PutIf(t.Context(), baselines.Item{baselines.ID: baselines.S("b")}, baselines.Equal("n", baselines.N(1))), nil)
			wantItem(t, table, "b", nil)
		},
		"conditions mean what Holds says": func(t *testing.T, table baselines.Table) {
			t.Helper()
			for _, c := range conditions() {
				must(t, table.Put(t.Context(), item))
				if err := table.PutIf(t.Context(), item, c.Condition); (err == nil) != c.holds {
					t.Errorf("%s: got %v, want it to hold: %t", c.name, err, c.holds)
				}
				if got := c.Holds(item); got != c.holds {
					t.Errorf("%s: Holds says %t", c.name, got)
				}
			}
		},
		"of many at once one wins": func(t *testing.T, table baselines.Table) {
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
				t.Errorf("got %d winners, want 1", got)
			}
		},
		"an item without an id is refused": func(t *testing.T, table baselines.Table) {
			t.Helper()
			if table.Put(t.Context(), baselines.Item{"n": baselines.N(1)}) == nil {
				t.Error("got no error")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
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
	must(t, table.Put(t.Context(), baselines.Item{baselines.ID: baselines.S("eternal")}))
	before := table.Clone()
	table.Expire(now)
	for _, c := range []struct {
		table *baselines.Map
		id    string
		stays bool
	}{{table, "old", false}, {table, "due", true}, {table, "young", true}, {table, "eternal", true}, {before, "old", true}} {
		if got, err := c.table.Get(t.Context(), c.id); err != nil || (len(got) > 0) != c.stays {
			t.Errorf("%s: got %v, %v, want it to stay: %t", c.id, got, err, c.stays)
		}
	}
}

func TestACloneIsIndependent(t *testing.T) {
	t.Parallel()
	a := new(baselines.Map)
	one := baselines.Item{baselines.ID: baselines.S("a")}
	must(t, a.Put(t.Context(), one))
	b := a.Clone()
	must(t, b.Put(t.Context(), baselines.Item{baselines.ID: baselines.S("a"), "n": baselines.N(2)}))
	must(t, b.Delete(t.Context(), "b"))
	wantItem(t, a, "a", one)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantItem(t *testing.T, table baselines.Table, id string, want baselines.Item) {
	t.Helper()
	got, err := table.Get(t.Context(), id)
	must(t, err)
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("%s (-got +want)\n%s", id, diff)
	}
}

func wantRefused(t *testing.T, err error, old baselines.Item) {
	t.Helper()
	var refused *baselines.RefusedError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want a *RefusedError", err)
	}
	if len(refused.Old) != len(old) || len(old) > 0 && !cmp.Equal(refused.Old, old) {
		t.Errorf("got %v, want %v", refused.Old, old)
	}
}
