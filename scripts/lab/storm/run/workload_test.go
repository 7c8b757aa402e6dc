package run_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/orders"
	"orderonce/scripts/lab/storm/run"
)

func TestWorkloadIsReproducible(t *testing.T) {
	t.Parallel()
	workload := run.Workload{Seed: 7, Orders: 3000, Duplicates: 0.3}
	decoder := orders.NewDecoder()
	invalid, conflicting, resent := 0, 0, 0
	for n := range workload.Orders {
		messages := workload.Messages(n)
		if diff := cmp.Diff(workload.Messages(n), messages); diff != "" {
			t.Fatalf("two calls differ:\n%s", diff)
		}
		first, firstErr := decoder.Decode(messages[0].Body)
		for i, m := range messages {
			o, err := decoder.Decode(m.Body)
			if (err != nil) != m.Invalid {
				t.Fatalf("message %s: got error %v, want an error: %v\n%s", m.Name, err, m.Invalid, m.Body)
			}
			if err == nil && o.Total() != m.Total {
				t.Errorf("message %s: got a total of %v, want %v", m.Name, o.Total(), m.Total)
			}
			if m.Conflicting &&
				(o.Fingerprint() == first.Fingerprint() || o.Total() == first.Total() || o.ID() != first.ID()) {
				t.Errorf("message %s does not conflict with the first", m.Name)
			}
			if i > 0 && !m.Conflicting {
				resent++
			}
		}
		if firstErr != nil {
			invalid++
		}
		if len(messages) > 1 && messages[1].Conflicting {
			conflicting++
		}
	}
	for what, tt := range map[string]struct{ got, low, high int }{
		"invalid orders":     {invalid, 30, 90},
		"conflicting orders": {conflicting, 50, 130},
		"duplicate messages": {resent, 250, 350},
	} {
		if tt.got < tt.low || tt.got > tt.high {
			t.Errorf("got %d %s of %d, want %d to %d", tt.got, what, workload.Orders, tt.low, tt.high)
		}
	}
}

func TestNoRefundDependsOnTheMoment(t *testing.T) {
	t.Parallel()
	w := run.Workload{Seed: 7, Orders: 3000, Later: true, Refunded: 1}
	for n := range w.Orders {
		messages := w.Messages(n)
		if len(w.RefundMessages(n)) == 0 {
			continue
		}
		for _, m := range messages {
			waits := strings.Contains(m.Body, "usBankAccount") || strings.Contains(m.Body, "authenticationRequired")
			if m.Invalid || m.Conflicting || waits || n >= 2700 && w.Loses(n) {
				t.Errorf("order %d has refunds, want none of %+v", n, m)
			}
		}
	}
}
