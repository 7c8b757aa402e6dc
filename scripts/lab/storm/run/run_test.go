package run_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/invariants"
	"orderonce/scripts/lab/guards"
	"orderonce/scripts/lab/storm/run"
)

// engineOrSkip returns the engine, or skips the test without ORDERONCE_ALL.
func engineOrSkip(t *testing.T) dynamodbtest.Location {
	t.Helper()
	lambdatest.FullOnly(t)
	return dynamodbtest.Locate(t)
}

// product builds the functions with an overlay, or "" for none.
func product(overlay string) run.Handler {
	build := func(ctx context.Context, dir, pkg string) (path string, err error) {
		root, err := guards.Root(ctx)
		if err != nil {
			return "", err
		}
		path = filepath.Join(dir, filepath.Base(pkg))
		return path, lambdatest.Program{Root: root, Package: pkg, Overlay: overlay}.Build(ctx, path)
	}
	return run.Handler{
		Name: "orderonce",
		Build: func(ctx context.Context, dir string) (binary, next string, err error) {
			binary, err = build(ctx, dir, "./functions/order")
			return binary, binary, err
		},
		Later: func(ctx context.Context, dir string) (webhook, reconcile string, err error) {
			webhook, err = build(ctx, dir, "./functions/webhook")
			if err == nil {
				reconcile, err = build(ctx, dir, "./functions/reconcile")
			}
			return webhook, reconcile, err
		},
		Tool: func(ctx context.Context, dir string) (binary string, err error) {
			return build(ctx, dir, "./scripts/orders")
		},
	}
}

func small(t *testing.T, engine dynamodbtest.Location) run.Options {
	t.Helper()
	return run.Options{
		Workload: run.Workload{Seed: 1, Orders: 300, Duplicates: 0.3, Refunded: 0.1, Resent: 0.5}, Kills: 20, Instances: 4,
		Dir: t.TempDir(), Engine: engine,
	}
}

func TestStorm(t *testing.T) {
	t.Parallel()
	engine := engineOrSkip(t)
	for name, fifo := range map[string]bool{
		"300 orders are settled once":                 false,
		"300 orders on a FIFO queue are settled once": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := small(t, engine)
			o.FIFO = fifo
			out, err := run.Storm(t.Context(), o, product(""))
			must(t, err)
			for _, c := range out.Broken() {
				t.Errorf("%s (%s): %q", c.ID, c.Claim, c.Broken)
			}
			if out.Count.Wrong() > 0 || out.Count.Settled != out.Count.Orders {
				t.Errorf("got %+v, want every order settled and no error", out.Count)
			}
			if len(out.Faults) < 8 { // of 14 fault profiles
				t.Errorf("got faults of %v, want at least eight profiles", out.Faults)
			}
			if out.Kills < o.Kills || out.Redriven == 0 || out.Deliveries <= out.Count.Messages {
				t.Errorf("got %d kills, %d redriven, %d deliveries, want more of each", out.Kills,
					out.Redriven, out.Deliveries)
			}
			if l := out.Later; l.Settled == 0 || l.Deleted == 0 || l.Kills == 0 || l.Runs < 3 || l.Webhooks < 100 {
				t.Errorf("got %+v, want more of each", l)
			}
			if b := out.Books; b.Orders < 290 || b.Matched != b.Orders {
				t.Errorf("orders audit: got %+v, want that all orders match", b)
			}
			if r := out.Refunds; r.Made < 40 || r.Deliveries <= r.Messages || r.Kills == 0 || r.Canceled == 0 {
				t.Errorf("got %+v, want more of each", r)
			}
		})
	}
	for guard, invariant := range map[string]string{"conflict-as-done": "I9", "unknown-as-declined": "I15"} {
		t.Run(fmt.Sprintf("without %s the storm reports %s", guard, invariant), func(t *testing.T) {
			t.Parallel()
			out, err := run.Storm(t.Context(), small(t, engine), product(without(t, guard)))
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
	o := run.Options{
		Workload: run.Workload{Seed: 1, Orders: 340, Refunded: 1, Resent: 1}, Kills: 60, Instances: 8,
		Dir: t.TempDir(), Engine: engineOrSkip(t),
	}
	refunded := 0
	o.Workload.Later = true
	for n := range o.Workload.Orders {
		refunded += min(len(o.Workload.RefundMessages(n)), 1)
	}
	out, err := run.Storm(t.Context(), o, product(""))
	must(t, err)
	for _, c := range out.Broken() {
		t.Errorf("%s (%s): %q", c.ID, c.Claim, c.Broken)
	}
	r := out.Refunds
	if refunded < 300 || r.Asked < 1000 || r.Messages != 3*r.Asked || r.Doubled > 0 {
		t.Errorf("got %+v of %d orders, want three messages of each of 1,000 refunds of 300 orders, and none doubled", r, refunded)
	}
	if r.Made < 700 || r.Exceeding < 30 || r.NotCharged < 30 || r.Deliveries <= r.Messages || r.Kills < o.Kills {
		t.Errorf("got %+v, want more of each", r)
	}
	t.Logf("%+v in %v", r, out.Took)
}

// without returns an overlay without the guard.
func without(t *testing.T, guard string) string {
	t.Helper()
	root, err := guards.Root(t.Context())
	must(t, err)
	g, err := guards.Find(root, guard)
	must(t, err)
	overlay, err := g.Remove(t.Context(), root, t.TempDir())
	must(t, err)
	return overlay
}

// must ends the test on an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
