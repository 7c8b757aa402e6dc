package report_test

import (
	"slices"
	"testing"

	"orderonce/scripts/lab/simulation/oracle"
	"orderonce/scripts/lab/simulation/report"
	"orderonce/scripts/lab/simulation/world"
	"orderonce/scripts/lab/stage"
)

// Otherwise a finding that needs one would seem to need nothing.
func TestEveryOddityOfACaseHasAName(t *testing.T) {
	t.Parallel()
	visa := world.Message{ID: "ORD-1", Method: world.Visa}
	of := func(method string) []world.Message { return []world.Message{{ID: "ORD-1", Method: method}} }
	second := world.Message{ID: "ORD-2", Method: world.Visa}
	other := visa
	other.Payer = "cus_other"
	const usual = oracle.Visibility
	for want, c := range map[string]world.Case{
		"delivered again after 0s":                  {Messages: of(world.Visa)},
		"a pause of 1h0m0s":                         {Messages: of(world.Visa), Gap: 10 * usual},
		"keys that live 1ns":                        {Messages: of(world.Visa), Gap: usual, KeyLife: 1},
		"keys that are never kept":                  {Messages: of(world.Visa), Gap: usual, KeyLife: -1},
		"few receives before the dead-letter queue": {Messages: of(world.Visa), Gap: usual, Receives: 3},
		"a batch":                           {Messages: of(world.Visa), Gap: usual, Batch: 2},
		"a FIFO group":                      {Messages: of(world.Visa), Gap: usual, Batch: 2, FIFO: true},
		"webhooks":                          {Messages: of(world.Visa), Gap: usual, Webhooks: true},
		"reconcile runs":                    {Messages: of(world.Visa), Gap: usual, Reconcile: true},
		"publications":                      {Messages: of(world.Visa), Gap: usual, Publish: true},
		"a message that is no order":        {Messages: []world.Message{{ID: "POISON", Poison: "{"}}, Gap: usual},
		"a declined card":                   {Messages: of(world.Declined), Gap: usual},
		"a bank that wants the customer":    {Messages: of(world.NeedsAuth), Gap: usual},
		"a bank that takes days":            {Messages: of(world.TakesDays), Gap: usual},
		"a card that does not exist":        {Messages: of(world.NoSuchCard), Gap: usual},
		"an order sent twice":               {Messages: []world.Message{visa, visa}, Gap: usual},
		"another content under the same id": {Messages: []world.Message{visa, other}, Gap: usual},
		"another order":                     {Messages: []world.Message{visa, second}, Gap: usual},
	} {
		if got := report.Oddities(c); !slices.Equal(got, []string{want}) {
			t.Errorf("got %q, want %q alone", got, want)
		}
	}
}

func TestAReportKeepsTheWorstFinding(t *testing.T) {
	t.Parallel()
	finding := func(i stage.Invariant, tape ...byte) *report.Finding {
		return &report.Finding{Tape: stage.Tape(tape), Violation: stage.Violation{Invariant: i, Order: "ORD-1"}}
	}
	charged, simple := finding(oracle.ChargedOnce, 1, 1), finding(oracle.SettlesSoon, 1)
	long := finding(oracle.ChargedAmount, 1, 1, 1)
	for _, all := range [][]*report.Finding{{charged, simple, long}, {long, simple, charged}} {
		var r report.Report
		for _, f := range all {
			r.Add(report.Report{Schedules: 1, Worst: f})
		}
		if r.Worst != charged || r.Schedules != 3 || simple.Compare(*long) > 0 {
			t.Errorf("got %v of %d schedules, want the double charge of 3", r.Worst.Violation, r.Schedules)
		}
	}
}
