package ordertest_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"orderonce/domain/order/ordertest"
)

// hearing is a test that fails nobody: what a promise says of a broken double goes here.
// It runs in this process and not in one of its own, so that a promise can be held to a
// hundred doubles in a moment, and nobody has to read what go test prints.
type hearing struct {
	testing.TB

	name   string
	said   []string
	failed bool
}

// hear holds a double to a promise, to its end, also if that is a FailNow.
func hear[T any](t *testing.T, p ordertest.Promise[T], double T) *hearing {
	t.Helper()
	h := &hearing{TB: t, name: p.Says}
	over := make(chan struct{})
	go func() {
		defer close(over)
		p.Keep(h, double)
	}()
	<-over
	return h
}

func (h *hearing) Name() string   { return h.name }
func (h *hearing) Helper()        {}
func (h *hearing) Failed() bool   { return h.failed }
func (h *hearing) String() string { return strings.Join(h.said, "\n") }

func (h *hearing) Error(args ...any) { h.Errorf("%s", fmt.Sprint(args...)) }

func (h *hearing) Errorf(format string, args ...any) {
	h.failed, h.said = true, append(h.said, fmt.Sprintf(format, args...))
}

func (h *hearing) Fatalf(format string, args ...any) {
	h.Errorf(format, args...)
	runtime.Goexit()
}

func (h *hearing) Skip(args ...any) {
	h.said = append(h.said, fmt.Sprint(args...))
	runtime.Goexit()
}

// find is the promise that says so.
func find[T any](t *testing.T, all []ordertest.Promise[T], says string) ordertest.Promise[T] {
	t.Helper()
	i := slices.IndexFunc(all, func(p ordertest.Promise[T]) bool { return p.Says == says })
	if i < 0 {
		t.Fatalf("the suite has no promise %q", says)
	}
	return all[i]
}

// covered checks that every promise has a double that breaks it.
func covered[T any](t *testing.T, all []ordertest.Promise[T], broken []string) {
	t.Helper()
	for _, p := range all {
		if !slices.Contains(broken, p.Says) {
			t.Errorf("no double breaks the promise %q", p.Says)
		}
	}
}
