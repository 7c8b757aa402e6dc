package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/lab/storm/run"
	"orderonce/scripts/local/system/systemtest"
)

// shared is the product, whose programs are built once for all storms.
var shared run.Handler //nolint:gochecknoglobals // builds take long

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "orderonce-storm-")
	if err != nil {
		panic(err)
	}
	shared = product(dir)
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func small(t *testing.T, orders int) run.Options {
	t.Helper()
	lambdatest.FullOnly(t)
	return run.Options{
		Workload:  run.Workload{Seed: 1, Orders: orders, Refunded: 0.1},
		Instances: 4, Dir: t.TempDir(), Engine: dynamodbtest.Locate(t),
	}
}

// settlesAll fails the test unless every order was settled and no invariant broken. In a
// large storm everything has happened that a storm has.
func settlesAll(t *testing.T, o run.Options) {
	t.Helper()
	out := keepsInvariants(t, o)
	n, f := o.Workload.Orders, out.Figures
	if f.Wrong() > 0 || f[run.Settled] != f[run.Orders] {
		t.Errorf("got %v, want every order settled and no error", f)
	}
	if f[run.Audited] < n*9/10 || f[run.Matched] != f[run.Audited] {
		t.Errorf("orders audit: got %v, want that all orders match", f)
	}
	least := run.Figures{run.Kills: n / 20, run.Extra: 1, run.Published: n, run.Failed: 1}
	if n >= 300 { // before that it is chance
		maps.Copy(least, run.Figures{
			run.Redriven: 1, run.SettledLater: 1, run.Deleted: 1, run.OtherKills: 1, run.Runs: 3, run.Webhooks: n / 3,
			run.RefundsMade: n / 10, run.RefundDeliveries: f[run.RefundMessages] + 1, run.RefundKills: 1, run.Canceled: 1,
			run.Put: n / 10, run.Requests: f[run.Put] + 1, run.Mails: n / 2, run.OutOfStock: 1,
		})
	}
	atLeast(t, out, least)
}

// keepsInvariants runs a storm with the product, and fails the test for each invariant
// that is broken.
func keepsInvariants(t *testing.T, o run.Options) run.Outcome {
	t.Helper()
	out, err := run.Storm(t.Context(), o, shared)
	systemtest.Must(t, err)
	for _, c := range out.Checks {
		for _, broken := range c.Broken {
			t.Errorf("%s (%s): %s", c.ID, c.Claim, broken)
		}
	}
	return out
}

func atLeast(t *testing.T, out run.Outcome, least run.Figures) {
	t.Helper()
	for name, n := range least {
		if got := out.Figures[name]; got < n {
			t.Errorf("got %d %s, want at least %d", got, name, n)
		}
	}
}

func TestStorm(t *testing.T) {
	t.Parallel()
	settlesAll(t, small(t, 120))
}

// TestLargerStorms also shows that a storm finds what a missing guard breaks.
func TestLargerStorms(t *testing.T) {
	t.Parallel()
	for name, fifo := range map[string]bool{
		"300 orders are settled once":                 false,
		"300 orders on a FIFO queue are settled once": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := small(t, 300)
			o.FIFO = fifo
			settlesAll(t, o)
		})
	}
	for guard, invariant := range map[string]string{"conflict-as-done": "I9", "unknown-as-declined": "I15"} {
		t.Run(fmt.Sprintf("without %s the storm reports %s", guard, invariant), func(t *testing.T) {
			t.Parallel()
			h, err := withoutGuard(t.Context(), guard, t.TempDir())
			systemtest.Must(t, err)
			out, err := run.Storm(t.Context(), small(t, 300), h)
			systemtest.Must(t, err)
			if !slices.Contains(out.Broken(), invariant) || out.Figures.Wrong() == 0 {
				t.Errorf("got %v, %q, want %s broken", out.Figures, out.Broken(), invariant)
			}
		})
	}
}

// TestRefundsUnderFaults makes deliveries of 1,000 refunds, half of which are sent three
// times. The invariants compare Stripe's ledger, the table and the events.
func TestRefundsUnderFaults(t *testing.T) {
	t.Parallel()
	o := small(t, 340)
	o.Workload.Refunded, o.Instances = 1, 8
	out := keepsInvariants(t, o)
	f := out.Figures
	if f[run.RefundsDoubled] > 0 {
		t.Errorf("got %d refunds made twice, want none", f[run.RefundsDoubled])
	}
	atLeast(t, out, run.Figures{
		run.RefundsAsked: 900, run.RefundMessages: 3 * f[run.RefundsAsked] / 2, run.RefundsMade: 600, run.RefundsExceeding: 30,
		run.RefundsNotCharged: 30, run.RefundDeliveries: f[run.RefundMessages] + 1, run.RefundKills: o.Workload.Orders / 20,
	})
	t.Logf("%v in %v", f, out.Took)
}
