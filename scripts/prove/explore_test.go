package prove_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/scripts/prove"
)

func TestExploreVisitsEachSeriesOnceAndTheUsualOneFirst(t *testing.T) {
	t.Parallel()
	var got [][]int
	var deviations []int
	runs := prove.Explore(2, func(n int, choose prove.Choose) {
		a := choose(2)
		series := []int{a, choose(3 - a)} // how many ways there are may depend on the way so far
		got, deviations = append(got, series), append(deviations, n)
	})
	want := [][]int{{0, 0}, {1, 0}, {0, 1}, {0, 2}, {1, 1}}
	if diff := cmp.Diff(want, got); diff != "" || runs != len(want) {
		t.Errorf("%d runs, (-want +got)\n%s", runs, diff)
	}
	if diff := cmp.Diff([]int{0, 1, 1, 1, 2}, deviations); diff != "" {
		t.Errorf("deviations (-want +got)\n%s", diff)
	}
}

func TestTheSameChoicesGiveTheSameHistory(t *testing.T) {
	t.Parallel()
	c := searches()[0].Case
	decoder := sqs.NewDecoder()
	histories := func() (all []prove.History) {
		prove.Explore(1, func(_ int, choose prove.Choose) {
			_, h := prove.New(decoder, c, choose).Run()
			all = append(all, h)
		})
		return all
	}
	if diff := cmp.Diff(histories(), histories()); diff != "" {
		t.Error(diff)
	}
}

// A search that never comes to a place says nothing about it.
func TestTheSearchReachesEveryReasonThatItsFaultsCanBring(t *testing.T) {
	t.Parallel()
	unseen := map[order.Reason]bool{}
	for _, r := range order.Reasons() {
		unseen[r] = true
	}
	decoder := sqs.NewDecoder()
	for _, s := range searches() {
		if s.Gap != 25*time.Hour {
			continue
		}
		prove.Explore(s.Most, func(_ int, choose prove.Choose) {
			_, h := prove.New(decoder, s.Case, choose).Run()
			for _, l := range h {
				if _, rest, reply := strings.Cut(l.What, " ("); reply {
					delete(unseen, order.Reason(strings.TrimSuffix(rest, ")")))
				}
			}
		})
	}
	want := map[order.Reason]bool{ // what needs another release, a wrong configuration, a broken provider, a lost table or more deviations
		order.ReasonUnknownVersion: true, order.ReasonMisconfigured: true, order.ReasonUnconfirmed: true, order.ReasonMismatch: true,
		order.ReasonRefused: true, order.ReasonKeyReused: true, order.ReasonInvalid: true, order.ReasonReplayed: true,
	}
	if diff := cmp.Diff(want, unseen); diff != "" {
		t.Errorf("unseen reasons (-want +got)\n%s", diff)
	}
}
