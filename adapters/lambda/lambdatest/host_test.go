package lambdatest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
)

// folder is where subject is built.
var folder string //nolint:gochecknoglobals // TestMain removes it

//nolint:gochecknoglobals // one build serves every test
var built = sync.OnceValues(func() (path string, err error) {
	path = filepath.Join(folder, "bootstrap")
	return path, lambdatest.Build(context.Background(), "./internal/subject", path)
})

// subject is the path of the function that the tests run. The first test builds it and
// not TestMain, because go test does not see what TestMain opens; see
// lambdatest.OpenSources.
func subject(tb testing.TB) string {
	tb.Helper()
	lambdatest.FullOnly(tb)
	path, err := built()
	must(tb, err)
	return path
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "subject")
	if err != nil {
		panic(err)
	}
	folder = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// report is what the subject returns about itself.
type report struct {
	PID                         int
	RequestID, ARN, Trace, Text string
	Deadline                    time.Time
	Env                         []string
}

func start(t *testing.T, opts lambdatest.Options) *lambdatest.Host {
	t.Helper()
	opts.Binary = subject(t)
	if opts.Timeout == 0 {
		opts.Timeout = time.Minute
	}
	host, err := lambdatest.Start(opts)
	must(t, err)
	t.Cleanup(func() { must(t, host.Close()) })
	return host
}

func do(what, text string) []byte { return fmt.Appendf(nil, `{"do":%q,"text":%q}`, what, text) }

func ask(t *testing.T, host *lambdatest.Host, payload []byte) report {
	t.Helper()
	body, err := host.Invoke(t.Context(), payload)
	must(t, err)
	var response report
	if err := json.Unmarshal(body, &response); err != nil {
		t.Fatalf("%v in %q", err, body)
	}
	return response
}

// starts announces each printed line, so that a test knows that an invocation has begun.
type starts chan string

func (s starts) Write(p []byte) (int, error) {
	s <- strings.TrimSpace(string(p))
	return len(p), nil
}

