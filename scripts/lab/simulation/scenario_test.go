package simulation_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/lab/simulation"
)

// TestScenario goes through every schedule of a bounded number. `make break` runs it with
// a guard taken away, and reads what it prints.
func TestScenario(t *testing.T) {
	t.Parallel()
	r := simulation.Run(simulation.Scenarios(), nil)
	t.Logf("%d schedules, %d merged", r.Schedules, r.Merged)
	tell(t, r)
}

// TestWorlds draws worlds. `make break` may run it with a guard taken away and as many
// worlds as ORDERONCE_WORLDS says.
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
	tell(t, r)
}

// TestPairs is what make prove searches, or as much of it as takes some seconds.
func TestPairs(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	r := simulation.Run(simulation.Deep(2), nil)
	t.Logf("%d schedules, %d merged", r.Schedules, r.Merged)
	tell(t, r)
}

func tell(t *testing.T, r simulation.Report) {
	t.Helper()
	if r.Worst != nil {
		story := simulation.NewLab().Shortest(r.Worst.Case, r.Worst.Tape, r.Worst.Violation)
		story.After = r.Worst.After
		_, _ = fmt.Fprintf(t.Output(), "%s", story)
		t.Errorf("%s is broken; go -C scripts/lab run ./simulation/run --replay %s", r.Worst.Violation.Invariant, r.Worst.Replay)
	}
}
