package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/scripts/lab/storm/run"
	"orderonce/scripts/local/system"
)

func TestEachProfileComesOnceInARound(t *testing.T) {
	t.Parallel()
	dynamo, stripe := run.Profiles()
	for seed := range uint64(20) {
		d, s := run.NextProfiles(seed, 3*len(dynamo)*len(stripe))
		for service, tt := range map[string]struct{ got, want []string }{"DynamoDB": {d, dynamo}, "Stripe": {s, stripe}} {
			for round := range slices.Chunk(tt.got, len(tt.want)) {
				if diff := cmp.Diff(slices.Sorted(slices.Values(round)), slices.Sorted(slices.Values(tt.want))); diff != "" {
					t.Errorf("seed %d, %s: (-got +want)\n%s", seed, service, diff)
				}
			}
		}
	}
}

func TestASeedDecidesTheFaultProfiles(t *testing.T) {
	t.Parallel()
	one, _ := run.NextProfiles(1, 50)
	again, _ := run.NextProfiles(1, 50)
	another, _ := run.NextProfiles(2, 50)
	if !slices.Equal(one, again) {
		t.Errorf("the same seed gave %q and %q", one, again)
	}
	if slices.Equal(one, another) {
		t.Errorf("two seeds gave %q", one)
	}
}

func TestAProfileFailsItsShareOfTheCalls(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		share     float64
		applies   bool
		low, high int
	}{
		"none of them": {0, true, 0, 0},
		"three in ten": {0.3, true, 2800, 3200},
		"all of them":  {1, true, 10_000, 10_000},
		"a fault that does not apply is not counted": {0.3, false, 2800, 3200},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			selected, counts := run.Inject(1, 10_000, tt.share, tt.applies)
			if selected < tt.low || selected > tt.high {
				t.Errorf("got %d of 10,000 calls, want %d to %d", selected, tt.low, tt.high)
			}
			want := selected
			if !tt.applies {
				want = 0
			}
			if got := counts["one fault"]; got != want {
				t.Errorf("got a count of %d, want %d", got, want)
			}
		})
	}
}

func TestDuplicatesAreDeliveredInBothWays(t *testing.T) {
	t.Parallel()
	got := run.Deliveries(1, 30_000, 0.3) // a third of the share is sent twice by the producer
	for how, n := range map[sqstest.Twice]int{sqstest.InSameBatch: 3000, sqstest.AtOnceBeside: 3000, sqstest.Once: 24_000} {
		if got[how] < n-300 || got[how] > n+300 {
			t.Errorf("got %d messages delivered in way %d, want about %d", got[how], how, n)
		}
	}
	if got := run.Deliveries(1, 1000, 0); got[sqstest.Once] != 1000 {
		t.Errorf("got %v, want every message once", got)
	}
}

func TestDeletesAreLostOnlyWithFaults(t *testing.T) {
	t.Parallel()
	if n := run.LostDeletes(1, 10_000, 0, 0); n != 0 {
		t.Errorf("got %d lost deletes without faults, want 0", n)
	}
	for _, profiles := range [][2]int{{1, 0}, {0, 1}, {1, 1}} {
		if n := run.LostDeletes(1, 10_000, profiles[0], profiles[1]); n < 50 || n > 150 {
			t.Errorf("profiles %v: got %d of 10,000 deletes lost, want about 100", profiles, n)
		}
	}
}

func TestIdleAndStalled(t *testing.T) {
	t.Parallel()
	never, always := func(int) bool { return false }, func(int) bool { return true }
	nothing := func(int) int64 { return 0 }
	for claim, tt := range map[string]struct {
		busy      func(int) bool
		delivered func(int) int64
		advances  bool // the clocks
		stalledAt int
	}{
		"stalled without a delivery, although busy":    {always, nothing, false, run.StallTimeout() + 1},
		"advances the clocks while idle, then stalled": {never, nothing, true, run.StallTimeout() + 1},
		"never stalled while messages are delivered":   {always, func(n int) int64 { return int64(n) }, false, 0},
		"every delivery resets the timeout":            {always, func(n int) int64 { return int64(n / run.StallTimeout()) }, false, 0},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			advanced, stalledAt := run.Polls(5*run.StallTimeout(), tt.busy, tt.delivered)
			if stalledAt != tt.stalledAt || len(advanced) > 0 != tt.advances {
				t.Errorf("got stalled at poll %d, clocks advanced %d times; want poll %d, advanced: %t",
					stalledAt, len(advanced), tt.stalledAt, tt.advances)
			}
		})
	}
}

func TestClocksAdvanceAfterIdleTimeOnly(t *testing.T) {
	t.Parallel()
	busyAt := run.IdleAfter() - 1
	advanced, _ := run.Polls(3*run.IdleAfter(), func(n int) bool { return n == busyAt },
		func(n int) int64 { return int64(n) })
	if diff := cmp.Diff(advanced, []int{busyAt + run.IdleAfter(), busyAt + 2*run.IdleAfter()}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
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
		if diff := cmp.Diff(run.KillsAt(tt.kills, tt.total), tt.want); diff != "" {
			t.Errorf("%d kills over %d messages: (-got +want)\n%s", tt.kills, tt.total, diff)
		}
	}
	if diff := cmp.Diff(run.Killed(4), []int{0}); diff != "" {
		t.Errorf("instances of one kill: (-got +want)\n%s", diff)
	}
}

func TestPersonalDataAndKeysInTheLogAreFound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "function.log")
	lines := []string{"{\"order_id\":\"storm-000001\"}\n", "cus_canary1\n", "the key " + system.PretendKey + "\n"}
	leaks, err := run.Leaks(path, lines...)
	must(t, err)
	if diff := cmp.Diff(leaks, []string{"cus_canary1", "the key " + system.PretendKey}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != strings.Join(lines, "") {
		t.Errorf("got a file with %q, %v, want every line", text, err)
	}
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf("canary %d\n", i)
	}
	if leaks, err := run.Leaks(path, many...); err != nil || len(leaks) != 10 {
		t.Errorf("got %d of 1,000 leaks, %v, want the first 10", len(leaks), err)
	}
}
