package dynamodb_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// Each write compares several attributes of the row. In rows that the store wrote they
// change together: a settled order, for example, has no owner. A row that was repaired by
// hand, or written by another release, may differ in a single attribute.
func TestEachPartOfAConditionRejectsOnItsOwn(t *testing.T) {
	t.Parallel()
	claim := order.Claim{Order: ordertest.Order("O1"), Lease: lease("first"), Attempt: 1, Intent: intent}
	pending := order.Record{OrderID: "O1", Total: claim.Order.Total(), Status: order.Pending, Intent: intent, Seq: 1}
	waiting := func() row { // pending
		item := settledRows()[1]
		item["status"] = text(order.Pending)
		delete(item, "failure")
		return item
	}
	bind := func(f fixture) error { return f.Bind(f.Context(), claim, prepared(), at(2)) }
	release := func(f fixture) error { return f.Release(f.Context(), claim, order.ReasonUnavailable, at(2)) }
	finish := func(f fixture) error { return f.Finish(f.Context(), claim, outcome(order.Paid), at(2)) }
	settle := func(f fixture) error { return f.Settle(f.Context(), pending, outcome(order.Paid), at(2)) }
	dispute := func(f fixture) error { return f.RecordDispute(f.Context(), pending, disputed(), at(2)) }
	for name, tt := range map[string]struct {
		row       func() row
		do        func(fixture) error
		attribute string
		value     types.AttributeValue
		want      error
	}{
		"bind: another owner":       {openRow, bind, "owner", text("second"), order.ErrClaimLost},
		"bind: no owner":            {openRow, bind, "owner", nil, order.ErrClaimLost},
		"bind: not open":            {openRow, bind, "status", text(order.Declined), order.ErrClaimLost},
		"bind: another intent":      {openRow, bind, "intentId", text("pi_other"), order.ErrClaimLost},
		"release: another owner":    {openRow, release, "owner", text("second"), order.ErrClaimLost},
		"release: no owner":         {openRow, release, "owner", nil, order.ErrClaimLost},
		"release: not open":         {openRow, release, "status", text(order.Declined), order.ErrClaimLost},
		"finish: another owner":     {openRow, finish, "owner", text("second"), order.ErrClaimLost},
		"finish: no owner":          {openRow, finish, "owner", nil, order.ErrClaimLost},
		"finish: another intent":    {openRow, finish, "intentId", text("pi_other"), order.ErrClaimLost},
		"finish: no intent":         {openRow, finish, "intentId", nil, order.ErrClaimLost},
		"settle: another status":    {waiting, settle, "status", text(order.ActionRequired), order.ErrStale},
		"settle: another intent":    {waiting, settle, "intentId", text("pi_other"), order.ErrStale},
		"settle: a transition more": {waiting, settle, "seq", number(2), order.ErrStale},
		"dispute: another status":   {waiting, dispute, "status", text(order.ActionRequired), order.ErrStale},
		"dispute: another intent":   {waiting, dispute, "intentId", text("pi_other"), order.ErrStale},
		"dispute: an event more":    {waiting, dispute, "seq", number(2), order.ErrStale},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t)
			item := tt.row()
			set(item, tt.attribute, tt.value)
			f.put(item)
			before := f.rows()
			if err := tt.do(f); !errors.Is(err, tt.want) {
				t.Errorf("got error %v, want %v", err, tt.want)
			}
			if diff := cmp.Diff(before, f.rows(), values()); diff != "" {
				t.Errorf("rows after the rejected write (-want +got):\n%s", diff)
			}
			set(item, tt.attribute, tt.row()[tt.attribute]) // the matching value
			f.put(item)
			if err := tt.do(f); err != nil {
				t.Errorf("with a matching row: got error %v, want none", err)
			}
		})
	}
}

// Later writes use the claim, so it must match the row, which keeps milliseconds.
func TestAClaimMatchesItsRow(t *testing.T) {
	t.Parallel()
	f := open(t)
	from, until := at(400*time.Microsecond), at(time.Minute+600*time.Microsecond)
	between := order.Lease{Owner: "first", From: from, Until: until}
	c, err := f.Begin(t.Context(), ordertest.Order("O1"), between)
	f.must(err)
	r := f.loaded("O1")
	want := order.Lease{Owner: r.Owner, From: r.UpdatedAt, Until: r.Until}
	got := c.Lease
	got.From, got.Until = got.From.Truncate(time.Millisecond), got.Until.Truncate(time.Millisecond)
	if diff := cmp.Diff(got, want); diff != "" || c.Attempt != r.Attempt {
		t.Errorf("got attempt %d, want %d; lease (-got +want):\n%s", c.Attempt, r.Attempt, diff)
	}
}

// Settle reads the order to check whether the outcome is recorded already. If it cannot
// read it, it returns that error.
func TestSettleThatCannotReadReturnsAStoreError(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.settled("O1", order.Paid)
	r := f.loaded("O1")
	f.Proxy.Reset()
	f.Proxy.Fail(dynamodbtest.Fault{Operation: "Query", Kind: dynamodbtest.AccessDenied})
	err := f.Settle(t.Context(), r, outcome(order.Pending), at(time.Hour)) // invalid
	if err == nil || isDomain(err) || !strings.Contains(err.Error(), "AccessDeniedException") ||
		f.Proxy.Total() != 1 {
		t.Errorf("got %d calls and error %v, want 1 and AccessDeniedException", f.Proxy.Total(), err)
	}
	f.Proxy.Heal()
	err = f.Settle(t.Context(), r, outcome(order.Pending), at(time.Hour))
	if _, ok := errors.AsType[*order.TransitionError](err); !ok {
		t.Errorf("after Heal: got error %v, want a TransitionError", err)
	}
}

// A row that was repaired by hand may lack the keys of the index. A waiting order must be
// in the index all the same.
func TestATransitionToAWaitingStatusSetsBothKeysOfTheIndex(t *testing.T) {
	t.Parallel()
	f := open(t)
	lost := openRow()
	want := lost["openShard"]
	delete(lost, "openShard")
	delete(lost, "dueAt")
	f.put(lost)
	claim := order.Claim{Order: ordertest.Order("O1"), Lease: lease("first"), Attempt: 1, Intent: intent}
	f.must(f.Finish(t.Context(), claim, outcome(order.Pending), at(time.Second)))
	got := f.rows()[1]
	keys := row{"openShard": got["openShard"], "dueAt": got["dueAt"]}
	wantKeys := row{"openShard": want, "dueAt": millis(time.Hour + time.Second)}
	if diff := cmp.Diff(wantKeys, keys, values()); diff != "" {
		t.Errorf("keys of the index (-want +got):\n%s", diff)
	}
}
