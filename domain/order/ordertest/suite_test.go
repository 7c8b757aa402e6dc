package ordertest_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"orderonce/domain/order/ordertest"
)

// recorder records the failures of a promise instead of reporting them. It runs in this
// process, so that hundreds of broken doubles can be tested quickly and without output.
type recorder struct {
	testing.TB

	name     string
	messages []string
	failed   bool
}

// runPromise tests a promise with a double until it returns or calls FailNow.
func runPromise[T any](t *testing.T, p ordertest.Promise[T], double T) *recorder {
	t.Helper()
	r := &recorder{TB: t, name: p.Name}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Test(r, double)
	}()
	<-done
	return r
}

func (r *recorder) Name() string   { return r.name }
func (r *recorder) Helper()        {}
func (r *recorder) Failed() bool   { return r.failed }
func (r *recorder) String() string { return strings.Join(r.messages, "\n") }

func (r *recorder) Error(args ...any) { r.Errorf("%s", fmt.Sprint(args...)) }

func (r *recorder) Errorf(format string, args ...any) {
	r.failed, r.messages = true, append(r.messages, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skip(args ...any) {
	r.messages = append(r.messages, fmt.Sprint(args...))
	runtime.Goexit()
}

// findPromise returns the promise of this name.
func findPromise[T any](t *testing.T, all []ordertest.Promise[T], name string) ordertest.Promise[T] {
	t.Helper()
	i := slices.IndexFunc(all, func(p ordertest.Promise[T]) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("the suite has no promise %q", name)
	}
	return all[i]
}

// testBug checks that the promise fails with a double that has a bug, and holds with the
// one without it.
func testBug[T any](t *testing.T, all []ordertest.Promise[T], promise string, wrong, right T) {
	t.Helper()
	p := findPromise(t, all, promise)
	if got := runPromise(t, p, wrong); !got.Failed() {
		t.Error("got no failure, want the promise to fail")
	}
	if got := runPromise(t, p, right); got.Failed() {
		t.Errorf("without the bug: got failure %s, want none", got)
	}
}

// uncovered returns the promises that no broken double breaks.
func uncovered[T any](all []ordertest.Promise[T], broken map[string]bool) (names []string) {
	for _, p := range all {
		if !broken[p.Name] {
			names = append(names, p.Name)
		}
	}
	return names
}
