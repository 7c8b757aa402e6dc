package dynamodbtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
)

// Engine is a running engine.
type Engine struct {
	Endpoint string // base URL

	process *os.Process   // nil if Start did not start it
	ended   chan struct{} // closed once the process is reaped
}

// Start starts the engine on a free port of 127.0.0.1 and returns when it accepts
// connections. It starts nothing for a Location with an Endpoint. ctx limits only the
// start; the engine runs until Close, and on Linux at most as long as this process.
func Start(ctx context.Context, location Location) (*Engine, error) {
	if location.Endpoint != "" {
		return &Engine{Endpoint: location.Endpoint}, nil
	}
	// Another process can take the free port before the engine listens on it.
	var engine *Engine
	err := ctx.Err()
	for range 5 {
		var port int
		if port, err = freePort(ctx); err != nil {
			return nil, err
		}
		if engine, err = launch(ctx, location.Binary, port); err == nil || ctx.Err() != nil {
			break
		}
	}
	return engine, err
}

// Close kills the engine's process and returns when it is reaped.
func (e *Engine) Close() error {
	if e.process == nil {
		return nil
	}
	if err := e.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the engine at %s: %w", e.Endpoint, err)
	}
	<-e.ended
	return nil
}

func launch(ctx context.Context, binary string, port int) (*Engine, error) {
	engine := &Engine{Endpoint: "http://127.0.0.1:" + strconv.Itoa(port), ended: make(chan struct{})}
	args := []string{"--host", "127.0.0.1", "--port", strconv.Itoa(port)}
	//nolint:gosec // the caller chooses the program
	cmd := exec.CommandContext(context.WithoutCancel(ctx), binary, args...)
	// Wait for the engine's output: another process on the port could answer a probe.
	output := &transcript{awaited: []byte(engine.Endpoint), found: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = output, output
	dieWithParent(cmd)

	if err := engine.run(cmd); err != nil {
		return nil, fmt.Errorf("start %q: %w", binary, err)
	}
	select {
	case <-output.found:
		return engine, nil
	case <-engine.ended:
		return nil, fmt.Errorf("start %q on port %d: engine exited: %s", binary, port, output)
	case <-ctx.Done():
		return nil, errors.Join(
			fmt.Errorf("start %q on port %d: %w", binary, port, ctx.Err()), engine.Close(),
		)
	}
}

// run starts and reaps cmd on one locked thread: with Pdeathsig, Linux kills the child
// when the thread that started it ends.
func (e *Engine) run(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		e.process = cmd.Process
		started <- err
		if err == nil {
			_ = cmd.Wait() // the engine is always killed
			close(e.ended)
		}
	}()
	return <-started
}

func freePort(ctx context.Context) (int, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("choose a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return 0, fmt.Errorf("release port %d: %w", port, err)
	}
	return port, nil
}

// transcript records the engine's output and closes found when it contains the awaited
// bytes.
type transcript struct {
	awaited []byte
	found   chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
}

// Write records output of the engine.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(p)
	if bytes.Contains(t.text.Bytes(), t.awaited) {
		t.once.Do(func() { close(t.found) })
	}
	return len(p), nil
}

// String returns the output so far.
func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text.Bytes()))
}
