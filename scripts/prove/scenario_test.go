package prove_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"orderonce/scripts/prove"
)

// TestScenario goes through every schedule of a bounded number. `make break` runs it with a guard taken away, and reads
// what it prints.
func TestScenario(t *testing.T) {
	t.Parallel()
	r := prove.Run(prove.Scenarios(), nil)
	t.Logf("%d schedules, %d merged", r.Schedules, r.Merged)
	tell(t, r)
}

// TestWorlds draws worlds. `make break` may run it with a guard taken away and as many worlds as ORDERONCE_PROVE_WORLDS says.
func TestWorlds(t *testing.T) {
	t.Parallel()
	worlds := 2000
	if os.Getenv("ORDERONCE_SLOW") != "" {
		worlds = 50_000
	}
	if n, err := strconv.Atoi(os.Getenv("ORDERONCE_PROVE_WORLDS")); err == nil {
		worlds = n
	}
	r := prove.Draw{Seed: 1, Worlds: worlds}.Run(nil)
	t.Logf("%d worlds", r.Drawn)
	tell(t, r)
}

// TestPairs is what make prove searches, or as much of it as takes some seconds.
func TestPairs(t *testing.T) {
	t.Parallel()
	if os.Getenv("ORDERONCE_SLOW") == "" {
		t.Skip("searches for half a minute: set ORDERONCE_SLOW=1, or run make test or make prove")
	}
	r := prove.Run(prove.Deep(2), nil)
	t.Logf("%d schedules, %d merged", r.Schedules, r.Merged)
	tell(t, r)
}

func tell(t *testing.T, r prove.Report) {
	t.Helper()
	if r.Worst != nil {
		story := prove.NewLab().Shortest(r.Worst.Case, r.Worst.Tape, r.Worst.Violation)
		story.After = r.Worst.After
		_, _ = fmt.Fprintf(t.Output(), "%s", story)
		t.Errorf("%s is broken; go run ./scripts/prove/run --replay %s", r.Worst.Violation.Invariant, r.Worst.Replay)
	}
}
