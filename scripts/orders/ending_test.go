package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
)

// TestWhateverEndsTheCommandPutsTheMessagesBack ends the compiled tool while it holds
// messages, in each way that leaves it a moment.
func TestWhateverEndsTheCommandPutsTheMessagesBack(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	d := deploy(t)
	binary := filepath.Join(t.TempDir(), "orders")
	must(t, lambdatest.Build(t.Context(), "scripts/orders", binary))
	signaled := func(s syscall.Signal) func(*os.Process, *os.File) {
		return func(p *os.Process, out *os.File) {
			must(t, p.Signal(s))
			_, _ = io.Copy(io.Discard, out) // until the process has ended
		}
	}
	ends := map[string]func(p *os.Process, out *os.File){
		"a reader such as head": func(_ *os.Process, out *os.File) { _ = out.Close() },
		"Ctrl-C":                signaled(syscall.SIGINT),
		"kill":                  signaled(syscall.SIGTERM),
		"a closed terminal":     signaled(syscall.SIGHUP),
	}
	for _, tt := range [][2]string{
		{"list --all", "a reader such as head"},
		{"list --all", "Ctrl-C"},
		{"list --all", "kill"},
		{"list --all", "a closed terminal"},
		{"show ORD-1", "a reader such as head"},
		{"redrive --verdict=any --all", "a reader such as head"},
		{"discard --force --all", "Ctrl-C"},
	} {
		line, end := "dead-letters "+tt[0], ends[tt[1]]
		t.Run(line+" ended by "+tt[1], func(t *testing.T) {
			t.Parallel()
			environ, server := serveQueues(t, sqstest.Options{}, nil)
			const messages = 400 // more than the pipe has room for
			for range messages {
				sendDead(t, server, sqstest.Draft{Body: strings.Repeat("x", 400), Attributes: map[string]sqstest.Attribute{
					sqs.AttrOrderID: sqstest.Text("ORD-1"),
				}})
			}
			c := exec.CommandContext(t.Context(), binary, strings.Fields(line)...)
			c.Env = append(slices.Clone(d.environ), environ...)
			var printed strings.Builder
			c.Stderr = &printed
			out, in, err := os.Pipe()
			must(t, err)
			c.Stdout = in
			must(t, c.Start())
			must(t, in.Close())
			_, err = out.Read(make([]byte, 1)) // it holds messages now, and cannot print the rest
			must(t, err)
			end(c.Process, out)
			if err := c.Wait(); err == nil || c.ProcessState.ExitCode() != 1 || !strings.Contains(printed.String(), "visible in the queue again") {
				t.Errorf("got %v and\n%s\nwant exit code 1 and a word about the messages", err, &printed)
			}
			server.Machine(func(m *sqstest.Machine, now time.Time) {
				if got, err := m.Counts(now, "dead"); err != nil || got.Visible != messages {
					t.Errorf("got %+v, %v, want all %d messages visible", got, err, messages)
				}
			})
		})
	}
}
