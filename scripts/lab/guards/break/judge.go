package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"orderonce/scripts/lab/guards"
)

// event is a line of `go test -json`; go doc test2json explains it.
type event struct {
	Action, Test, Output, FailedBuild string
}

// verdict is what one run of a catcher came to.
type verdict struct {
	ran, failed, skipped bool   // the catcher
	built                bool   // its package
	told                 string // by the catcher itself, or by the test around it that was skipped
	all                  string // by everything else
}

// read finds in the lines of `go test -json` what became of the catcher.
func read(out []byte, c guards.Catcher) verdict {
	v := verdict{built: true}
	for line := range bytes.Lines(out) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			v.all += string(line)
			continue
		}
		v.built = v.built && e.FailedBuild == ""
		itself := e.Test == c.Path()
		switch e.Action {
		case "output", "build-output":
			if !itself && e.Test != c.Test {
				v.all += e.Output
				continue
			}
			v.told += e.Output
			// A panic elsewhere than in the test's own goroutine ends the process before
			// the test is said to have failed.
			v.failed = v.failed || itself && strings.HasPrefix(e.Output, "panic: ")
		case "run":
			v.ran = v.ran || itself
		case "fail":
			v.failed = v.failed || itself
		case "skip":
			v.skipped = v.skipped || itself || e.Test == c.Test
		}
	}
	return v
}

var (
	errSkipped   = errors.New("its test was skipped")
	errNotCaught = errors.New("NOT CAUGHT")
)

// needsError reports that a story needs other kinds of trouble than the patch says.
type needsError struct{ guard, got, want string }

// Error says what is right, and how to write it.
func (e *needsError) Error() string {
	return fmt.Sprintf(
		"without %s, the shortest story needs %q; the patch says %q: go -C scripts/lab run ./guards/break --update %s",
		e.guard,
		e.got,
		e.want,
		e.guard,
	)
}

// judge says whether the guard was missed, and for the right reason.
func judge(g guards.Guard, v verdict) (story string, err error) {
	broken := regexp.MustCompile(`(?m)^ *(I\d+) broken for order`).FindStringSubmatch(v.told)
	switch {
	case !v.built:
		return "", fmt.Errorf("with the patch %s the product does not compile any more:\n%s", g.Name, v.all)
	case v.skipped:
		return "", fmt.Errorf("without %s: %w:\n%s", g.Name, errSkipped, brief(v.told))
	case !v.ran:
		return "", fmt.Errorf("there is no %s any more, which %s names:\n%s%s", g.Catcher, g.Name, v.told, v.all)
	case !v.failed:
		return "", fmt.Errorf("%w: without %s, %s passed: it sees too little, or the guard is not needed",
			errNotCaught, g.Name, g.Catcher)
	case !g.Catcher.Tells():
		return fmt.Sprintf("%s:\n%s", g.Catcher, brief(v.told)), nil
	case broken == nil:
		return "", fmt.Errorf("without %s the search itself failed:\n%s", g.Name, v.told)
	case broken[1] != g.Promise:
		return told(
			v.told,
		), fmt.Errorf("without %s, %s was broken; the patch expects %s", g.Name, broken[1], g.Promise)
	}
	if got := needs(v.told); got != g.Needs {
		return told(v.told), &needsError{guard: g.Name, got: got, want: g.Needs}
	}
	return told(v.told), nil
}

// needs is what a story says that it needs.
func needs(story string) string {
	if m := regexp.MustCompile(`(?m)^ *Needs: (.+)$`).FindStringSubmatch(story); m != nil {
		return m[1]
	}
	return ""
}

// told is what a test itself printed, without what package testing adds.
func told(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		text, indented := strings.CutPrefix(line, "    ")
		if indented && !strings.HasPrefix(text, "scenario_test.go:") && !strings.HasPrefix(text, "--- ") {
			b.WriteString(text)
		}
	}
	return strings.TrimRight(b.String(), "\n ") + "\n"
}

// What a test tells, where it tells more than a person reads.
const (
	mostLines = 12
	mostWidth = 160
)

// brief is the beginning of what a test told: what was wrong, without the stacks of a
// panic.
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
