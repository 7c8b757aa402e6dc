package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/lab/storm/run"
	"orderonce/scripts/local/system"
)

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
