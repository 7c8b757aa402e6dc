package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orderonce/scripts/lab/refunds"
	"orderonce/scripts/lab/stage"
)

func TestRunPrintsTheWorldsOfProductAndBaselines(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := (&options{Worlds: 50, Seed: 1, Faults: 1}).Prove(t.Context(), &out, &out); err != nil {
		t.Fatal(err)
	}
	wants := []string{"| two small refunds |", "| the product | nothing is removed | 0 | 0 | 0 | 0 |", "0 violations"}
	for _, b := range refunds.Baselines() {
		wants = append(wants, "| "+b.Name+" |")
	}
	for _, want := range wants {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s\nwant %q in it", out.String(), want)
		}
	}
}

func TestReplayPrintsOneWorld(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := (&options{Replay: "worst/1"}).Prove(t.Context(), &out, &out); err != nil ||
		!strings.Contains(out.String(), "begins with message 1") {
		t.Errorf("got error %v and\n%s", err, out.String())
	}
	for _, wrong := range []string{"worst", "worst/x", "bad/1"} {
		if err := (&options{Replay: wrong}).Prove(t.Context(), &out, &out); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: got %v, want an error that names it", wrong, err)
		}
	}
}

func TestThePageHasEveryRow(t *testing.T) {
	t.Parallel()
	broken := reports{refunds.Worst: {Broken: map[stage.Invariant]int{refunds.MadeOnce: 3, refunds.Settles: 4}}}
	rules := []row{
		{Name: "in-worlds", Does: "A.", CaughtBy: "I18", Reports: broken}, {Name: "elsewhere", Does: "B.", CaughtBy: "I19"},
	}
	o := options{Faults: 2, Worlds: 10, Seed: 1, Page: filepath.Join(t.TempDir(), "page.md")}
	if err := writePage(o, "| all | 7 | |\n", []row{{Name: "the product", Reports: reports{}}}, rules); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(o.Page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| in-worlds | A. | 0 | 3 + 4 | 0 | 0 | I18 |", "| elsewhere | B. |  |  |  |  | I19 |", "10 worlds of each class", "| all | 7 | |", "0 worst worlds",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}