func TestInvocation(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	host := start(t, lambdatest.Options{
		Timeout: 30 * time.Second, Now: func() time.Time { return now },
		Env: map[string]string{"AWS_REGION": "eu-west-1", "TABLE": "orders"},
	})
	first, second := ask(t, host, do("echo", "a")), ask(t, host, do("echo", "b"))
	if first.PID != second.PID || second.RequestID != "00000000-0000-4000-8000-000000000002" {
		t.Errorf("got %+v and %+v, want one process and two ids", first, second)
	}
	var names []string
	for _, pair := range first.Env {
		if name, value, _ := strings.Cut(pair, "="); name == "TABLE" || name == "AWS_REGION" {
			names = append(names, name+"="+value)
		} else if !strings.HasPrefix(name, "AWS_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	first.PID, first.Deadline, first.Env = 0, first.Deadline.UTC(), names
	want := report{
		RequestID: "00000000-0000-4000-8000-000000000001",
		ARN:       "arn:aws:lambda:us-east-1:123456789012:function:function", Text: "a", Deadline: now.Add(30 * time.Second),
		Trace: "Root=1-695735a5-000000000000000000000001;Parent=0000000000000001;Sampled=0",
		Env: []string{ // it inherits nothing
			"AWS_REGION=eu-west-1", "LAMBDA_TASK_ROOT", "PATH", "TABLE=orders", "TZ", "_HANDLER", "_X_AMZN_TRACE_ID",
		},
	}
	if diff := cmp.Diff(first, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// A process that ends by itself ends every wait for the function, and the next invocation
// starts another one. What the host ends is no exit of the function.
func TestFailures(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		init    string
		payload []byte
		is      error
		want    string   // in the error
		cause   []string // of the end of the process; nil if it did not end by itself
		history string   // "" if it differs from run to run
	}{
		"a returned error is reported and the process lives on": {
			payload: do("fail", "no"), want: "errorString: refused: no",
			history: "1 started, 1 invoked, 1 answered, 1 invoked, 1 answered, 1 invoked, 1 answered, 1 closed",
		},
		"a panic is reported before the process ends": {
			payload: do("panic", "ouch"), want: "string: ouch", cause: []string{"exit status 1"},
		},
		"an exit is a crash and keeps the unfinished last line": {
			payload: do("exit", "goodbye"), is: lambdatest.ErrCrashed, want: "exit status 4: goodbye",
			cause:   []string{"exit status 4: goodbye"},
			history: "1 started, 1 invoked, 1 answered, 1 invoked, 1 exited, 2 started, 2 invoked, 2 answered, 2 closed",
		},
		"a deadline": {
			payload: do("hang", ""), is: lambdatest.ErrTimedOut, want: "after 1s",
			history: "1 started, 1 invoked, 1 answered, 1 invoked, 1 timed_out, 2 started, 2 invoked, 2 answered, 2 closed",
		},
		"an exit at the start": {
			init: "exit", payload: do("echo", ""), is: lambdatest.ErrInit, want: "exit status 1: {",
			cause:   []string{`"level":"ERROR"`, `"error":"STRIPE_KEY: missing"}`}, // one line
			history: "1 started, 1 exited",
		},
		"an error that is reported at the start": {
			init: "error", payload: do("echo", ""), is: lambdatest.ErrInit, want: "Config: no key", cause: []string{"Config: no key"},
			history: "1 started, 1 exited",
		},
		"a panic at the start": {
			init: "panic", payload: do("echo", ""), is: lambdatest.ErrInit, want: "panic: no key",
			cause: []string{"exit status 2, last lines:\n", "panic: no key", "main.main"}, history: "1 started, 1 exited",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen history
			opts := lambdatest.Options{Env: map[string]string{"INIT": tt.init}, Observe: seen.observe}
			if errors.Is(tt.is, lambdatest.ErrTimedOut) {
				opts.Timeout = time.Second
			}
			host := start(t, opts)
			ctx, cancel := host.UntilExit(t.Context())
			defer cancel()
			if tt.init == "" {
				ask(t, host, do("echo", ""))
			}
			_, err := host.Invoke(t.Context(), tt.payload)
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error = %v, want %v with %q", err, tt.is, tt.want)
			}
			if tt.init == "" {
				ask(t, host, do("echo", ""))
			}
			if tt.cause != nil {
				<-ctx.Done()
			}
			for _, want := range tt.cause {
				if got := context.Cause(ctx); !errors.Is(got, lambdatest.ErrExited) || !strings.Contains(got.Error(), want) {
					t.Errorf("cause = %v, want ErrExited with %q", got, want)
				}
			}
			must(t, host.Close())
			if got := strings.Join(seen.changes(), ", "); tt.history != "" && got != tt.history {
				t.Errorf("got %s, want %s", got, tt.history)
			}
			if (ctx.Err() != nil) != (tt.cause != nil) {
				t.Errorf("cause = %v, want one only of a process that ended by itself", context.Cause(ctx))
			}
		})
	}
	t.Run("a binary that does not exist", func(t *testing.T) {
		t.Parallel()
		host, err := lambdatest.Start(lambdatest.Options{Binary: filepath.Join(t.TempDir(), "nothing")})
		must(t, err)
		t.Cleanup(func() { _ = host.Close() }) // nothing runs in it
		ctx, cancel := host.UntilExit(t.Context())
		defer cancel()
		_, err = host.Invoke(t.Context(), do("echo", ""))
		<-ctx.Done()
		if got := context.Cause(ctx); !errors.Is(got, os.ErrNotExist) || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("cause = %v, error = %v, want os.ErrNotExist in both", got, err)
		}
	})
}

// invoke runs in the background and returns the error.
func invoke(t *testing.T, host *lambdatest.Host, payload []byte) <-chan error {
	t.Helper()
	failed := make(chan error, 1)
	ctx := t.Context()
	go func() {
		_, err := host.Invoke(ctx, payload)
		failed <- err
	}()
	return failed
}

// What the host ends is no exit of the function, and others get the room.
func TestKill(t *testing.T) {
	t.Parallel()
	var seen history
	began := make(starts, 2)
	host := start(t, lambdatest.Options{Instances: 2, Output: began, Observe: seen.observe})
	ctx, cancel := host.UntilExit(t.Context())
	defer cancel()
	bad, good := invoke(t, host, do("hang", "bad")), invoke(t, host, do("hang", "good"))
	<-began
	<-began
	impatient, giveUp := context.WithCancel(t.Context())
	giveUp()
	if _, err := host.Invoke(impatient, do("echo", "")); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want the context's while no instance is free", err)
	}
	waiting := invoke(t, host, do("echo", ""))
	if n := host.Kill(func(payload []byte) bool { return bytes.Contains(payload, []byte("bad")) }); n != 1 {
		t.Errorf("Kill = %d, want 1: the one with the matching payload", n)
	}
	err := <-bad
	var exit *lambdatest.ExitError
	if !errors.Is(err, lambdatest.ErrCrashed) || !errors.As(err, &exit) || exit.Status != "signal: killed" {
		t.Errorf("error = %v, want a crash by signal", err)
	}
	must(t, <-waiting) // there is room for a fresh instance
	if n := host.Kill(nil); n != 1 {
		t.Errorf("Kill = %d, want every instance that runs an invocation", n)
	}
	if err := <-good; !errors.Is(err, lambdatest.ErrCrashed) {
		t.Errorf("error = %v, want ErrCrashed", err)
	}
	if n := host.Kill(nil); n != 0 {
		t.Errorf("Kill = %d, want 0: no invocation runs", n)
	}
	must(t, host.Close())
	ends := map[string]int{}
	for _, line := range seen.changes() {
		ends[strings.Fields(line)[1]]++
	}
	want := map[string]int{"started": 3, "invoked": 3, "answered": 1, "killed": 2, "closed": 1}
	if diff := cmp.Diff(ends, want); diff != "" || ctx.Err() != nil {
		t.Errorf("cause = %v, want none; changes (-got +want):\n%s", context.Cause(ctx), diff)
	}
}

