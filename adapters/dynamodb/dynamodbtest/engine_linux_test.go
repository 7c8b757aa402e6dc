package dynamodbtest_test

import (
	"bufio"
	"errors"
	"flag"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The test runs itself again as the process that starts an engine, and kills that
// process.
func TestAnEngineEndsWithTheProcessThatStartedIt(t *testing.T) {
	location := ownEngine(t)
	if flag.Arg(0) == "parent" {
		engine := start(t, location)
		_, _ = os.Stdout.WriteString(engine.Endpoint + "\n")
		_, _ = io.Copy(io.Discard, os.Stdin) // until this process is killed
		return
	}
	parent, endpoint := runParent(t)
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", endpoint.Host)
	must(t, err)
	defer func() { _ = connection.Close() }()
	must(t, parent.Process.Kill())
	// The kernel closes the connection when the engine ends. Only a failing test reaches
	// the deadline.
	deadline := time.Now().Add(10 * time.Second) //nolint:forbidigo // sockets live on the wall clock
	must(t, connection.SetReadDeadline(deadline))
	if _, err := connection.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got a running engine at %s, want it killed with its parent", endpoint)
	}
}

func runParent(t *testing.T) (*exec.Cmd, *url.URL) {
	t.Helper()
	program, err := os.Executable()
	must(t, err)
	parent := exec.CommandContext(
		t.Context(), program, "-test.run=^TestAnEngineEndsWithTheProcessThatStartedIt$", "parent",
	)
	stdout, err := parent.StdoutPipe()
	must(t, err)
	stdin, err := parent.StdinPipe()
	must(t, err)
	must(t, parent.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = parent.Wait() // killed by the test
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	must(t, err)
	endpoint, err := url.Parse(strings.TrimSpace(line))
	must(t, err)
	return parent, endpoint
}
