package simulation_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/lab/simulation"
	"orderonce/scripts/lab/simulation/report"
)

// TestScenario runs every schedule of the scenarios. `make break` runs it without a guard
// and parses its output.
func TestScenario(t *testing.T) {
	t.Parallel()
	r := simulation.Run(simulation.Scenarios(), nil)
	t.Logf("%d schedules, %d merged", r.Schedules, r.Merged)
	check(t, r)
}

// TestWorlds runs random worlds. `make break` may run it without a guard and with
// ORDERONCE_WORLDS worlds.
func TestWorlds(t *testing.T) {
	t.Parallel()
	worlds := 2000
	if os.Getenv("ORDERONCE_ALL") != "" {
		worlds = 50_000
	}
	if n, err := strconv.Atoi(os.Getenv("ORDERONCE_WORLDS")); err == nil {
		worlds = n
	}
	r := simulation.Draw{Seed: 1, Worlds: worlds}.Run(nil)
	t.Logf("%d worlds", r.Drawn)
	check(t, r)
}

// TestPairs runs the searches of make prove.
func TestPairs(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	r := simulation.Run(simulation.Deep(2), nil)
	t.Logf("%d schedules, %d merged", r.Schedules, r.Merged)
	check(t, r)
}

func check(t *testing.T, r report.Report) {
	t.Helper()
	if r.Worst != nil {
		shortest := simulation.Shortest(r.Worst.Case, r.Worst.Tape, r.Worst.Violation)
		shortest.After = r.Worst.After
		_, _ = fmt.Fprintf(t.Output(), "%s", shortest)
		t.Errorf("%s is broken; go -C scripts/lab run ./simulation/run --replay %s", r.Worst.Violation.Invariant, r.Worst.Replay)
	}
}
