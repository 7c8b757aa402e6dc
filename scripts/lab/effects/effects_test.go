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

func TestNaiveCodeChargesTwiceAndSendsTwiceOrNever(t *testing.T) {
	t.Parallel()
	want := []string{"3 charges", "2 e-mails", `no e-mail, and the receipt is "sent"`}
	for i, w := range effects.NaiveWorlds() {
		t.Run(w.Does, func(t *testing.T) {
			t.Parallel()
			if r := w.Search(t.Context(), 1); r.Found == nil || r.Found.Violation.Detail != want[i] || len(r.Found.History) == 0 {
				t.Errorf("got %v, want %q, with a history", r.Found, want[i])
			}
		})
	}
}
