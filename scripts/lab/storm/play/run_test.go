package play_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/lab/guards"
	"orderonce/scripts/lab/storm/play"
	"orderonce/scripts/local/system"
)

// open skips or fails a test that has no engine, or no time.
func open(t *testing.T) dynamodbtest.Location {
	t.Helper()
	lambdatest.FullOnly(t)
	return dynamodbtest.Locate(t)
}

// product builds the order function, in the release and with the guards that an overlay leaves; "" leaves all.
func product(overlay string) play.Handler {
	return play.Handler{Name: "orderonce", Build: func(ctx context.Context, dir string) (binary, next string, err error) {
		path := filepath.Join(dir, "bootstrap")
		root, err := guards.Root(ctx)
		if err != nil {
			return "", "", err
		}
		return path, path, lambdatest.Program{Root: root, Package: "./functions/order", Overlay: overlay}.Build(ctx, path)
	}}
}

func small(t *testing.T, engine dynamodbtest.Location) play.Options {
	t.Helper()
	return play.Options{
		Script: play.Script{Seed: 1, Orders: 300, Duplicates: 0.3}, Kills: 20, Instances: 4,
		Dir: t.TempDir(), Engine: engine,
	}
}

func TestStorm(t *testing.T) {
	t.Parallel()
	engine := open(t)
	for name, fifo := range map[string]bool{
		"300 orders in a storm are settled once":                       false,
		"300 orders in a storm over a FIFO queue are settled once too": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := small(t, engine)
			o.FIFO = fifo
			out, err := play.Run(t.Context(), o, product(""))
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range out.Broken() {
				t.Errorf("%s (%s): %q", c.ID, c.Claim, c.Broken)
			}
			if out.Count.Wrong() > 0 || out.Count.Settled != out.Count.Orders {
				t.Errorf("%+v", out.Count)
			}
			if len(out.Faults) < 8 { // of 12 kinds of bad weather
				t.Errorf("the weather was too good: %v", out.Faults)
			}
			if out.Kills < o.Kills || out.Redriven == 0 || out.Deliveries <= out.Count.Messages {
				t.Errorf("that was no storm: %d kills, %d redriven, %d deliveries", out.Kills, out.Redriven, out.Deliveries)
			}
		})
	}
	for guard, invariant := range map[string]string{"conflict-as-done": "I9", "unknown-as-declined": "I15"} {
		t.Run(fmt.Sprintf("without the guard of %s.patch the storm names %s", guard, invariant), func(t *testing.T) {
			t.Parallel()
			out, err := play.Run(t.Context(), small(t, engine), product(without(t, guard)))
			if err != nil {
				t.Fatal(err)
			}
			broken := out.Broken()
			if !slices.ContainsFunc(broken, func(c system.Check) bool { return c.ID == invariant }) || out.Count.Wrong() == 0 {
				t.Errorf("%s is not broken: %+v, %+v", invariant, out.Count, broken)
			}
		})
	}
}

// without takes a guard away and returns the overlay that says so.
func without(t *testing.T, guard string) string {
	t.Helper()
	root, err := guards.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g, err := guards.Find(root, guard)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := g.TakeAway(t.Context(), root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return overlay
}
