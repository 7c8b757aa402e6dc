package run

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/orders"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

func TestWorkloadIsReproducible(t *testing.T) {
	t.Parallel()
	workload := Workload{Seed: 7, Orders: 3000}
	decoder := orders.NewDecoder()
	var count [3]int // messages by content, without the first of each order
	for n := range workload.Orders {
		messages := workload.messages(n)
		if diff := cmp.Diff(fmt.Sprint(workload.messages(n)), fmt.Sprint(messages)); diff != "" {
			t.Fatalf("two calls differ:\n%s", diff)
		}
		first, _ := decoder.Decode(messages[0].body)
		for i, m := range messages {
			o, err := decoder.Decode(m.body)
			if (err != nil) != (m.content == invalid) || o.Total() != m.total {
				t.Fatalf("message %s: got %v, %v, want %v\n%s", m.name(), o.Total(), err, m.total, m.body)
			}
			if m.content == conflicting &&
				(o.Fingerprint() == first.Fingerprint() || o.Total() == first.Total() || o.ID() != first.ID()) {
				t.Errorf("message %s does not conflict with the first", m.name())
			}
			if i > 0 || m.content == invalid {
				count[m.content]++
			}
		}
	}
	for what, tt := range map[string]struct{ got, low, high int }{
		"invalid orders":     {count[invalid], 30, 90},
		"conflicting orders": {count[conflicting], 50, 130},
		"duplicate messages": {count[original], 250, 350},
	} {
		if tt.got < tt.low || tt.got > tt.high {
			t.Errorf("got %d %s of %d, want %d to %d", tt.got, what, workload.Orders, tt.low, tt.high)
		}
	}
}

func TestNoRefundDependsOnTheMoment(t *testing.T) {
	t.Parallel()
	w := Workload{Seed: 7, Orders: 3000, Later: true, Refunded: 1}
	for n := range w.Orders {
		if len(w.refunds(n)) == 0 {
			continue
		}
		for _, m := range w.messages(n) {
			waits := strings.Contains(m.body, "usBankAccount") || strings.Contains(m.body, "authenticationRequired")
			if m.content != original || waits || n >= 2700 && w.loses(n) {
				t.Errorf("order %d has refunds, want none of %+v", n, m)
			}
		}
	}
}

func TestIdleAndStalled(t *testing.T) {
	t.Parallel()
	const timeout = int(stallTimeout / pollInterval)
	never, always := func(int) bool { return false }, func(int) bool { return true }
	nothing := func(int) int { return 0 }
	for claim, tt := range map[string]struct {
		busy      func(int) bool
		delivered func(int) int
		advances  bool // the clocks
		stalledAt int
	}{
		"stalled without a delivery, although busy":    {always, nothing, false, timeout + 1},
		"advances the clocks while idle, then stalled": {never, nothing, true, timeout + 1},
		"never stalled while messages are delivered":   {always, func(n int) int { return n }, false, 0},
		"every delivery resets the timeout":            {always, func(n int) int { return n / timeout }, false, 0},
	} {
		v, advanced, stalledAt := idleWatch{delivered: -1}, false, 0
		for n := 1; n <= 5*timeout && stalledAt == 0; n++ {
			idle, stalled := v.poll(tt.busy(n), tt.delivered(n))
			if advanced = advanced || idle; stalled {
				stalledAt = n
			}
		}
		if stalledAt != tt.stalledAt || advanced != tt.advances {
			t.Errorf("%s: got stalled at poll %d, clocks advanced: %t; want poll %d, advanced: %t",
				claim, stalledAt, advanced, tt.stalledAt, tt.advances)
		}
	}
}

func TestPersonalDataAndKeysInTheLogAreFound(t *testing.T) {
	t.Parallel()
	log, err := newFunctionLog(filepath.Join(t.TempDir(), "function.log"), &tally{figures: Figures{}})
	systemtest.Must(t, err)
	t.Cleanup(func() { systemtest.Must(t, log.Close()) })
	lines := []string{`{"order_id":"storm-000001"}`, "cus_canary1", "the key " + system.PretendKey}
	for _, line := range lines {
		_, err := log.Write([]byte(line + "\n"))
		systemtest.Must(t, err)
	}
	if diff := cmp.Diff(log.leaked(), lines[1:]); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestAFIFOHandlerDropsWhatIsSentTwice(t *testing.T) {
	t.Parallel()
	st := &storm{Options: Options{FIFO: true}, handler: Handler{FIFO: true}}
	first := st.draft(1, "1.0", "a")
	if again := st.draft(1, "1.1", "a"); again.DeduplicationID != first.DeduplicationID {
		t.Errorf("the same body: got another deduplication id")
	}
	if other := st.draft(1, "1.1", "b"); other.DeduplicationID == first.DeduplicationID || other.Group != first.Group {
		t.Errorf("got %+v and %+v, want two deduplication ids and one group", first, other)
	}
}
