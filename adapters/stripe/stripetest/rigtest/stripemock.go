package rigtest

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// QueryName is the name of a request's first parameter.
func QueryName(r *http.Request) string {
	name, _, _ := strings.Cut(r.URL.RawQuery, "=")
	return name
}

// StripeMock runs stripe-mock until the test ends, and returns its URL. It gets a free
// port for HTTPS too, because without one it listens on every interface.
func StripeMock(t *testing.T) string {
	t.Helper()
	binary := os.Getenv("STRIPE_MOCK")
	if binary == "" {
		t.Skip("STRIPE_MOCK must name the binary of stripe-mock: run make stripe-mock")
	}
	cmd := exec.CommandContext(t.Context(), binary, //nolint:gosec // the developer names it
		"-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	Must(t, err)
	Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the end of the test's context kills it
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "Listening for HTTP at address: "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return "http://" + address
		}
	}
	t.Fatal("stripe-mock ended without printing its address")
	return ""
}
