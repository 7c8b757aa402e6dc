// Package lambdatest is a pretend Lambda service for one function. It runs the unchanged
// binary in processes of its own and serves them the Runtime API, so that time-outs,
// crashes and cold starts are real. On Linux it freezes processes between invocations. It
// does not know what a payload means, where it comes from, and what happens after an
// invocation that failed.
//
// It works with every runtime that implements
// https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html.
package lambdatest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// The errors of an invocation without a response.
var (
	// ErrTimedOut is returned if the invocation reached its deadline and its process was
	// killed.
	ErrTimedOut = errors.New("task timed out")
	// ErrCrashed is returned if the process ended during the invocation; it wraps an
	// [*ExitError].
	ErrCrashed = errors.New("runtime exited")
	// ErrInit is returned if a new process did not request its first invocation. It wraps
	// a [*FunctionError], an [*ExitError] or, after ten seconds, ErrTimedOut.
	ErrInit = errors.New("init failed")
	// ErrClosed is returned if the host was closed before the invocation started.
	ErrClosed = errors.New("host is closed")
	// ErrExited is the cause of [Host.UntilExit] if the function cannot start, or if a
	// process of it exited by itself. It wraps an [*ExitError] or the reported
	// [*FunctionError].
	ErrExited = errors.New("function exited")
)

// FunctionError is an error that the function reported to /error or /init/error.
type FunctionError struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

// Error returns the type and the message, as in Lambda's log.
func (e *FunctionError) Error() string { return e.Type + ": " + e.Message }

// ExitError reports how a process ended.
type ExitError struct {
	// Status is such as "exit status 1" or "signal: killed".
	Status string
	// Output is the last lines that the process printed, without the last newline; empty
	// if none. They are enough for a panic with its trace.
	Output string
}

// Error returns the status and, if there are any, the last lines.
func (e *ExitError) Error() string {
	switch {
	case e.Output == "":
		return e.Status
	case strings.Contains(e.Output, "\n"):
		return e.Status + ", last lines:\n" + e.Output
	}
	return e.Status + ": " + e.Output
}

// Options configure a Host.
type Options struct {
	// Binary is the path of the executable, built as for Lambda; see [Build].
	Binary string
	// Env is the function's environment, which inherits nothing from this process. The
	// variables that Lambda sets are added unless they are set here.
	Env map[string]string
	// Timeout bounds each invocation, as in the function's configuration. Default 3 s, as
	// in Lambda.
	Timeout time.Duration
	// Instances is the limit of concurrent processes. Default 1.
	Instances int
	// Output receives the output of the processes, one whole line per Write. Nil discards
	// it.
	Output io.Writer
	// Now is the clock of the function's deadlines, and of the report. Default [time.Now].
	Now func() time.Time
	// Observe, if set, is called with each change of an instance, one after the other and
	// in their order: Invoked before the process has the payload, and the last one of an
	// invocation before Invoke returns. It must not call the host, change a payload or
	// block for long, because the instances wait for it.
	Observe func(Event)
}

const functionName = "function"

// Host runs one function. It is safe for concurrent use.
type Host struct {
	opts  Options
	slots chan struct{} // one per running invocation: the holder finds an idle instance or may start one
	ctx   context.Context
	close context.CancelFunc
	ended sync.WaitGroup
	print sync.Mutex

	observing sync.Mutex // before mu; one call of Observe at a time

	alive  context.Context // canceled when a process exits by itself; the cause is an ErrExited
	exited context.CancelCauseFunc

	mu     sync.Mutex
	binary string
	serial int
	idle   []*instance // the most recently used is the last
	live   map[*instance]*invocation
	starts int
	ends   Report  // without the processes that live
	events []Event // for publish
}

