package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/lab/storm/node"
	"orderonce/scripts/lab/storm/run"
	"orderonce/scripts/local/system"
)

// restateServers starts the names of the packages with Restate's server. Its license, the
// Business Source License, allows this use; nothing of it is in a release.
const restateServers = "@restatedev/restate-server-"

// restate is what a storm needs beside the function of the queue: Restate's server, with
// its data in the folder of the storm, and the process that serves the virtual object.
// The storm kills that process as often as one of the function, and it is started again
// at the same address. The server is not killed: it keeps what the journal has.
type restate struct {
	lab, dir string // dir is that of the storm

	mu       sync.Mutex
	endpoint *exec.Cmd // nil while it starts
}

const (
	ingressFile = "ingress" // has the URL of the server's ingress
	// ingressWaits leaves the function time for its answer.
	ingressWaits = 4 * time.Second
	restateWaits = 30 * time.Second // for the start of the server
)

// join changes a handler so that it runs with Restate.
func (r *restate) join(h *run.Handler) {
	build, options, prepare := h.Build, h.Options, h.Prepare
	h.Build = func(ctx context.Context, dir string) (path string, err error) {
		if r.dir, err = filepath.Abs(dir); err != nil {
			return "", err
		}
		if err := node.Bundle(ctx, r.lab, r.path("endpoint"), "endpoint.ts"); err != nil {
			return "", err
		}
		return build(ctx, dir)
	}
	h.Options = func(o *system.Options) {
		options(o)
		o.Env["INGRESS_FILE"], o.Env["INGRESS_TIMEOUT_MS"] = r.path(ingressFile), milliseconds(ingressWaits)
	}
	h.Prepare = func(ctx context.Context, s *system.System) error {
		return errors.Join(prepare(ctx, s), r.start(ctx, s))
	}
	h.Kill = r.kill
}

func (r *restate) path(name string) string { return filepath.Join(r.dir, name) }

// start starts server and endpoint, which end with the system, and registers the
// endpoint.
func (r *restate) start(ctx context.Context, s *system.System) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	s.OnClose(func() error {
		cancel()
		running.Wait()
		return nil
	})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	socket, err := listener.(*net.TCPListener).File() // a copy, which the endpoints inherit
	if err != nil {
		return err
	}
	found, failed := make(chan ports, 1), make(chan error, 2)
	running.Go(func() {
		defer func() { _, _ = listener.Close(), socket.Close() }()
		for ctx.Err() == nil {
			if err := r.serve(ctx, s, socket); err != nil {
				failed <- fmt.Errorf("endpoint: %w", err)
				return
			}
		}
	})
	running.Go(func() { failed <- r.runServer(ctx, found) })
	select {
	case p := <-found:
		return r.register(ctx, p, listener.Addr().String())
	case err := <-failed:
		return fmt.Errorf("start Restate: %w", err)
	case <-time.After(restateWaits):
		return fmt.Errorf("restate-server: not ready after %v, see %s", restateWaits, r.path("server.log"))
	}
}

// serve runs the endpoint until it is killed. Between two of them, calls wait at the
// socket. It returns an error if the endpoint exits by itself.
func (r *restate) serve(ctx context.Context, s *system.System, socket *os.File) error {
	runtime.LockOSThread() // the process dies with its thread
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, r.path("endpoint")) //nolint:gosec // G204: our own path
	cmd.Env, cmd.ExtraFiles = s.FunctionEnv(), []*os.File{socket}
	cmd.Stdout, cmd.Stderr = s.Options.Output, s.Options.Output
	lambdatest.DieWithParent(cmd)
	r.mu.Lock()
	err := cmd.Start()
	r.endpoint = cmd
	r.mu.Unlock()
	if err != nil {
		return err
	}
	if err = cmd.Wait(); cmd.ProcessState.Exited() {
		return fmt.Errorf("exited by itself: %w", err)
	}
	return nil
}

func (r *restate) kill() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.endpoint == nil || r.endpoint.Process == nil || r.endpoint.Process.Kill() != nil {
		return 0
	}
	return 1
}

type ports struct{ ingress, admin int }

// runServer runs the server until the context ends, and sends its ports once it has them.
func (r *restate) runServer(ctx context.Context, found chan<- ports) error {
	runtime.LockOSThread() // as in serve
	defer runtime.UnlockOSThread()
	modules := filepath.Join(r.lab, node.Folder, "node_modules")
	binaries, _ := filepath.Glob(filepath.Join(modules, restateServers+"*/bin/restate-server"))
	if len(binaries) == 0 {
		return errors.New("there is none for this system: --only=NAME runs another handler")
	}
	data := r.path("restate")
	if err := os.RemoveAll(data); err != nil { // of the storm before
		return err
	}
	log, err := os.Create(r.path("server.log"))
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // nothing depends on it
	//nolint:gosec // G204: a pinned package
	cmd := exec.CommandContext(ctx, binaries[0], "--use-random-ports=true", "--listen-mode=tcp",
		"--bind-ip=127.0.0.1", "--base-dir="+data, "--node-name=storm", "--no-logo")
	cmd.Env = []string{
		"RESTATE_DISABLE_TELEMETRY=true", "RESTATE_DEFAULT_NUM_PARTITIONS=1", "RESTATE_LOG_FORMAT=json",
		"RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE=64MiB", "RESTATE_LOG_FILTER=error,restate_core=info,restate_ingress_http=info",
	}
	lambdatest.DieWithParent(cmd)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(log, &portWriter{found: found}), log
	return cmd.Run()
}

// portWriter reads the server's log, one JSON object a line, until it has both ports.
type portWriter struct {
	found chan<- ports
	ports ports
	text  bytes.Buffer
}

// Write takes a part of the log.
func (w *portWriter) Write(p []byte) (int, error) {
	if w.ports.ingress > 0 && w.ports.admin > 0 {
		return len(p), nil
	}
	w.text.Write(p)
	for bytes.ContainsRune(w.text.Bytes(), '\n') {
		line, _ := w.text.ReadBytes('\n') // it has one
		var l struct {
			Span struct {
				Port int    `json:"server.port"`
				Name string `json:"server_name"`
			}
		}
		if json.Unmarshal(line, &l) != nil {
			continue
		}
		switch l.Span.Name {
		case "http-ingress-server":
			w.ports.ingress = l.Span.Port
		case "admin-api-server":
			w.ports.admin = l.Span.Port
		default:
			continue
		}
		if w.ports.ingress > 0 && w.ports.admin > 0 {
			w.found <- w.ports
			break
		}
	}
	return len(p), nil
}

// register tells the server where the endpoint is, and the function where the server is.
func (r *restate) register(ctx context.Context, p ports, endpoint string) error {
	ctx, cancel := context.WithTimeout(ctx, restateWaits)
	defer cancel()
	body := strings.NewReader(fmt.Sprintf(`{"uri": "http://%s"}`, endpoint))
	url := fmt.Sprintf("http://127.0.0.1:%d/deployments", p.admin)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("register the endpoint with Restate: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	if response.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(response.Body)
		return fmt.Errorf("register the endpoint with Restate: %s: %s", response.Status, text)
	}
	ingress := fmt.Sprintf("http://127.0.0.1:%d", p.ingress)
	return os.WriteFile(r.path(ingressFile), []byte(ingress), 0o600)
}
