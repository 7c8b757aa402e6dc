package simulation_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/lab/simulation"
	"orderonce/scripts/lab/simulation/report"
	"orderonce/scripts/lab/simulation/world"
)

func noProgress(int) {}

func someSearches() []simulation.Search {
	var all []simulation.Search
	for _, name := range []string{"a", "b", "c"} {
		all = append(all, simulation.Search{Case: world.Case{Name: name, Messages: []world.Message{sold(1, "pm_card_visa")}}, Most: 1})
	}
	return all
}

func TestAnInterruptedRunContinues(t *testing.T) {
	t.Parallel()
	load := func(path string) *simulation.State {
		s, err := simulation.LoadState(path)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	run := func(s *simulation.State, searches, worlds int) report.Report {
		_, err := s.Searches(someSearches()[:searches], noProgress)
		r, err2 := s.Worlds(7, worlds, noProgress)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		return r
	}
	path := filepath.Join(t.TempDir(), "new", "prove.state")
	run(load(path), 1, 300)
	got, want := run(load(path), 3, 700), run(load(""), 3, 700)
	if diff := cmp.Diff(got.Tally, want.Tally); diff != "" || got.Schedules != want.Schedules ||
		got.Drawn != 700 {
		t.Errorf("%d schedules and %d worlds, want %d and 700; (-got +want)\n%s", got.Schedules, got.Drawn, want.Schedules, diff)
	}
}

func TestAnInterruptedRunKeepsItsSeedAndStopsAtItsFinding(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "prove.state")
	load := func() *simulation.State {
		s, err := simulation.LoadState(path)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	worlds := func(s *simulation.State, seed uint64, n int) report.Report {
		r, err := s.Worlds(seed, n, noProgress)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	worlds(load(), 7, 100)
	got, want := worlds(load(), 99, 200), worlds(new(simulation.State), 7, 200)
	if diff := cmp.Diff(got.Tally, want.Tally); diff != "" {
		t.Errorf("the second half has another seed: (-got +want)\n%s", diff)
	}

	first, err := load().Searches([]simulation.Search{strict()}, noProgress)
	if err != nil || first.Worst == nil {
		t.Fatalf("got %v and %v, want a violation", first.Worst, err)
	}
	again, err := load().Searches(append(someSearches(), strict()), noProgress)
	if err != nil || again.Schedules != first.Schedules || again.Worst == nil {
		t.Fatalf("got %d schedules, %v and %v, want %d and the finding", again.Schedules, again.Worst, err, first.Schedules)
	}
	if diff := cmp.Diff(again.Worst.String(), first.Worst.String()); diff != "" {
		t.Errorf("another finding: (-after +before)\n%s", diff)
	}
	if r := worlds(load(), 7, 300); r.Drawn != 200 {
		t.Errorf("%d more worlds ran after the finding", r.Drawn-200)
	}
}

func TestLoadStateFailsOnACorruptFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "prove.state")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := simulation.LoadState(path); err == nil {
		t.Error("a corrupt state was loaded")
	}
}

func TestAScheduleIsReplayedByItsName(t *testing.T) {
	t.Parallel()
	h, f, err := simulation.ReplaySchedule("pairs", "0/000001")
	if err != nil || f != nil || len(h) == 0 {
		t.Errorf("got %v, %v, %v", h, f, err)
	}
	for _, bad := range []string{"", "x", "9999", "0/zz", "-1"} {
		if _, _, err := simulation.ReplaySchedule("pairs", bad); err == nil {
			t.Errorf("%q was replayed", bad)
		}
	}
	if _, _, err := simulation.ReplaySchedule("nope", "0"); err == nil {
		t.Error("an unknown list was replayed")
	}
}