// Start returns a host, which starts processes as invocations need them. The caller must
// Close it.
func Start(opts Options) (*Host, error) {
	binary, err := filepath.Abs(opts.Binary)
	if err != nil {
		return nil, fmt.Errorf("locate %q: %w", opts.Binary, err)
	}
	opts.Timeout = cmp.Or(opts.Timeout, 3*time.Second)
	opts.Instances = max(opts.Instances, 1)
	if opts.Now == nil {
		opts.Now = time.Now //nolint:forbidigo // real processes have the real clock
	}
	if opts.Observe == nil {
		opts.Observe = func(Event) {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	alive, exited := context.WithCancelCause(context.Background())
	return &Host{
		opts: opts, binary: binary, slots: make(chan struct{}, opts.Instances),
		live: map[*instance]*invocation{},
		ctx:  ctx, close: cancel, alive: alive, exited: exited,
	}, nil
}

// UntilExit returns a copy of ctx that is canceled when the function cannot start, or
// when a process of it exits by itself: at its start, during an invocation or after one.
// The cause is then an [ErrExited] with the exit status and the last lines of output.
// What the host ends itself does not count, nor does a process that is killed by a
// signal.
//
// A test or a program that waits for what the function does should wait under this
// context. Without it, a function that exits each time is started again until the end of
// the wait.
func (h *Host) UntilExit(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.alive, func() { cancel(context.Cause(h.alive)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Close kills every process, and returns when all have ended and their output is written.
// Running invocations end with ErrCrashed.
func (h *Host) Close() error {
	h.mu.Lock()
	h.close()
	h.mu.Unlock()
	h.ended.Wait()
	return nil
}

// Invoke runs the function once: on the most recently used idle instance, or else on a
// new one, or else on the first one that becomes idle. It returns when that instance is
// ready for another invocation, or has ended.
//
// ctx bounds only the wait for an instance, because a running invocation cannot be
// canceled. Errors: [*FunctionError], [ErrTimedOut], [ErrCrashed], [ErrInit], [ErrClosed]
// and the context's.
func (h *Host) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	select {
	case h.slots <- struct{}{}:
	case <-h.ctx.Done():
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for an instance: %w", context.Cause(ctx))
	}
	defer func() { <-h.slots }()
	in := h.takeIdle()
	if in == nil {
		var err error
		if in, err = h.launch(); err != nil {
			return nil, err
		}
	}
	call := h.assign(in, payload)
	defer call.timer.Stop()
	h.publish()

	got := in.run(call)
	h.observe(in, got.err)
	if in.waitReady(call) {
		h.release(in)
	}
	return got.body, got.err
}

// Kill sends SIGKILL to the instances that run an invocation with a matching payload, or
// to all that run one if match is nil. It returns their number. Their Invoke returns
// ErrCrashed.
func (h *Host) Kill(match func(payload []byte) bool) (killed int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for in, call := range h.live {
		if call != nil && (match == nil || match(call.payload)) {
			_ = in.kill(Killed)
			killed++
		}
	}
	return killed
}

// Replace deploys a binary with another path. New instances run it, idle instances end
// now, and busy ones after their invocation.
func (h *Host) Replace(binary string) error {
	path, err := filepath.Abs(binary)
	if err != nil {
		return fmt.Errorf("locate %q: %w", binary, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.binary = path
	for _, in := range h.idle {
		_ = in.kill(Replaced)
	}
	h.idle = nil
	return nil
}

func (h *Host) takeIdle() *instance {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.idle) > 0 {
		in := h.idle[len(h.idle)-1]
		h.idle = h.idle[:len(h.idle)-1]
		if in.alive() {
			in.thaw()
			return in
		}
	}
	return nil
}

func (h *Host) release(in *instance) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resume(in)
	h.live[in] = nil
	if in.binary != h.binary {
		_ = in.kill(Replaced)
		return
	}
	in.freeze()
	h.idle = append(h.idle, in)
}

func (h *Host) assign(in *instance, payload []byte) *invocation {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serial++
	now := h.opts.Now()
	call := &invocation{
		serial:   h.serial, // not random, so that the same run prints the same ids
		id:       fmt.Sprintf("00000000-0000-4000-8000-%012x", h.serial),
		payload:  payload,
		began:    now,
		deadline: now.Add(h.opts.Timeout),
		timer:    time.NewTimer(h.opts.Timeout),
		result:   make(chan result, 1),
	}
	h.live[in] = call
	h.note(in, Invoked, nil)
	return call
}

// environ is what the documentation lists as defined runtime environment variables, under
// what the caller gives: a process has the last value of a name.
func (h *Host) environ(binary, api string) []string {
	env := []string{
		"AWS_ACCESS_KEY_ID=pretend",
		"AWS_SECRET_ACCESS_KEY=pretend",
		"AWS_SESSION_TOKEN=pretend",
		"AWS_REGION=us-east-1",
		"AWS_DEFAULT_REGION=us-east-1",
		"AWS_EXECUTION_ENV=AWS_Lambda_provided.al2023",
		"AWS_LAMBDA_FUNCTION_NAME=" + functionName,
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=128",
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/" + functionName,
		"AWS_LAMBDA_LOG_STREAM_NAME=pretend",
		"LAMBDA_TASK_ROOT=" + filepath.Dir(binary),
		"PATH=/usr/local/bin:/usr/bin/:/bin:/opt/bin",
		"TZ=:UTC",
		"_HANDLER=" + filepath.Base(binary),
	}
	for name, value := range h.opts.Env {
		env = append(env, name+"="+value)
	}
	return append(env, "AWS_LAMBDA_RUNTIME_API="+api)
}

// lastLines is the number of lines in an ExitError. A panic of a small program prints
// fewer.
const lastLines = 40

// lines writes whole lines to a writer that several processes share, and keeps the last
// ones.
type lines struct {
	mu   *sync.Mutex
	to   io.Writer
	part []byte
	last []string
}

// Write emits every whole line, and keeps the rest for the next call.
func (l *lines) Write(p []byte) (int, error) {
	l.part = append(l.part, p...)
	for {
		end := bytes.IndexByte(l.part, '\n')
		if end < 0 {
			return len(p), nil
		}
		l.emit(l.part[:end+1])
		l.part = l.part[end+1:]
	}
}

// finish writes the last line if a killed process did not end it.
func (l *lines) finish() {
	if len(l.part) > 0 {
		l.emit(append(l.part, '\n'))
	}
}

func (l *lines) emit(line []byte) {
	if len(l.last) == lastLines {
		l.last = slices.Delete(l.last, 0, 1)
	}
	l.last = append(l.last, string(line))
	if l.to == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.to.Write(line) // the function must not fail because its output is not read
}

func (l *lines) tail() string { return strings.TrimSpace(strings.Join(l.last, "")) }
