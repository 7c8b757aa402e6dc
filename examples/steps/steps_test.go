package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const pages = "../../docs/build"

// block is a marker of a page, and the block after it.
var block = regexp.MustCompile("(?s)<!-- (code|mended|lacks|fence|table) -->\n(?:\n```[a-z]+\n.*?\n```\n)?")

// text returns what belongs after a marker of the page of a step.
func text(marker string, step int) (language, text string) {
	switch marker {
	case "code":
		return "go", source(step)
	case "mended":
		return "text", historyNamed(steps()[step-1].lacks).transcript(steps()[step].handle)
	case "lacks":
		return "text", historyNamed(steps()[step].lacks).transcript(steps()[step].handle)
	case "fence":
		return "text", historyNamed("slower than its lease").transcript(steps()[step].handle)
	}
	return "text", table()
}

// Every block of the pages is what the steps print. UPDATE_PAGES=1 writes it anew.
func TestThePagesShowTheSteps(t *testing.T) {
	paths, err := filepath.Glob(pages + "/*.md")
	if err != nil || len(paths) != len(steps())+1 {
		t.Fatalf("pages %v, %v: want one for each step, and README.md", paths, err)
	}
	markers := 0
	for _, path := range paths {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		step, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "step-"), ".md"))
		want := block.ReplaceAllStringFunc(string(got), func(found string) string {
			markers++
			marker := block.FindStringSubmatch(found)[1]
			language, text := text(marker, step)
			return "<!-- " + marker + " -->\n\n```" + language + "\n" + text + "```\n"
		})
		if os.Getenv("UPDATE_PAGES") != "" {
			if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(string(got), want); diff != "" {
			t.Errorf("%s (-page +steps); write it anew with UPDATE_PAGES=1:\n%s", path, diff)
		}
	}
	if want := 3 * len(steps()); markers != want { // the first mends nothing, the last lacks nothing, and two more
		t.Errorf("%d blocks, want %d", markers, want)
	}
}

// Each step is broken by its history, which the next one survives, and every later one.
func TestEachStepMendsTheHistoryThatBreaksTheOneBefore(t *testing.T) {
	for i, s := range steps() {
		if s.lacks == "" {
			continue
		}
		h := historyNamed(s.lacks)
		if got := h.result(h.play(s.handle)); got == "right" {
			t.Errorf("step %d: %s: got %s, want something wrong", i, h.name, got)
		}
		for j := i + 1; j < len(steps()); j++ {
			if got := h.result(h.play(steps()[j].handle)); got != "right" {
				t.Errorf("step %d: %s: got %s, want it right", j, h.name, got)
			}
		}
	}
}

// The last step and the deployed protocol survive every history.
func TestTheLastStepAndTheProductSurviveEveryHistory(t *testing.T) {
	for _, h := range histories() {
		for name, handle := range map[string]handler{"step 7": step7, "product": product} {
			if got := h.result(h.play(handle)); got != "right" {
				t.Errorf("%s: %s: got %s\n%s", name, h.name, got, h.transcript(handle))
			}
		}
	}
}

// A step is read in a minute.
func TestStepsAreShort(t *testing.T) {
	for i := range steps() {
		if n := strings.Count(source(i), "\n"); n > 60 {
			t.Errorf("step %d: %d lines, want at most 60", i, n)
		}
	}
}
