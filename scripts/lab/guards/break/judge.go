package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"orderonce/scripts/lab/guards"
)

// runCatcher runs the catcher without the guard and returns its output. It is an error if
// the catcher passes, or if another invariant is broken than the patch says.
func runCatcher(ctx context.Context, root string, g guards.Guard) (history string, err error) {
	err = g.Without(root, func(overlay string) error {
		module, pkg := g.Catcher.Module(root)
		//nolint:gosec // G204: the arguments are our own
		cmd := exec.CommandContext(ctx, "go", "test", "-json", "-count=1", "-vet=off", "-timeout=15m",
			"-overlay", overlay, "-run", g.Catcher.Pattern(), pkg)
		cmd.Dir = module
		// Without its engine a test must skip: a failure would look like a catch.
		cmd.Env = append(os.Environ(), "ORDERONCE_ALL=", "CI=", "ORDERONCE_WORLDS="+g.Worlds,
			"ORDERONCE_BREAKS="+g.Invariant)
		out, err := cmd.CombinedOutput()
		if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
			return err
		}
		history, err = judge(g, parse(out, g.Catcher))
		return err
	})
	return history, err
}

// event is a line of `go test -json`; go doc test2json explains it.
type event struct {
	Action, Test, Output, FailedBuild string
}

type result struct {
	ran, failed, skipped bool   // the catcher
	built                bool   // its package
	output               string // of the catcher, or of the enclosing test
	rest                 string // all other output
}

func parse(out []byte, c guards.Catcher) result {
	r := result{built: true}
	for line := range bytes.Lines(out) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			r.rest += string(line)
			continue
		}
		r.built = r.built && e.FailedBuild == ""
		itself := e.Test == c.Path()
		switch e.Action {
		case "output", "build-output":
			if !itself && e.Test != c.Test {
				r.rest += e.Output
				continue
			}
			r.output += e.Output
			// A panic in another goroutine ends the process before the test fails.
			r.failed = r.failed || itself && strings.HasPrefix(e.Output, "panic: ")
		case "run":
			r.ran = r.ran || itself
		case "fail":
			r.failed = r.failed || itself
		case "skip":
			r.skipped = r.skipped || itself || e.Test == c.Test
		}
	}
	return r
}

var (
	errSkipped   = errors.New("test skipped")
	errNotCaught = errors.New("not caught")
)

// needsError means that the history needs other faults than the patch says.
type needsError struct{ guard, got, want string }

// Error contains the right needs and the command that writes them.
func (e *needsError) Error() string {
	return fmt.Sprintf(
		"without %s, the history needs %q; the patch says %q: go -C scripts/lab run ./guards/break --update %s",
		e.guard, e.got, e.want, e.guard)
}

// judge returns an error unless the catcher failed for the reason that the patch says.
func judge(g guards.Guard, r result) (history string, err error) {
	broken := regexp.MustCompile(`(?m)^ *(I\d+) broken for order`).FindStringSubmatch(r.output)
	switch {
	case !r.built:
		return "", fmt.Errorf("patch %s: product does not compile:\n%s", g.Name, r.rest)
	case r.skipped:
		return "", fmt.Errorf("without %s: %w:\n%s", g.Name, errSkipped, brief(r.output))
	case !r.ran:
		return "", fmt.Errorf("no test %s, which %s names:\n%s%s", g.Catcher, g.Name, r.output, r.rest)
	case !r.failed:
		return "", fmt.Errorf("%w: without %s, %s passed: the test is too weak, or the guard is not needed",
			errNotCaught, g.Name, g.Catcher)
	case !g.Catcher.IsSimulation():
		return fmt.Sprintf("%s:\n%s", g.Catcher, brief(r.output)), nil
	case broken == nil:
		return "", fmt.Errorf("without %s the simulation failed:\n%s", g.Name, r.output)
	case broken[1] != g.Invariant:
		err := fmt.Errorf("without %s, %s was broken; the patch expects %s", g.Name, broken[1], g.Invariant)
		return unindent(r.output), err
	}
	if got := needs(r.output); got != g.Needs {
		return unindent(r.output), &needsError{guard: g.Name, got: got, want: g.Needs}
	}
	return unindent(r.output), nil
}

func needs(history string) string {
	if m := regexp.MustCompile(`(?m)^ *Needs: (.+)$`).FindStringSubmatch(history); m != nil {
		return m[1]
	}
	return ""
}

// unindent returns the output of a test without what package testing adds.
func unindent(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		text, indented := strings.CutPrefix(line, "    ")
		if indented && !strings.HasPrefix(text, "scenario_test.go:") && !strings.HasPrefix(text, "--- ") {
			b.WriteString(text)
		}
	}
	return strings.TrimRight(b.String(), "\n ") + "\n"
}

const (
	mostLines = 12
	mostWidth = 160
)

// brief returns the first lines of the output of a test, without the stacks of a panic.
func brief(out string) string {
	out, _, _ = strings.Cut(out, "\n\ngoroutine ")
	var kept []string
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n ")
		noise := line == "" || strings.HasPrefix(line, "=== ") ||
			strings.HasPrefix(strings.TrimLeft(line, " "), "--- ")
		if noise {
			continue
		}
		if short := []rune(line); len(short) > mostWidth {
			line = string(short[:mostWidth]) + " ..."
		}
		kept = append(kept, line)
	}
	if more := len(kept) - mostLines; more > 0 {
		kept = append(kept[:mostLines], fmt.Sprintf("    and %d lines more", more))
	}
	return strings.Join(kept, "\n") + "\n"
}
