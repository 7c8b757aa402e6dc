package lambdatest_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
)

// history records what a host observes.
type history struct {
	mu     sync.Mutex
	events []lambdatest.Event
}

func (h *history) observe(e lambdatest.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// changes returns the number of the instance and the change of each event.
func (h *history) changes() (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		all = append(all, fmt.Sprint(e.Instance, " ", e.Change))
	}
	return all
}

func TestAnInvocationIsObservedBeforeTheFunctionRuns(t *testing.T) {
	t.Parallel()
	lines := make(starts, 2)
	host := start(t, lambdatest.Options{Output: lines, Observe: func(e lambdatest.Event) {
		if e.Change == lambdatest.Invoked {
			lines <- "observed"
		}
	}})
	ask(t, host, do("print", "printed"))
	if diff := cmp.Diff([]string{"observed", "printed"}, []string{<-lines, <-lines}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
