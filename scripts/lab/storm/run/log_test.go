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

func TestOrdersThatAreSettledWithoutAMessageAreCounted(t *testing.T) {
	t.Parallel()
	got, err := run.SettledLater(filepath.Join(t.TempDir(), "function.log"),
		`{"message":"webhook","order_id":"storm-000001","result":"settled","status":200}`,
		`{"message":"webhook","order_id":"storm-000002","result":"unavailable","error":"settle order: no response"}`,
		`{"message":"reconciled","results":{"settled":3,"unchanged":4},"more":false}`,
		`{"message":"reconciled","results":{"unchanged":4},"more":false}`,
		`{"message":"order","order_id":"storm-000003","verdict":"done","reason":"settled"}`,
		`panic: settled`,
	)
	if err != nil || got != 4 {
		t.Errorf("got %d, %v, want 4: one by a webhook, three by reconcile", got, err)
	}
}
