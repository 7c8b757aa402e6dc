package simulation_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/lab/simulation"
	"orderonce/scripts/lab/stage"
)

// TestScenario runs every schedule of the scenarios. `make break` runs it without a
// guard, until ORDERONCE_BREAKS, an invariant, is broken, and parses its output.
func TestScenario(t *testing.T) {
	t.Parallel()
	r := simulation.Until(stage.Invariant(os.Getenv("ORDERONCE_BREAKS")), simulation.Scenarios())
	t.Logf("%d schedules, %d merged", r.Schedules, r.Merged)
	check(t, r)
}

// TestWorlds runs random worlds: ORDERONCE_WORLDS, with which make test-long asks for
// more, and `make break` for those that a patch needs.
func TestWorlds(t *testing.T) {
	t.Parallel()
	worlds, err := strconv.Atoi(os.Getenv("ORDERONCE_WORLDS"))
	if err != nil {
		worlds = 2000
	}
	r := simulation.Draw{Seed: 1, Worlds: worlds}.Run(nil)
	t.Logf("%d worlds", r.Drawn)
	check(t, r)
}

// TestPairs runs the searches of make prove, or those that have their turn.
func TestPairs(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	turn, err := stage.Turn(os.Getenv("ORDERONCE_TURN"))
	if err != nil {
		t.Fatal(err)
	}
	all := simulation.Deep(2)
	var searches []simulation.Search
	for i, search := range all {
		if turn(i) {
			searches = append(searches, search)
		}
	}
	r := simulation.Run(searches, nil)
	t.Logf("%d of %d searches: %d schedules, %d merged", len(searches), len(all), r.Schedules, r.Merged)
	check(t, r)
}

func check(t *testing.T, r simulation.Report) {
	t.Helper()
	if r.Worst != nil {
		shortest := simulation.Shortest(r.Worst.Case, r.Worst.Tape, r.Worst.Violation)
		shortest.After = r.Worst.After
		_, _ = fmt.Fprintf(t.Output(), "%s", shortest)
		t.Errorf("%s is broken; go -C scripts/lab run ./prove orders --replay %s", r.Worst.Violation.Invariant, r.Worst.Replay)
	}
}
