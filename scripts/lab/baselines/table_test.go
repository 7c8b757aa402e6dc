package baselines_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/scripts/lab/baselines"
)

func newDynamoDB(t *testing.T, engine *dynamodbtest.Harness) *baselines.DynamoDB {
	t.Helper()
	name := "baselines-" + rand.Text()
	if err := dynamodbtest.Create(t.Context(), engine.Client, baselines.Definition(name)); err != nil {
		t.Fatal(err)
	}
	return baselines.NewDynamoDB(engine.Config, name)
}

// The tests run the baselines on Map, the storm on DynamoDB.
func TestBothTablesKeepThePromisesOfTable(t *testing.T) {
	now := time.Unix(1_000, 0)
	first := baselines.Item{
		ID: "a", Status: "INPROGRESS", Amount: 1, Validation: "v", Intent: "pi_1", Expiration: 2_000, Deadline: 1_000_000,
	}
	second := baselines.Item{ID: "a", Expiration: 1_000}
	isNew := func(free time.Time) baselines.Condition { return baselines.Condition{New: true, FreeAt: free} }
	for name, table := range map[string]baselines.Table{
		"in memory": baselines.Map{}, "DynamoDB": newDynamoDB(t, dynamodbtest.Open(t)),
	} {
		for _, step := range []struct {
			what string
			item baselines.Item
			c    baselines.Condition
			old  baselines.Item // that fails the condition; none if it holds
		}{
			{"there is no item", first, isNew(time.Time{}), baselines.Item{}},
			{"there is an item", second, isNew(time.Time{}), first},
			{"an item with a status is not open", second, baselines.Condition{Open: true}, first},
			{"it is in progress until its deadline", second, isNew(now), first},
			{"the deadline has passed", second, isNew(now.Add(time.Millisecond)), baselines.Item{}},
			{"the item has not expired", first, isNew(now), second},
			{"the item has expired", first, isNew(now.Add(time.Second)), baselines.Item{}},
			{"without a condition", second, baselines.Condition{}, baselines.Item{}},
			{"an item without a status is open", first, baselines.Condition{Open: true}, baselines.Item{}},
		} {
			refusing, err := table.Put(t.Context(), step.item, step.c)
			got, getErr := table.Get(t.Context(), "a")
			want := step.old
			if want.ID == "" {
				want = step.item
			}
			if refusing != step.old || got != want || err != nil || getErr != nil {
				t.Errorf("%s, %s: got refusing item %v, then item %v, errors %v and %v; want %v, then %v",
					name, step.what, refusing, got, err, getErr, step.old, want)
			}
		}
		for range 2 {
			err := table.Delete(t.Context(), "a")
			if got, getErr := table.Get(t.Context(), "a"); err != nil || getErr != nil || got.ID != "" {
				t.Errorf("%s, after a delete: got %v, %v and %v, want no item", name, err, getErr, got)
			}
		}
	}
}

// After a lost response the SDK repeats the conditional put, which fails on its own item:
// the handler takes the message for a duplicate and deletes it.
func TestALostDynamoDBResponseLosesTheOrderOfMessageIDBefore(t *testing.T) {
	engine := dynamodbtest.Open(t)
	engine.Config.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
	}
	for name, want := range map[string]outcome{
		"message-id-before": lost, "message-id-after": ok, "idempotency-record-24h": ok, "stripe-key + bind": ok,
	} {
		h := harnessOf(t, name)
		h.store = newDynamoDB(t, engine)
		engine.Proxy.Fail(dynamodbtest.Fault{Operation: "PutItem", Times: 1, Kind: dynamodbtest.LoseAfter})
		_ = h.deliverUntilDeleted(paidBy("m1"))
		if got := h.outcome(); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
