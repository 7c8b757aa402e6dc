package dynamodb_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// lost returns the part of the record of order O1 that its intent determines.
func lost() order.Record {
	o := ordertest.Order("O1")
	return order.Record{
		OrderID: o.ID(), Total: o.Total(), Fingerprint: o.Fingerprint(), Intent: intent, Mode: order.TestMode,
	}
}

func TestRecreateWritesTheRow(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.Proxy.Reset()
	f.must(f.Recreate(t.Context(), lost(), at(time.Second)))
	if diff := cmp.Diff(map[string]int{"Query": 1, "UpdateItem": 1}, f.Proxy.Counts()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	want := openRow()
	for _, unknown := range []string{"customerId", "owner", "leaseUntil", "traceparent"} {
		delete(want, unknown)
	}
	want["createdAt"] = millis(time.Second)
	want["dueAt"] = millis(15*time.Minute + time.Second)
	if diff := cmp.Diff([]row{want}, f.rows(), values()); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestARecreatedOrderDoesNotOverwriteEvents(t *testing.T) {
	t.Parallel()
	f := open(t)
	event := settledRows()[0] // the second event remained when the order was lost
	event["sk"], event["seq"] = text("event#000002"), number(2)
	f.put(event)
	f.must(f.Recreate(t.Context(), lost(), at(time.Hour)))
	r := f.loaded("O1")
	if r.Seq != 2 {
		t.Errorf("got seq %d, want 2", r.Seq)
	}
	f.must(f.Settle(t.Context(), r, outcome(order.Paid), at(2*time.Hour)))
	events := f.loaded("O1").Events
	if len(events) != 2 || events[0].To != order.ActionRequired || events[1].Seq != 3 ||
		events[1].To != order.Paid {
		t.Errorf("got events %+v, want the remaining one and a third", events)
	}
}

func TestRecreateErrorsNameTheOrder(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.settled("O1", order.Paid)
	other := lost()
	other.Intent = "pi_other"
	err := f.Recreate(t.Context(), other, at(time.Hour))
	want := `recreate order "O1": intent pi_other: bound intent is "pi_other", want "pi_pretend"`
	if _, mismatch := errors.AsType[*order.MismatchError](err); !mismatch || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestRecreateRetriesTransientErrors(t *testing.T) {
	t.Parallel()
	for _, kind := range []dynamodbtest.Kind{
		dynamodbtest.Throttled, dynamodbtest.InternalErrorAfter, dynamodbtest.LoseBefore, dynamodbtest.LoseAfter,
		dynamodbtest.TransactionConflict,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			f := open(t)
			f.Proxy.Fail(dynamodbtest.Fault{Kind: kind, Operation: "UpdateItem", Times: 1})
			f.must(f.Recreate(t.Context(), lost(), at(time.Second)))
			if r := f.loaded("O1"); r.Intent != intent || r.Attempt != 1 || r.Status != order.Open {
				t.Errorf("got %+v, want it open at attempt 1 with %s", r, intent)
			}
		})
	}
}
