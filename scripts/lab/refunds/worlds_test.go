package refunds_test

import (
	"fmt"
	"testing"

	"orderonce/scripts/lab/refunds"
)

// TestWorlds runs random worlds. `make break` runs it without a guard.
func TestWorlds(t *testing.T) {
	t.Parallel()
	for class, worlds := range map[refunds.Class]int{
		refunds.Kind: 3000, refunds.Worst: 10_000, refunds.Keyless: 3000, refunds.Aged: 3000,
	} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			r := refunds.Search{Class: class, Seed: 1, Worlds: worlds}.Run(t.Context())
			t.Logf("%d worlds, %d calls, %d refunds unknown", r.Worlds, r.Steps, r.Unknown)
			if r.Best != nil {
				_, _ = fmt.Fprintf(t.Output(), "%s", r.Best)
				t.Errorf("%d broken worlds; go -C scripts/lab run ./prove refunds --replay %s/%d", r.Broken, class, r.Best.Seed)
			}
		})
	}
}

// Everything that may go wrong once. make prove-refunds searches two faults.
func TestEveryScheduleOfOneFault(t *testing.T) {
	t.Parallel()
	for _, c := range refunds.Every() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			r := c.Search(t.Context(), 1)
			if r.Found != nil {
				t.Errorf("%s", r.Found)
			}
			if r.Schedules < 150 {
				t.Errorf("%d schedules, want at least 150", r.Schedules)
			}
		})
	}
}
