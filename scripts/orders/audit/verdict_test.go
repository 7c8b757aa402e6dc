package audit_test

import (
	"testing"

	"orderonce/domain/order"
	"orderonce/scripts/orders/audit"
)

// TestTheVerdictNamesEveryOrderThatAMessageMayHarm compares orders one by one.
func TestTheVerdictNamesEveryOrderThatAMessageMayHarm(t *testing.T) {
	const again, twice = audit.ChargedAgain, audit.RefundedTwice
	canceled := stripe(order.IntentCanceled)
	second := also(intent("pi_2", order.Succeeded))
	for claim, tt := range map[string]struct {
		want    audit.Risk
		changes []change
	}{
		"a paid order":                                   {},
		"a charge without a row":                         {again, []change{rowless}},
		"a canceled intent without a row":                {again, []change{rowless, canceled}},
		"two charges without a row":                      {again, []change{rowless, second}},
		"an open row that does not name its charge":      {again, []change{row(order.Open), unbound}},
		"an open row whose own charge is newer":          {"", []change{row(order.Open)}},
		"a pending row whose own intent was declined":    {"", []change{row(order.Pending), declined}},
		"a refused row that does not name its charge":    {again, []change{row(order.Refused), unbound}},
		"an open row, and the money is another intent's": {again, []change{row(order.Open), declined, second}},
		"a declined row, and another intent's money":     {"", []change{row(order.Declined), declined, second}},
		"two charges, and a paid row":                    {"", []change{second}},
		"a paid row with another amount":                 {"", []change{func(o *audit.Order) { o.Row.Total.Amount++ }}},
		"an open row with another amount": {
			again, []change{row(order.Open), func(o *audit.Order) { o.Row.Total.Amount++ }},
		},
		"a refund that the row lacks":  {twice, []change{givenBack(0, 5)}},
		"an unknown refund":            {"", []change{unknown}},
		"a dispute that the row lacks": {"", []change{disputed(order.Dispute{}, order.Dispute{})}},
		"a row that cannot be read": {"", []change{func(o *audit.Order) {
			o.Row = &audit.Row{OrderID: o.ID, Problem: "corrupt record"}
		}}},
	} {
		o, s := paid(), audit.Summary{Risks: map[audit.Risk]int{}}
		for _, c := range tt.changes {
			c(&o)
		}
		for _, f := range audit.Compare(o, scope, noon()).Findings {
			if f.Risk != "" {
				s.Risks[f.Risk]++
			}
		}
		v := s.Verdict(nil)
		if v.Safe != (tt.want == "") || v.Risks[tt.want] != len(v.Risks) {
			t.Errorf("%s: got %+v, want the risk %q", claim, v, tt.want)
		}
		if v := s.Verdict(map[audit.Risk]int{tt.want: 1}); !v.Safe {
			t.Errorf("%s, repaired: got %q, want that it is safe", claim, v)
		}
	}
	s := audit.Summary{InProgress: 1, Risks: map[audit.Risk]int{again: 3, twice: 1}}
	const want = "verdict: not yet safe to process: orders that a message may charge again: 2; " +
		"orders of which a message may give money back twice: 1; not compared, because a worker has them: 1"
	if got := s.Verdict(map[audit.Risk]int{again: 1}).String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
