package lambdatest

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// instance is one execution environment: a process and a Runtime API of its own. Each has
// a listener, because runtimes other than Go's read only host:port from
// AWS_LAMBDA_RUNTIME_API.
type instance struct {
	number int
	binary string
	cmd    *exec.Cmd
	server *http.Server
	output *lines
	began  time.Time
	warm   bool // the first response was observed
	frozen bool // by Freeze

	ready    chan struct{}                 // the process requests an invocation
	work     chan *invocation              // and receives it
	reported atomic.Pointer[FunctionError] // or reports that it cannot start
	dead     chan struct{}                 // closed when the process has ended
	exit     error                         // set before dead is closed: the report, or else an ExitError
	cause    atomic.Pointer[Change]        // why the host killed it; nil if it did not
	current  atomic.Pointer[invocation]
	peakRSS  atomic.Int64 // bytes, as last sampled
}

// invocation is one event for an instance.
type invocation struct {
	serial          int
	id              string
	payload         []byte
	began, deadline time.Time
	timer           *time.Timer // of the deadline. Freeze moves it.
	result          chan result // of capacity one, so that the API does not wait for the host
}

type result struct {
	body []byte
	err  error
}

// initTimeout bounds the start of a process up to its first request for an invocation
// (Lambda developer guide, "Lambda execution environment lifecycle"). A start that fails
// is not repeated, although Lambda does that.
const initTimeout = 10 * time.Second

// launch starts a process and waits until it requests an invocation.
func (h *Host) launch() (*instance, error) {
	in, err := h.spawn()
	switch {
	case err == nil:
		h.publish()
	case h.ctx.Err() != nil:
		return nil, ErrClosed
	default:
		return nil, err
	}
	timer := time.NewTimer(initTimeout)
	defer timer.Stop()
	select {
	case <-in.ready:
		return in, nil
	case <-in.dead:
		err = in.exit
	case <-timer.C:
		err = in.timeOut(initTimeout)
	}
	return nil, fmt.Errorf("%w: %w", ErrInit, err)
}

func (h *Host) spawn() (*instance, error) {
	listener, err := (&net.ListenConfig{}).Listen(h.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for a runtime: %w", err)
	}
	h.mu.Lock() // Close waits for h.ended only after it had the lock
	defer h.mu.Unlock()
	in := &instance{
		binary: h.binary,
		cmd:    exec.CommandContext(h.ctx, h.binary), //nolint:gosec // the caller chooses the binary
		output: &lines{mu: &h.print, to: h.opts.Output},
		began:  h.opts.Now(),
		ready:  make(chan struct{}),
		work:   make(chan *invocation),
		dead:   make(chan struct{}),
	}
	in.server = &http.Server{Handler: in.api(), ReadHeaderTimeout: time.Minute}
	in.cmd.Dir = filepath.Dir(in.binary)
	in.cmd.Env = h.environ(in.binary, listener.Addr().String())
	in.cmd.Stdout, in.cmd.Stderr = in.output, in.output
	in.cmd.Cancel = func() error { return in.kill(Closed) }
	DieWithParent(in.cmd)
	if err := in.cmd.Start(); err != nil {
		_ = listener.Close()
		err = fmt.Errorf("start %s: %w", in.binary, err)
		if h.ctx.Err() == nil {
			h.exited(fmt.Errorf("%w: %w", ErrExited, err))
		}
		return nil, err
	}
	h.starts++
	in.number = h.starts
	h.live[in] = nil
	h.note(in, Started, nil)
	h.ended.Go(func() { _ = in.server.Serve(listener) }) // ends with ErrServerClosed, by reap
	h.ended.Go(func() { h.reap(in) })
	return in, nil
}

// reap waits until the process ends. It records its CPU time and memory.
func (h *Host) reap(in *instance) {
	_ = in.cmd.Wait() // ProcessState shows how it ended
	in.output.finish()
	in.exit = &ExitError{Status: in.cmd.ProcessState.String(), Output: in.output.tail()}
	if reported := in.reported.Load(); reported != nil { // it says more
		in.exit = reported
	}
	_ = in.server.Close()
	defer h.publish()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(in, *cmp.Or(in.cause.Load(), new(Exited)), nil)
	delete(h.live, in)
	h.ends.CPUMS += ms(in.cmd.ProcessState.UserTime() + in.cmd.ProcessState.SystemTime())
	h.ends.PeakRSSBytes = max(h.ends.PeakRSSBytes, in.peakRSS.Load())
	if !killed(in.cmd.ProcessState) {
		h.exited(fmt.Errorf("%w: %w", ErrExited, in.exit))
	}
	close(in.dead)
}

// killed reports whether the host or a person killed the process. A program that ends by
// itself has an exit status, also after a panic.
func killed(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && (status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGTERM)
}

// run hands the invocation over and waits for its result, its deadline or the end of the
// process.
func (in *instance) run(call *invocation) result {
	select {
	case in.work <- call:
		select {
		case got := <-call.result:
			return got
		case <-call.timer.C:
			return result{err: in.timeOut(call.deadline.Sub(call.began))}
		case <-in.dead:
		}
	case <-in.dead:
	}
	select {
	case got := <-call.result: // the process responded and then exited
		return got
	default:
		return result{err: fmt.Errorf("%w: %w", ErrCrashed, in.exit)}
	}
}

// waitReady waits until the instance requests another invocation, because the current one
// is over only then. It returns false if the process ended instead.
func (in *instance) waitReady(call *invocation) bool {
	select {
	case <-in.ready:
		return true
	case <-in.dead:
		return false
	case <-call.timer.C:
		_ = in.timeOut(0)
		return false
	}
}

// timeOut ends the process, and returns an error after it has ended.
func (in *instance) timeOut(after time.Duration) error {
	_ = in.kill(TimedOut)
	<-in.dead
	return fmt.Errorf("%w after %v", ErrTimedOut, after)
}

func (in *instance) alive() bool {
	select {
	case <-in.dead:
		return false
	default:
		return true
	}
}

// kill ends the process. SIGKILL ends a frozen process too. The first cause stays.
func (in *instance) kill(cause Change) error {
	in.cause.CompareAndSwap(nil, &cause)
	in.sample()
	return in.cmd.Process.Kill()
}
