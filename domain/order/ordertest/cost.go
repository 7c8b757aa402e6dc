package ordertest

import (
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// Cost is a call with a budget of allocations.
type Cost struct {
	Name           string // keys and values for benchstat, such as "write=Bind"
	Objects, Bytes uint64 // that one call may allocate
	Call           func() error
}

// TestCosts fails for a call that allocates more than its budget, and for a budget that
// is more than a quarter too large, because a regression would hide in it. A test must
// not call it in parallel with others.
func TestCosts(tb testing.TB, costs []Cost) {
	tb.Helper()
	for _, c := range costs {
		objects, bytes := c.measure(tb)
		if instrumented() {
			continue // the instruments allocate too
		}
		for unit, used := range map[string][2]uint64{"objects": {objects, c.Objects}, "bytes": {bytes, c.Bytes}} {
			if problem := compare(used[0], used[1], runtime.Version()); problem != "" {
				tb.Errorf("%s: allocates %d %s, %s of %d", c.Name, used[0], unit, problem, used[1])
			}
		}
	}
}

// BenchmarkCosts runs each call as a benchmark of its name.
func BenchmarkCosts(b *testing.B, costs []Cost) {
	b.Helper()
	for _, c := range costs {
		b.Run(c.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// compare returns what is wrong with a budget, or "". The budgets were measured with Go
// 1.26. Another release may allocate a quarter more.
func compare(got, budget uint64, release string) (problem string) {
	exact := strings.HasPrefix(release, "go1.26.")
	switch {
	case got > budget && (exact || 4*got > 5*budget):
		return "over its budget"
	case exact && 4*got < 3*budget:
		return "so lower its budget"
	}
	return ""
}

// measure returns what one call allocates: the least mean of several rounds, because the
// first call fills caches, and other goroutines of the process may allocate. No
// collection empties a sync.Pool meanwhile.
func (c Cost) measure(tb testing.TB) (objects, bytes uint64) {
	tb.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const rounds, calls = 5, 20
	objects, bytes = math.MaxUint64, math.MaxUint64
	for range rounds {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range calls {
			if err := c.Call(); err != nil {
				tb.Fatalf("%s: %v", c.Name, err)
			}
		}
		runtime.ReadMemStats(&after)
		objects = min(objects, (after.Mallocs-before.Mallocs)/calls)
		bytes = min(bytes, (after.TotalAlloc-before.TotalAlloc)/calls)
	}
	return objects, bytes
}

// instrumented reports whether the test was built for the race detector or for coverage.
func instrumented() bool {
	info, known := debug.ReadBuildInfo()
	return !known || slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-race" || s.Key == "-cover"
	})
}
