package schedule_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/lab/simulation/schedule"
)

func TestExploreRunsEachScheduleOnceAndTheUsualOneFirst(t *testing.T) {
	t.Parallel()
	var got [][]int
	runs := schedule.Explore(2, func(tape schedule.Tape, choose schedule.Choose) {
		a := choose(2)
		got = append(got, []int{tape.Deviations(), a, choose(3 - a)}) // the first choice limits the second
	})
	want := [][]int{{0, 0, 0}, {1, 1, 0}, {2, 1, 1}, {1, 0, 1}, {1, 0, 2}}
	if diff := cmp.Diff(got, want); diff != "" || runs != len(want) {
		t.Errorf("%d runs, (-got +want)\n%s", runs, diff)
	}
}

func TestEveryByteStringIsASchedule(t *testing.T) {
	t.Parallel()
	choose := schedule.Tape{1, 9, 0, 2}.Chooser()
	var got []int
	for _, n := range []int{2, 3, 4, 3, 5} {
		got = append(got, choose(n))
	}
	if diff := cmp.Diff(got, []int{1, 0, 0, 2, 0}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestShrinkKeepsOnlyTheChoicesThatMatter(t *testing.T) {
	t.Parallel()
	sevenThenThree := func(t schedule.Tape) bool {
		seen := false
		for _, option := range t {
			if seen && option == 3 {
				return true
			}
			seen = seen || option == 7
		}
		return false
	}
	got := schedule.Shrink(schedule.Tape{0, 5, 7, 0, 1, 0, 3, 3, 0, 7, 0, 0}, sevenThenThree)
	if diff := cmp.Diff(got, schedule.Tape{7, 3}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}
