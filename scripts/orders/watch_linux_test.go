package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestWatchQuitsCleanly runs the compiled tool in a terminal, and presses q.
func TestWatchQuitsCleanly(t *testing.T) {
	t.Parallel()
	kit := systemtest.New(t)
	s, _ := kit.Start(t, system.Options{})
	binary := filepath.Join(t.TempDir(), "orders")
	must(t, lambdatest.Build(t.Context(), "orderonce/scripts/orders", binary))
	person, program := systemtest.Terminal(t)
	cmd := exec.CommandContext(t.Context(), binary, "watch", "--every=1s")
	cmd.Env = append(s.OperatorEnv(), "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, cmd.Start())
	must(t, program.Close())
	var seen bytes.Buffer
	for part := make([]byte, 4096); ; {
		n, err := person.Read(part)
		seen.Write(part[:n])
		if strings.Contains(seen.String(), "dead letters") && strings.Contains(seen.String(), "q quits") {
			_, _ = person.WriteString("q") // it may have quit already
		}
		if err != nil { // the terminal has no program any more
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("got %v after\n%q", err, seen.String())
	}
	const leave = "\x1b[?1049l" // the alternate screen, which hid the person's own
	if !strings.Contains(seen.String(), leave) {
		t.Errorf("got\n%q\nwant that it leaves the alternate screen", seen.String())
	}
}

// Without a terminal, watch prints one snapshot, without escape codes.
func TestWatchPrintsOnceWithoutATerminal(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	_, server := serveQueues(t, func(_, _ *sqstest.Settings) {})
	process(t, d.store, d.payments, "ORD-1", "pm_usBankAccount_processing")
	process(t, d.store, d.payments, "ORD-2", "pm_card_visa")
	for _, reason := range []string{"conflict", "conflict", "refused"} {
		server.Machine(func(m *sqstest.Machine, now time.Time) {
			_, err := m.Send(now, "dead", sqstest.Draft{
				Body: line("ORD-3"), Attributes: map[string]sqstest.Attribute{"orderonce-reason": sqstest.Text(reason)},
			})
			must(t, err)
		})
	}
	environ := append(d.environ, "AWS_ENDPOINT_URL_SQS="+server.URL, "QUEUE_URL="+server.QueueURL("orders"),
		"DEAD_LETTER_QUEUE_URL="+server.QueueURL("dead"))
	var out strings.Builder
	must(t, watchCommand{Every: time.Second, Scan: true, Rate: 100}.Run(t.Context(), testShell(environ, "", &out)))
	for _, want := range []string{
		"queue                0   0 waiting, 0 in flight, 0 delayed\n", "dead letters         3   conflict 2, refused 1\n", "waiting              1   pending 1\n",
		"oldest              0s   ORD-1, pending\n", "all orders           2   paid 1, pending 1, scanned at 12:00:00\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed\n%s\nwant %q in it", &out, want)
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("printed %q, want no escape code", &out)
	}
}
