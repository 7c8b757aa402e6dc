package main

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/invariants"
	"orderonce/scripts/lab/storm/run"
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
		Workload: run.Workload{Seed: 1, Orders: orders, Duplicates: 0.3, Refunded: 0.1, Resent: 0.5},
		Kills:    orders / 15, Instances: 4, Dir: t.TempDir(), Engine: dynamodbtest.Locate(t),
	}
}

// settlesAll fails the test unless every order was settled and no invariant broken. In a
// large storm everything has happened that a storm has.
func settlesAll(t *testing.T, o run.Options) {
	t.Helper()
	out, err := run.Storm(t.Context(), o, shared)
	must(t, err)
	for _, c := range out.Broken() {
		t.Errorf("%s (%s): %q", c.ID, c.Claim, c.Broken)
	}
	n := o.Workload.Orders
	if out.Count.Wrong() > 0 || out.Count.Settled != out.Count.Orders {
		t.Errorf("got %+v, want every order settled and no error", out.Count)
	}
	if b := out.Books; b.Orders < n*9/10 || b.Matched != b.Orders {
		t.Errorf("orders audit: got %+v, want that all orders match", b)
	}
	if out.Kills < o.Kills || out.Deliveries <= out.Count.Messages || out.Parts.Published < n {
		t.Errorf("got %d kills, %d deliveries, %d events; want more of each", out.Kills, out.Deliveries,
			out.Parts.Published)
	}
	if n < 300 { // the rest is chance
		return
	}
	if len(out.Faults) < 6 || out.Redriven == 0 {
		t.Errorf("got %d redriven and faults of %v, want more of each", out.Redriven, out.Faults)
	}
	if l := out.Later; l.Settled == 0 || l.Deleted == 0 || l.Kills == 0 || l.Runs < 3 || l.Webhooks < n/3 {
		t.Errorf("got %+v, want more of each", l)
	}
	if r := out.Refunds; r.Made < n/10 || r.Deliveries <= r.Messages || r.Kills == 0 || r.Canceled == 0 {
		t.Errorf("got %+v, want more of each", r)
	}
	if p := out.Parts; p.Put < n/10 || p.Requests <= p.Put || p.Mails < n/2 || p.OutOfStock == 0 {
		t.Errorf("got %+v, want more of each", p)
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
			must(t, err)
			out, err := run.Storm(t.Context(), small(t, 300), h)
			must(t, err)
			broken := out.Broken()
			if !slices.ContainsFunc(broken, func(c invariants.Result) bool { return c.ID == invariant }) ||
				out.Count.Wrong() == 0 {
				t.Errorf("got %+v, %+v, want %s broken", out.Count, broken, invariant)
			}
		})
	}
}

// TestRefundsUnderFaults makes three deliveries of each of 1,000 refunds. The invariants
// compare Stripe's ledger, the table and the events.
func TestRefundsUnderFaults(t *testing.T) {
	t.Parallel()
	o := small(t, 340)
	o.Workload, o.Kills, o.Instances = run.Workload{Seed: 1, Orders: 340, Refunded: 1, Resent: 1}, 60, 8
	out, err := run.Storm(t.Context(), o, shared)
	must(t, err)
	for _, c := range out.Broken() {
		t.Errorf("%s (%s): %q", c.ID, c.Claim, c.Broken)
	}
	r := out.Refunds
	if r.Asked < 1000 || r.Messages != 3*r.Asked || r.Doubled > 0 {
		t.Errorf("got %+v, want three messages of each of 1,000 refunds, and none doubled", r)
	}
	if r.Made < 700 || r.Exceeding < 30 || r.NotCharged < 30 || r.Deliveries <= r.Messages || r.Kills < o.Kills {
		t.Errorf("got %+v, want more of each", r)
	}
	t.Logf("%+v in %v", r, out.Took)
}