// await looks again and again until something is so, and fails a test that would wait for
// ever.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

func touch(t *testing.T, path string) {
	t.Helper()
	must(t, os.WriteFile(path, nil, 0o600))
}

func TestAnInstanceThatEndedWhileIdleIsNotUsed(t *testing.T) {
	t.Parallel()
	host := start(t, lambdatest.Options{})
	before := ask(t, host, do("echo", "")).PID
	must(t, syscall.Kill(before, syscall.SIGKILL))
	await(t, "the idle instance is dead", func() bool { return host.Report().Live == 0 })
	if after := ask(t, host, do("echo", "")).PID; after == before {
		t.Errorf("process %d responded after its end", after)
	}
}

func TestLinesOfTwoInstancesStayWhole(t *testing.T) {
	t.Parallel()
	said := make(starts, 400)
	host := start(t, lambdatest.Options{Instances: 2, Output: said})
	for _, done := range []<-chan error{invoke(t, host, do("lines", "a")), invoke(t, host, do("lines", "b"))} {
		must(t, <-done)
	}
	if err := host.Close(); err != nil { // all is written then
		t.Fatal(err)
	}
	close(said)
	lines := map[string]int{}
	for line := range said {
		lines[line]++
	}
	if diff := cmp.Diff(lines, map[string]int{strings.Repeat("a", 1000): 200, strings.Repeat("b", 1000): 200}); diff != "" {
		t.Errorf("counts of lines: got -, want +\n%s", diff)
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	began := make(starts, 1)
	host := start(t, lambdatest.Options{Instances: 2, Output: began})
	dir := t.TempDir()
	end, next := filepath.Join(dir, "end"), filepath.Join(dir, "next")
	busy := invoke(t, host, do("until", end))
	<-began
	before := ask(t, host, do("echo", "")).PID
	must(t, os.Link(subject(t), next))
	must(t, host.Replace(next))
	touch(t, end)
	if err := <-busy; err != nil {
		t.Errorf("error of the running invocation = %v, want none", err)
	}
	for range 2 {
		after := ask(t, host, do("echo", ""))
		if after.PID == before || !slices.Contains(after.Env, "_HANDLER=next") {
			t.Errorf("process %d runs after %d, want one that runs the new binary", after.PID, before)
		}
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	var output bytes.Buffer
	host := start(t, lambdatest.Options{Output: &output})
	idle := ask(t, host, do("print", "the last words")).PID
	must(t, host.Close())
	if err := syscall.Kill(idle, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("signal to process %d = %v, want it ended", idle, err)
	}
	if got := output.String(); got != "the last words\n" {
		t.Errorf("output = %q, want all of it", got)
	}
	if _, err := host.Invoke(t.Context(), do("echo", "")); !errors.Is(err, lambdatest.ErrClosed) {
		t.Errorf("error = %v, want ErrClosed", err)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	host := start(t, lambdatest.Options{})
	ask(t, host, do("echo", ""))
	_, _ = host.Invoke(t.Context(), do("exit", ""))
	ask(t, host, do("echo", ""))
	live := host.Report()
	must(t, host.Close())
	got := host.Report()
	if live.Live != 1 || got.Live != 0 || got.FirstResponseMS <= 0 || got.CPUMS <= 0 ||
		live.PeakRSSBytes < 1<<20 || got.PeakRSSBytes < live.PeakRSSBytes || got.PeakRSSBytes > 1<<28 {
		t.Errorf("report = %+v, then %+v, want one live process, times and memory", live, got)
	}
}

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

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
