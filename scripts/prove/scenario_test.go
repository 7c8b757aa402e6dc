package prove_test

import (
	"fmt"
	"testing"
	"time"

	"orderonce/scripts/prove"
)

// searches are the schedules that the product has to survive: whatever happens once, and for most cases whatever
// happens twice.
func searches() (all []prove.Search) {
	pays := prove.Message{ID: "ORD-1", Quantity: 2, Method: "pm_card_visa"}
	other := pays
	other.Quantity = 3
	for _, gap := range []time.Duration{0, 30 * time.Second, 25 * time.Hour, 5 * 24 * time.Hour} {
		search := func(name string, most int, messages ...prove.Message) {
			c := prove.Case{Name: fmt.Sprintf("%s, back after %s", name, gap), Messages: messages, Gap: gap}
			all = append(all, prove.Search{Case: c, Most: most})
		}
		search("one order", 2, pays)
		two := pays
		two.ID = "ORD-2"
		search("two orders", 1, pays, two)
		search("sent twice", 1, pays, pays)
		search("same id, other content", 1, pays, other)
		for _, method := range []string{"pm_card_chargeDeclined", "pm_card_authenticationRequired", "pm_usBankAccount_processing"} {
			search(method, 1, prove.Message{ID: "ORD-1", Quantity: 2, Method: method})
		}
	}
	return all
}

// TestScenario goes through every schedule of a bounded number. `make break` runs it with a guard taken away, and reads
// what it prints.
func TestScenario(t *testing.T) {
	t.Parallel()
	schedules, worst := prove.Run(searches())
	if worst == nil {
		t.Logf("%d schedules, no invariant broken", schedules)
		return
	}
	_, _ = fmt.Fprintf(t.Output(), "%s:\n\n%s\n\n%s\n", worst.Case, worst.History, worst.Violation)
	t.Errorf("of %d schedules, some break %s", schedules, worst.Violation.Invariant)
}
