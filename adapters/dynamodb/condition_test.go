package dynamodb_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// Each write compares several attributes of the row. In the rows that the store itself
// writes they go together: a settled order, for example, has no owner. A row that a
// person repaired, or another release wrote, differs in one of them alone.
func TestEachPartOfAConditionRejectsOnItsOwn(t *testing.T) {
	t.Parallel()
	claim := order.Claim{Order: ordertest.Order("O1"), Lease: lease("first"), Attempt: 1, Intent: intent}
	pending := order.Record{
		OrderID: "O1",
		Total:   claim.Order.Total(),
		Status:  order.Pending,
		Intent:  intent,
		Seq:     1,
	}
	claimed := func(fixture) row { return openRow() }
	waiting := func(fixture) row { // an order that waits for the bank
		item := settledRows()[1]
		item["status"] = text(order.Pending)
		delete(item, "failure")
		return item
	}
	bind := func(f fixture) error { return f.Bind(f.Context(), claim, prepared(), at(2)) }
	release := func(f fixture) error { return f.Release(f.Context(), claim, order.ReasonUnavailable, at(2)) }
	finish := func(f fixture) error { return f.Finish(f.Context(), claim, outcome(order.Paid), at(2)) }
	settle := func(f fixture) error { return f.Settle(f.Context(), pending, outcome(order.Paid), at(2)) }
	for claim, tt := range map[string]struct {
		row       func(fixture) row
		do        func(fixture) error
		attribute string
		value     types.AttributeValue
		want      error
	}{
		"bind: another owner":       {claimed, bind, "owner", text("second"), order.ErrClaimLost},
		"bind: no owner":            {claimed, bind, "owner", nil, order.ErrClaimLost},
		"bind: not open":            {claimed, bind, "status", text(order.Declined), order.ErrClaimLost},
		"bind: another intent":      {claimed, bind, "intentId", text("pi_other"), order.ErrClaimLost},
		"release: another owner":    {claimed, release, "owner", text("second"), order.ErrClaimLost},
		"release: no owner":         {claimed, release, "owner", nil, order.ErrClaimLost},
		"release: not open":         {claimed, release, "status", text(order.Declined), order.ErrClaimLost},
		"finish: another owner":     {claimed, finish, "owner", text("second"), order.ErrClaimLost},
		"finish: no owner":          {claimed, finish, "owner", nil, order.ErrClaimLost},
		"finish: another intent":    {claimed, finish, "intentId", text("pi_other"), order.ErrClaimLost},
		"finish: no intent":         {claimed, finish, "intentId", nil, order.ErrClaimLost},
		"settle: another status":    {waiting, settle, "status", text(order.ActionRequired), order.ErrStale},
		"settle: another intent":    {waiting, settle, "intentId", text("pi_other"), order.ErrStale},
		"settle: a transition more": {waiting, settle, "seq", number(2), order.ErrStale},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			f := open(t)
			item := tt.row(f)
			set(item, tt.attribute, tt.value)
			f.put(item)
			before := f.rows()
			if err := tt.do(f); !errors.Is(err, tt.want) {
				t.Errorf("error = %v, want %v", err, tt.want)
			}
			if d := diff(f.rows(), before); d != "" {
				t.Errorf("the row has changed (-got +want):\n%s", d)
			}
			set(item, tt.attribute, tt.row(f)[tt.attribute]) // as it should be
			f.put(item)
			if err := tt.do(f); err != nil {
				t.Errorf("with the row as it should be: error = %v, want none", err)
			}
		})
	}
}

// The fence of later writes and the domain's time checks go by the claim, so the claim
// says what the row says.
func TestAClaimMatchesItsRow(t *testing.T) {
	t.Parallel()
	f := open(t)
	between := order.Lease{
		Owner: "first",
		From:  at(0).Add(400 * time.Microsecond),
		Until: at(time.Minute).Add(600 * time.Microsecond),
	}
	c, err := f.Begin(t.Context(), ordertest.Order("O1"), between)
	f.must(err)
	r := f.loaded("O1")
	if !c.Lease.Until.Equal(r.Until) || !c.Lease.From.Equal(r.UpdatedAt) || c.Lease.Owner != r.Owner ||
		c.Attempt != r.Attempt {
		t.Errorf("claim %+v, attempt %d, want what the row holds: %+v", c.Lease, c.Attempt, r)
	}
}

// Settle reads the order again to find out whether somebody else has made the change.
// Where it cannot, it has learnt nothing.
func TestSettleThatCannotReadReturnsAStoreError(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.settled("O1", order.Paid)
	r := f.loaded("O1")
	f.Proxy.Reset()
	f.Proxy.Fail(dynamodbtest.Fault{Operation: "Query", Kind: dynamodbtest.AccessDenied})
	err := f.Settle(t.Context(), r, outcome(order.Pending), at(time.Hour)) // which no diagram has
	if err == nil || isDomain(err) || !strings.Contains(err.Error(), "AccessDeniedException") ||
		f.Proxy.Total() != 1 {
		t.Errorf("%d calls, error %v, want 1 and that the order could not be read", f.Proxy.Total(), err)
	}
	f.Proxy.Heal()
	err = f.Settle(t.Context(), r, outcome(order.Pending), at(time.Hour))
	if _, ok := errors.AsType[*order.TransitionError](err); !ok {
		t.Errorf("error = %v, want the transition, now that the order can be read", err)
	}
}

// An order that waits is in the index, whatever the row held before: a repaired one may
// have lost its place there.
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
	if d := diff([]row{{"openShard": got["openShard"], "dueAt": got["dueAt"]}},
		[]row{{"openShard": want, "dueAt": number(at(time.Hour + time.Second).UnixMilli())}}); d != "" {
		t.Errorf("keys of the index (-got +want):\n%s", d)
	}
}
