package stage_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/lab/stage"
)

func TestExploreRunsEachScheduleOnceAndTheUsualOneFirst(t *testing.T) {
	t.Parallel()
	var got [][]int
	runs := stage.Explore(2, func(tape stage.Tape, _ int, choose stage.Choose) {
		a := choose(stage.Deviation, 2)
		got = append(got, []int{tape.Deviations(), a, choose(stage.Deviation, 3-a)}) // the first choice limits the second
	})
	want := [][]int{{0, 0, 0}, {1, 1, 0}, {2, 1, 1}, {1, 0, 1}, {1, 0, 2}}
	if diff := cmp.Diff(got, want); diff != "" || runs != len(want) {
		t.Errorf("%d runs, (-got +want)\n%s", runs, diff)
	}
}

func TestTheDetailsOfADeviationCostNothingMore(t *testing.T) {
	t.Parallel()
	var got [][]int
	stage.Explore(1, func(_ stage.Tape, left int, choose stage.Choose) {
		run := []int{left, choose(stage.Deviation, 2), 0, 0}
		if run[1] > 0 {
			run[2] = choose(stage.Detail, 2)
		}
		run[3] = choose(stage.Variety, 2)
		got = append(got, run)
	})
	want := [][]int{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 1, 1, 0}, {0, 0, 0, 1}}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestEveryByteStringIsASchedule(t *testing.T) {
	t.Parallel()
	choose := stage.Tape{1, 9, 0, 2}.Chooser()
	var got []int
	for _, n := range []int{2, 3, 4, 3, 5} {
		got = append(got, choose(stage.Deviation, n))
	}
	if diff := cmp.Diff(got, []int{1, 0, 0, 2, 0}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestShrinkKeepsOnlyTheChoicesThatMatter(t *testing.T) {
	t.Parallel()
	sevenThenThree := func(t stage.Tape) bool {
		seen := false
		for _, option := range t {
			if seen && option == 3 {
				return true
			}
			seen = seen || option == 7
		}
		return false
	}
	got := stage.Shrink(stage.Tape{0, 5, 7, 0, 1, 0, 3, 3, 0, 7, 0, 0}, sevenThenThree)
	if diff := cmp.Diff(got, stage.Tape{7, 3}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestEachCheckHasItsTurn(t *testing.T) {
	t.Parallel()
	for i := range 10 {
		var took []string
		for _, text := range []string{"7/3", "8/3", "9/3", ""} {
			if turn, err := stage.Turn(text); err != nil {
				t.Error(err)
			} else if turn(i) {
				took = append(took, text)
			}
		}
		if len(took) != 2 || took[1] != "" {
			t.Errorf("check %d: taken in %q, want one of three turns, and without turns always", i, took)
		}
	}
	for _, text := range []string{"3", "1/0", "-1/3"} {
		if _, err := stage.Turn(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: got %v, want an error", text, err)
		}
	}
}
