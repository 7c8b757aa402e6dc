package lambdatest

import (
	"errors"
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

// instance is one execution environment: a process and the Runtime API that it alone talks to.
// A listener each, because other runtimes than Go's take only host:port from AWS_LAMBDA_RUNTIME_API.
type instance struct {
	binary   string
	cmd      *exec.Cmd
	server   *http.Server
	output   *lines
	began    time.Time
	answered bool // the first answer was observed

	ready    chan struct{}                 // the process asks for work
	work     chan *invocation              // and gets it
	initFail chan *FunctionError           // or says that it never will
	reported atomic.Pointer[FunctionError] // what it said then
	dead     chan struct{}                 // closed when the process is reaped
	exit     *ExitError                    // set before dead is closed
	asked    atomic.Bool                   // the process asked for work, so its init is over
	current  atomic.Pointer[invocation]
	settled  atomic.Pointer[invocation] // the latest that was answered
	peakRSS  atomic.Int64               // bytes, as last sampled
}

// invocation is one piece of work for an instance.
type invocation struct {
	serial          int
	id              string
	payload         []byte
	began, deadline time.Time
	answer          chan answer // of one, so that the API never waits for the host
}

type answer struct {
	body []byte
	err  error

	status  int    // of the refusal that the runtime gets
	refused string // its type, empty if there is none
}

// launch starts a process, and another one if the first takes too long to its first request for work: "If all three tasks do not complete
// within 10 seconds, Lambda retries the Init phase at the time of the first function invocation with the configured function timeout"
// (Lambda developer guide, "Lambda execution environment lifecycle"). What the second start takes is spent of the invocation's time.
// A start that crashes or reports an error is not retried here; Lambda's INIT_REPORT lines tell of it (Phase: init, then invoke).
func (h *Host) launch() (in *instance, spent time.Duration, err error) {
	in, err = h.initialize(h.opts.InitTimeout)
	if !errors.Is(err, ErrTimedOut) {
		return in, 0, err
	}
	again := h.opts.Now()
	in, err = h.initialize(h.opts.Timeout)
	return in, h.opts.Now().Sub(again), err
}

// initialize starts a process and waits until it asks for work.
func (h *Host) initialize(limit time.Duration) (*instance, error) {
	in, err := h.spawn()
	if err != nil {
		return nil, err
	}
	patience := time.NewTimer(limit)
	defer patience.Stop()
	select {
	case <-in.ready:
		h.observeInit(in)
		return in, nil
	case <-in.dead:
		err = in.exit
	case reported := <-in.initFail:
		err = reported
		h.exited(fmt.Errorf("%w: %w", ErrExited, reported))
	case <-patience.C:
		err = fmt.Errorf("%w after %v", ErrTimedOut, limit)
	}
	_ = in.kill()
	<-in.dead
	select {
	case reported := <-in.initFail: // reported and then exited: the report says more
		err = reported
	default:
	}
	return nil, fmt.Errorf("%w: %w", ErrInit, err)
}

func (h *Host) spawn() (*instance, error) {
	listener, err := (&net.ListenConfig{}).Listen(h.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, closedOr(h, fmt.Errorf("listen for a runtime: %w", err))
	}
	h.mu.Lock() // also fences Close, which waits for what is counted here
	defer h.mu.Unlock()
	in := &instance{
		binary:   h.binary,
		cmd:      exec.CommandContext(h.ctx, h.binary), //nolint:gosec // running the caller's binary is the purpose
		output:   &lines{mu: &h.print, to: h.opts.Output},
		began:    h.opts.Now(),
		ready:    make(chan struct{}),
		work:     make(chan *invocation),
		initFail: make(chan *FunctionError, 1),
		dead:     make(chan struct{}),
	}
	in.server = &http.Server{Handler: in.api(), ReadHeaderTimeout: time.Minute}
	in.cmd.Dir = filepath.Dir(in.binary)
	in.cmd.Env = h.environ(in.binary, listener.Addr().String())
	in.cmd.Stdout, in.cmd.Stderr = in.output, in.output
	in.cmd.Cancel = in.kill
	dieWithParent(in.cmd)
	in.cmd.WaitDelay = time.Second // for a grandchild that keeps the pipe open
	if err := in.cmd.Start(); err != nil {
		_ = listener.Close()
		if err = closedOr(h, fmt.Errorf("start %s: %w", in.binary, err)); !errors.Is(err, ErrClosed) {
			h.exited(fmt.Errorf("%w: %w", ErrExited, err))
		}
		return nil, err
	}
	h.tally.ColdStarts++
	h.live[in] = nil
	h.ended.Go(func() { _ = in.server.Serve(listener) }) // ends with ErrServerClosed, by reap
	h.ended.Go(func() { h.reap(in) })
	return in, nil
}

// reap waits for the process, whatever ends it, and takes its figures.
func (h *Host) reap(in *instance) {
	_ = in.cmd.Wait() // the state says how it ended
	in.output.finish()
	in.exit = &ExitError{Status: in.cmd.ProcessState.String(), Output: in.output.tail()}
	_ = in.server.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.live, in)
	h.tally.ended(in)
	if !killed(in.cmd.ProcessState) {
		var why error = in.exit
		if reported := in.reported.Load(); reported != nil { // it says more
			why = reported
		}
		h.exited(fmt.Errorf("%w: %w", ErrExited, why))
	}
	close(in.dead)
}

// killed reports whether the host ended a process, or somebody else by hand. A program
// does not end itself so: it exits, or a panic ends it with a status.
func killed(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && (status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGTERM)
}

// perform hands the invocation over and waits for its answer, its deadline or the end of the process.
func (in *instance) perform(call *invocation, deadline <-chan time.Time) answer {
	select {
	case in.work <- call:
	case <-in.dead:
		return answer{err: fmt.Errorf("%w: %w", ErrCrashed, in.exit)}
	}
	select {
	case got := <-call.answer:
		return got
	case <-deadline:
		_ = in.kill()
		<-in.dead
		return answer{err: fmt.Errorf("%w after %v", ErrTimedOut, call.deadline.Sub(call.began))}
	case <-in.dead:
	}
	select {
	case got := <-call.answer: // answered and then exited
		return got
	default:
		return answer{err: fmt.Errorf("%w: %w", ErrCrashed, in.exit)}
	}
}

// rest waits until the instance asks for more work; an invocation is over only then. False: it never will.
func (in *instance) rest(deadline <-chan time.Time) bool {
	select {
	case <-in.ready:
		return true
	case <-in.dead:
		return false
	case <-deadline:
		_ = in.kill()
		<-in.dead
		return false
	}
}

func (in *instance) alive() bool {
	select {
	case <-in.dead:
		return false
	default:
		return true
	}
}

// kill needs no thaw: SIGKILL ends a frozen process as well.
func (in *instance) kill() error {
	in.sample()
	return in.cmd.Process.Kill()
}

func closedOr(h *Host, err error) error {
	if h.ctx.Err() != nil {
		return ErrClosed
	}
	return err
}
