package play_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/scripts/lab/storm/play"
	"orderonce/scripts/local/system"
)

func TestEachSkyComesOnceInARound(t *testing.T) {
	t.Parallel()
	dynamo, stripe := play.Skies()
	for seed := range uint64(20) {
		d, s := play.DealSkies(seed, 3*len(dynamo)*len(stripe))
		for service, tt := range map[string]struct{ dealt, deck []string }{"DynamoDB": {d, dynamo}, "Stripe": {s, stripe}} {
			for round := range slices.Chunk(tt.dealt, len(tt.deck)) {
				if diff := cmp.Diff(slices.Sorted(slices.Values(round)), slices.Sorted(slices.Values(tt.deck))); diff != "" {
					t.Errorf("seed %d, %s: - dealt, + deck:\n%s", seed, service, diff)
				}
			}
		}
	}
}

func TestASeedDecidesTheWeather(t *testing.T) {
	t.Parallel()
	one, _ := play.DealSkies(1, 50)
	again, _ := play.DealSkies(1, 50)
	another, _ := play.DealSkies(2, 50)
	if !slices.Equal(one, again) {
		t.Errorf("the same seed dealt %q and %q", one, again)
	}
	if slices.Equal(one, another) {
		t.Errorf("two seeds dealt %q", one)
	}
}

func TestASkySpoilsItsShareOfTheCalls(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		share     float64
		possible  bool
		low, high int
	}{
		"none of them":                          {0, true, 0, 0},
		"three in ten":                          {0.3, true, 2800, 3200},
		"all of them":                           {1, true, 10_000, 10_000},
		"what is impossible is tried, not told": {0.3, false, 2800, 3200},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			spoiled, report := play.Draw(1, 10_000, tt.share, tt.possible)
			if spoiled < tt.low || spoiled > tt.high {
				t.Errorf("%d of 10,000 calls are spoiled, want %d to %d", spoiled, tt.low, tt.high)
			}
			told := spoiled
			if !tt.possible {
				told = 0
			}
			if report["fog"] != told {
				t.Errorf("the report says %v, want %d", report, told)
			}
		})
	}
}

func TestDuplicatesComeInBothWays(t *testing.T) {
	t.Parallel()
	got := play.Deliveries(1, 30_000, 0.3) // a third of the share is for the producer, who sends again
	for how, n := range map[sqstest.Twice]int{sqstest.InSameBatch: 3000, sqstest.AtOnceBeside: 3000, sqstest.Once: 24_000} {
		if got[how] < n-300 || got[how] > n+300 {
			t.Errorf("%d messages are delivered in way %d, want about %d", got[how], how, n)
		}
	}
	if got := play.Deliveries(1, 1000, 0); got[sqstest.Once] != 1000 {
		t.Errorf("%v, want every message once where no duplicates are asked for", got)
	}
}

func TestDeletesAreLostInBadWeatherOnly(t *testing.T) {
	t.Parallel()
	if n := play.LostDeletes(1, 10_000, 0, 0); n != 0 {
		t.Errorf("%d deletes are lost in fine weather", n)
	}
	for _, skies := range [][2]int{{1, 0}, {0, 1}, {1, 1}} {
		if n := play.LostDeletes(1, 10_000, skies[0], skies[1]); n < 50 || n > 150 {
			t.Errorf("skies %v: %d of 10,000 deletes are lost, want about 100", skies, n)
		}
	}
}

func TestWhoWaits(t *testing.T) {
	t.Parallel()
	never, always := func(int) bool { return false }, func(int) bool { return true }
	nothing := func(int) int64 { return 0 }
	for claim, tt := range map[string]struct {
		busy      func(int) bool
		delivered func(int) int64
		moves     bool // the clocks
		gaveUp    int
	}{
		"gives up when nothing is delivered, however busy the system looks": {always, nothing, false, play.Patience() + 1},
		"moves the clocks while nothing happens, and gives up in the end":   {never, nothing, true, play.Patience() + 1},
		"never gives up while something is delivered":                       {always, func(n int) int64 { return int64(n) }, false, 0},
		"begins to count again with every delivery": {
			always, func(n int) int64 { return int64(n / play.Patience()) }, false, 0,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			moved, gaveUp := play.Looks(5*play.Patience(), tt.busy, tt.delivered)
			if gaveUp != tt.gaveUp || len(moved) > 0 != tt.moves {
				t.Errorf("gave up at look %d and moved the clocks %d times, want look %d and any moves: %t", gaveUp, len(moved), tt.gaveUp, tt.moves)
			}
		})
	}
}

func TestClocksAreMovedAfterANapWithoutWork(t *testing.T) {
	t.Parallel()
	busyAt := play.Nap() - 1
	moved, _ := play.Looks(3*play.Nap(), func(n int) bool { return n == busyAt }, func(n int) int64 { return int64(n) })
	if diff := cmp.Diff(moved, []int{busyAt + play.Nap(), busyAt + 2*play.Nap()}); diff != "" {
		t.Errorf("- got, + want:\n%s", diff)
	}
}

func TestKillsAreSpreadEvenlyOverTheMessages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kills, total int
		want         []int
	}{
		{4, 20, []int{5, 10, 15, 20}},
		{3, 10, []int{4, 7, 10}},
		{3, 2, []int{1, 2, 2}},
		{0, 10, nil},
		{5, 0, nil},
	} {
		if diff := cmp.Diff(play.KillsAt(tt.kills, tt.total), tt.want); diff != "" {
			t.Errorf("%d kills over %d messages: - got, + want:\n%s", tt.kills, tt.total, diff)
		}
	}
	if diff := cmp.Diff(play.Killed(4), []int{0}); diff != "" {
		t.Errorf("more than one instance is killed at once: - got, + want:\n%s", diff)
	}
}

func TestTheScribeFindsWhatMustNotBeLogged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "function.log")
	lines := []string{"{\"order_id\":\"storm-000001\"}\n", "cus_canary1\n", "the key " + system.PretendKey + "\n"}
	leaks, err := play.Scribe(path, lines...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(leaks, []string{"cus_canary1", "the key " + system.PretendKey}); diff != "" {
		t.Errorf("- got, + want:\n%s", diff)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != strings.Join(lines, "") {
		t.Errorf("the file holds %q, %v, want every line", text, err)
	}
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf("canary %d\n", i)
	}
	if leaks, err := play.Scribe(path, many...); err != nil || len(leaks) != 10 {
		t.Errorf("%d of 1,000 leaks are kept, %v, want the first 10", len(leaks), err)
	}
}
