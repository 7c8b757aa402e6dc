package lambdatest_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
)

// history records what a host observes, one line for each event: the number of the
// instance, the change, the payload and the error.
type history struct {
	mu    sync.Mutex
	lines []string
}

func (h *history) observe(e lambdatest.Event) {
	line := fmt.Sprintf("%d %s", e.Instance, e.Change)
	if e.Payload != nil {
		line += " " + string(e.Payload)
	}
	if e.Err != nil {
		line += ": " + e.Err.Error()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, line)
}

func (h *history) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

func TestEachChangeOfAnInstanceIsObservedInOrder(t *testing.T) {
	t.Parallel()
	echo, fail, exit, hang := `{"do":"echo","text":""}`, `{"do":"fail","text":"no"}`, `{"do":"exit","text":""}`,
		`{"do":"hang","text":""}`
	for claim, tt := range map[string]struct {
		opts     lambdatest.Options
		payloads []string
		want     []string
	}{
		"a warm instance": {
			lambdatest.Options{}, []string{echo, fail, echo}, []string{
				"1 started", "1 invoked " + echo, "1 answered " + echo, "1 invoked " + fail,
				"1 answered " + fail + ": errorString: refused: no", "1 invoked " + echo, "1 answered " + echo, "1 closed",
			},
		},
		"an instance that exits during an invocation": {
			lambdatest.Options{}, []string{exit, echo}, []string{
				"1 started", "1 invoked " + exit, "1 exited " + exit, "2 started", "2 invoked " + echo, "2 answered " + echo,
				"2 closed",
			},
		},
		"an instance that reaches its deadline": {
			lambdatest.Options{Timeout: 500 * time.Millisecond},
			[]string{hang},
			[]string{"1 started", "1 invoked " + hang, "1 timed_out " + hang},
		},
		"an instance that does not start": {
			lambdatest.Options{Env: map[string]string{"INIT": "exit"}}, []string{echo}, []string{"1 started", "1 exited"},
		},
		"an instance that reports an error at its start": {
			lambdatest.Options{Env: map[string]string{"INIT": "error"}}, []string{echo}, []string{"1 started", "1 exited"},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			var got history
			tt.opts.Observe = got.observe
			host := start(t, tt.opts)
			for _, payload := range tt.payloads {
				_, _ = host.Invoke(t.Context(), []byte(payload)) // the history has the error
			}
			must(t, host.Close())
			if diff := cmp.Diff(tt.want, got.all()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
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
