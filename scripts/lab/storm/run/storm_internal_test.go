package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/invariants"
	"orderonce/scripts/lab/guards"
	"orderonce/scripts/local/system"
)

// programs builds each program once for all tests.
type programs struct {
	mu    sync.Mutex
	paths map[string]string // by package
}

var built = programs{paths: map[string]string{}} //nolint:gochecknoglobals // builds take long

func (p *programs) build(ctx context.Context, pkg string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paths[pkg] == "" {
		dir, err := os.MkdirTemp("", "orderonce-storm-") // TestMain removes it
		if err != nil {
			return "", err
		}
		root, err := guards.Root(ctx)
		if err != nil {
			return "", err
		}
		p.paths[pkg] = filepath.Join(dir, filepath.Base(pkg))
		if err := (lambdatest.Program{Root: root, Package: pkg}).Build(ctx, p.paths[pkg]); err != nil {
			return "", err
		}
	}
	return p.paths[pkg], nil
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, path := range built.paths {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// product is the product with an order function that is built with an overlay, or "" for
// none.
func product(overlay string) Handler {
	return Handler{
		Name: "orderonce",
		Build: func(ctx context.Context, dir string) (binary, next string, err error) {
			if overlay == "" {
				binary, err = built.build(ctx, "./functions/order")
				return binary, binary, err
			}
			root, err := guards.Root(ctx)
			if err != nil {
				return "", "", err
			}
			binary = filepath.Join(dir, "order")
			p := lambdatest.Program{Root: root, Package: "./functions/order", Overlay: overlay}
			return binary, binary, p.Build(ctx, binary)
		},
		Parts: func(ctx context.Context, _ string) (add func(*system.Options), err error) {
			return BuildParts(func(pkg string) (string, error) { return built.build(ctx, pkg) })
		},
		Tool: func(ctx context.Context, _ string) (string, error) { return built.build(ctx, "./scripts/orders") },
	}
}

func small(t *testing.T, orders int) Options {
	t.Helper()
	lambdatest.FullOnly(t)
	return Options{
		Workload: Workload{Seed: 1, Orders: orders, Duplicates: 0.3, Refunded: 0.1, Resent: 0.5},
		Kills:    orders / 15, Instances: 4, Dir: t.TempDir(), Engine: dynamodbtest.Locate(t),
	}
}

// calm fails the test unless every order was settled and no invariant broken. In a large
// storm everything has happened that a storm has.
func calm(t *testing.T, o Options) {
	t.Helper()
	out, err := Storm(t.Context(), o, product(""))
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
	calm(t, small(t, 120))
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
			calm(t, o)
		})
	}
	for guard, invariant := range map[string]string{"conflict-as-done": "I9", "unknown-as-declined": "I15"} {
		t.Run(fmt.Sprintf("without %s the storm reports %s", guard, invariant), func(t *testing.T) {
			t.Parallel()
			out, err := Storm(t.Context(), small(t, 300), product(without(t, guard)))
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
	o.Workload, o.Kills, o.Instances = Workload{Seed: 1, Orders: 340, Refunded: 1, Resent: 1}, 60, 8
	refunded := 0
	o.Workload.Later = true
	for n := range o.Workload.Orders {
		refunded += min(len(o.Workload.refunds(n)), 1)
	}
	out, err := Storm(t.Context(), o, product(""))
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
