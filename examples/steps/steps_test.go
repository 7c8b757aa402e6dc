package main

import (
	"fmt"
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
var block = regexp.MustCompile("(?s)<!-- (code|mended|lacks|fence|table|exhibit) -->\n(?:\n```[a-z]+\n.*?\n```\n)?")

// text returns what belongs after a marker of the page of a step, or of the museum, whose
// exhibits are counted instead.
func text(marker string, step int) (language, text string) {
	switch marker {
	case "exhibit":
		return "text", museum()[step].transcript()
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
	if err != nil || len(paths) != len(steps())+2 {
		t.Fatalf("pages %v, %v: want one for each step, README.md and museum.md", paths, err)
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
			if marker == "exhibit" {
				step++
			}
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
	// The first step mends nothing, the last lacks nothing, and two blocks more.
	if want := 3*len(steps()) + len(museum()); markers != want {
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
			survives(t, h, fmt.Sprint("step ", j), steps()[j].handle)
		}
	}
}

func survives(t *testing.T, h history, name string, handle handler) {
	t.Helper()
	if got := h.result(h.play(handle)); got != "right" {
		t.Errorf("%s: %s: got %s\n%s", name, h.name, got, h.transcript(handle))
	}
}

// The last step and the deployed protocol survive every history.
func TestTheLastStepAndTheProductSurviveEveryHistory(t *testing.T) {
	for _, h := range histories() {
		survives(t, h, "step 7", step7)
		survives(t, h, "product", product)
	}
}

func TestThePersonSetsThePace(t *testing.T) {
	for in, want := range map[string]int{"\n\n": 3, strings.Repeat("\n", 20): len(steps())} {
		var out strings.Builder
		show := func(text string) { out.WriteString(text) }
		walk(show, strings.NewReader(in), true)
		if got := strings.Count(out.String(), "\nEnter: the next step "); got != want {
			t.Errorf("%d lines: waited %d times, want %d", len(in), got, want)
		}
		walk(show, strings.NewReader(""), false)
		if n := strings.Count(out.String(), "\n=== Step "); n != 2*len(steps()) || !strings.HasSuffix(out.String(), table()) {
			t.Errorf("%d lines: %d steps in two walks, want all, and the table at the end", len(in), n)
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

// Each exhibit is broken by its history. The product survives it, and so does every step
// from the one that teaches the guard.
func TestTheGuardSavesEachExhibit(t *testing.T) {
	for _, e := range museum() {
		h := e.history()
		if got := h.result(h.play(e.handle)); got == "right" {
			t.Errorf("%s: got %s, want something wrong", e.name, got)
		}
		survives(t, h, "product", product)
		for i := e.step; i < len(steps()); i++ {
			survives(t, h, fmt.Sprint("step ", i), steps()[i].handle)
		}
	}
}

// The page has a section for each exhibit, in order, with its link and its guard's step.
func TestTheMuseumsPageNamesEachLinkAndGuard(t *testing.T) {
	page, err := os.ReadFile(pages + "/museum.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(page), "\n## ")[1:]
	if len(sections) < len(museum()) {
		t.Fatalf("%d sections, want one for each of %d exhibits", len(sections), len(museum()))
	}
	for i, e := range museum() {
		for _, want := range []string{fmt.Sprintf("%d. %s\n", i+1, e.name), "(" + e.link + ")", fmt.Sprintf("(step-%d.md)", e.step)} {
			if !strings.Contains(sections[i], want) {
				t.Errorf("section %d: want %q", i+1, want)
			}
		}
		if lines := strings.Count(strings.TrimSpace(sections[i]), "\n") + 1; lines > 30 {
			t.Errorf("%s: %d lines, want at most 30", e.name, lines)
		}
	}
}
