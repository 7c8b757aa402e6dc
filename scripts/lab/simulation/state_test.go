package simulation_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/lab/simulation"
	"orderonce/scripts/lab/simulation/world"
)

// run continues a run of some searches, one of which may have a violation, and of worlds.
func run(t *testing.T, path string, seed uint64, searches, worlds int) simulation.Report {
	t.Helper()
	var all []simulation.Search
	for _, name := range []string{"a", "b", "c"} {
		c := world.Case{Name: name, Messages: []world.Message{sold(1, "pm_card_visa")}}
		all = append(all, simulation.Search{Case: c, Most: 1})
	}
	s, err := simulation.LoadState(path, seed)
	if err == nil {
		err = s.Continue(append(all, strict())[:searches], worlds, func(string, ...any) {})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s.Report
}

func TestAnInterruptedRunContinuesWithItsSeedAndStopsAtItsFinding(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "prove.state")
	run(t, path, 7, 1, 30)
	got, want := run(t, path, 99, 3, 70), run(t, "", 7, 3, 70)
	if diff := cmp.Diff(got.Tally, want.Tally); diff != "" || got.Schedules != want.Schedules || got.Drawn != 70 {
		t.Errorf("%d schedules and %d worlds, want %d and 70; (-got +want)\n%s", got.Schedules, got.Drawn, want.Schedules, diff)
	}
	first, again := run(t, path, 7, 4, 70), run(t, path, 7, 4, 90)
	if first.Worst == nil || again.Worst == nil || again.Drawn != 70 || again.Schedules != first.Schedules {
		t.Fatalf("got %v and then %v after %d worlds, want the finding twice and no world more", first.Worst, again.Worst, again.Drawn)
	}
	if diff := cmp.Diff(again.Worst.String(), first.Worst.String()); diff != "" {
		t.Errorf("another finding: (-after +before)\n%s", diff)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := simulation.LoadState(path, 7); err == nil {
		t.Error("a corrupt state was loaded")
	}
}

func TestAScheduleIsReplayedByItsName(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"pairs/0/000001", "42"} {
		if h, f, err := simulation.Replay(good); err != nil || f != nil || len(h) == 0 {
			t.Errorf("got %v, %v, %v", h, f, err)
		}
	}
	for _, bad := range []string{"", "x", "pairs/9999", "pairs/0/zz", "pairs/-1", "nope/0"} {
		if _, _, err := simulation.Replay(bad); err == nil {
			t.Errorf("%q was replayed", bad)
		}
	}
}
