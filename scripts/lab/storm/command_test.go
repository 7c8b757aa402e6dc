package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/domain/order"
	"orderonce/scripts/lab/baselines"
	"orderonce/scripts/lab/storm/run"
	"orderonce/scripts/local/system"
)

func TestABrokenInvariantIsAnErrorWithItsName(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		change func(*run.Outcome)
		want   string // "": no error
	}{
		"a broken invariant":        {func(*run.Outcome) {}, ": I9"},
		"none: a baseline may fail": {func(o *run.Outcome) { o.Checks[1].Broken = nil }, ""},
		"an error that no invariant finds": {
			func(o *run.Outcome) { o.Checks[1].Broken, o.Figures[run.WrongStatus] = nil, 3 }, "3 errors that no invariant covers",
		},
	} {
		outcomes := two()
		tt.change(&outcomes[0])
		err := arguments{}.report(outcomes, usage{})
		if errors.Is(err, errBroken) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want %q", claim, err, tt.want)
		}
	}
}

func TestBaselineRow(t *testing.T) {
	t.Parallel()
	for status, want := range map[baselines.Status]run.Row{
		baselines.Paid:   {OrderID: "A", Settled: true, Status: order.Paid, Amount: 1999},
		baselines.Failed: {OrderID: "A", Settled: true, Status: order.Declined, Amount: 1999},
		"":               {OrderID: "A", Status: order.Declined, Amount: 1999},
	} {
		item := system.Item{
			baselines.ID: &types.AttributeValueMemberS{Value: "order#A"}, "amount": &types.AttributeValueMemberN{Value: "1999"},
			"status": &types.AttributeValueMemberS{Value: string(status)},
		}
		if got, isOrder := baselineRow(item); got != want || !isOrder {
			t.Errorf("%q: got %+v, %t, want %+v", status, got, isOrder, want)
		}
	}
	if _, isOrder := baselineRow(system.Item{baselines.ID: &types.AttributeValueMemberS{Value: "lock#A"}}); isOrder {
		t.Error("a lock is an order")
	}
}
