package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/scripts/local/incidents"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestTheToolInATerminal runs the compiled tool as a person does.
func TestTheToolInATerminal(t *testing.T) {
	t.Parallel()
	kit := systemtest.New(t)
	s, _ := kit.Start(t, incidents.Unhurried(system.Options{}))
	binary, plain := filepath.Join(t.TempDir(), "orders"), ""
	must(t, lambdatest.Build(t.Context(), "scripts/orders", binary))
	run := func(awaited, typed string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Env = append(s.OperatorEnv(), plain, "TERM=xterm")
		terminal := systemtest.StartTerminal(t, cmd)
		terminal.Await(awaited)
		shown, err := terminal.End(typed)
		if err != nil {
			t.Errorf("%s: got %v after\n%q", strings.Join(args, " "), err, shown)
		}
		return shown
	}
	_, err := s.Post([]sqstest.Draft{{Body: sale("ORD-1", 2400, pays)}, {Body: "{}"}})
	must(t, err)
	must(t, incidents.Drained(t.Context(), s, 5*time.Minute))
	for _, step := range []struct {
		claim, awaited, typed string
		args                  []string
		want                  string
	}{
		{"show has no color", "", "", []string{"show", "ORD-1"}, "charged    once\r\n"},
		{"refund asks", "to make it: ", "ORD-1\n", []string{"refund", "ORD-1", "--all", "--reason=duplicate"}, "refunded   24.00 USD"},
		{"list clears its progress", "", "", []string{"list", "--scan", "--status=refunded"}, "\r\x1b[KORD-1"},
		{"watch leaves the alternate screen when q is pressed", "q quits", "q", []string{"watch", "--every=1s"}, "\x1b[?1049l"},
		{"a verdict that needs a person is red", "", "", []string{"dead-letters", "list"}, "\x1b[1;31mfix      no order  invalid_order"},
	} {
		if got := run(step.awaited, step.typed, step.args...); !strings.Contains(got, step.want) {
			t.Errorf("%s: got\n%q\nwant %q in it", step.claim, got, step.want)
		}
	}
	plain = "NO_COLOR=1"
	if got := run("", "", "dead-letters", "list"); strings.Contains(got, "\x1b[1") {
		t.Errorf("with NO_COLOR, got\n%q\nwant no color", got)
	}
}
