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

// Options say which engine to start, and how.
type Options struct {
	Location Location
	DBPath   string // SQLite file that outlives the engine; empty: in memory
	Port     int    // on 127.0.0.1; 0: a free one
}

// Engine is a running engine.
type Engine struct {
	Endpoint string // base URL

	process *os.Process   // nil for an engine that somebody else runs
	ended   chan struct{} // closed once the process is reaped
}

// Start starts the engine and returns once it accepts connections. For a Location with an
// Endpoint it starts nothing. ctx bounds the start only; the engine runs until Close, and
// on Linux at most as long as this process.
func Start(ctx context.Context, options Options) (*Engine, error) {
	if options.Location.Endpoint != "" {
		return &Engine{Endpoint: options.Location.Endpoint}, nil
	}
	if options.Port != 0 {
		return launch(ctx, options, options.Port)
	}
	// Between the choice of a free port and its use, another process can take it.
	var engine *Engine
	err := ctx.Err()
	for range 5 {
		var port int
		if port, err = freePort(ctx); err != nil {
			return nil, err
		}
		if engine, err = launch(ctx, options, port); err == nil || ctx.Err() != nil {
			break
		}
	}
	return engine, err
}

// Close kills the engine's process and returns once it is reaped. Killing loses no
// answered write: SQLite commits first.
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

func launch(ctx context.Context, options Options, port int) (*Engine, error) {
	engine := &Engine{Endpoint: "http://127.0.0.1:" + strconv.Itoa(port), ended: make(chan struct{})}
	args := []string{"--host", "127.0.0.1", "--port", strconv.Itoa(port)}
	if options.DBPath != "" {
		args = append(args, "--db-path", options.DBPath)
	}
	//nolint:gosec // running the program that the caller names is the purpose
	cmd := exec.CommandContext(context.WithoutCancel(ctx), options.Location.Binary, args...)
	// Only the engine's own word counts: a stranger on the port would answer a probe just as
	// well.
	output := &transcript{awaited: []byte(engine.Endpoint), heard: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = output, output
	dieWithParent(cmd)

	if err := engine.run(cmd); err != nil {
		return nil, fmt.Errorf("start %q: %w", options.Location.Binary, err)
	}
	select {
	case <-output.heard:
		return engine, nil
	case <-engine.ended:
		return nil, fmt.Errorf("start %q on port %d: it ended: %s", options.Location.Binary, port, output)
	case <-ctx.Done():
		return nil, errors.Join(
			fmt.Errorf("start %q on port %d: %w", options.Location.Binary, port, ctx.Err()),
			engine.Close(),
		)
	}
}

// run starts and reaps cmd on one locked thread: Linux ends the child when the thread
// that started it ends, not the process.
func (e *Engine) run(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		e.process = cmd.Process
		started <- err
		if err == nil {
			_ = cmd.Wait() // an engine always ends by a kill
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

// transcript keeps what an engine prints and tells when it has printed the awaited bytes.
type transcript struct {
	awaited []byte
	heard   chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(p)
	if bytes.Contains(t.text.Bytes(), t.awaited) {
		t.once.Do(func() { close(t.heard) })
	}
	return len(p), nil
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text.Bytes()))
}
