package effects_test

import (
	"testing"

	"orderonce/scripts/lab/effects"
)

// deviations is how many deviations the searches of a test allow; make prove allows more.
const deviations = 3

func TestTheProductKeepsItsPromisesInEverySchedule(t *testing.T) {
	t.Parallel()
	for _, w := range effects.Worlds() {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			r := w.Search(t.Context(), deviations)
			t.Logf("%d schedules", r.Schedules)
			if r.Found != nil {
				t.Errorf("%s", r.Found)
			}
			if r.Schedules < 3000 {
				t.Errorf("%d schedules, want at least 3000", r.Schedules)
			}
		})
	}
}
