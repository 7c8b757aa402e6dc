package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/lab/baselines"
)

func TestASeedAndAScheduleAreReplayed(t *testing.T) {
	t.Parallel()
	for replay, want := range map[string]string{"42": "0 violations", "pairs/0/01": "0 violations"} {
		var out bytes.Buffer
		err := (&options{Replay: replay}).Prove(t.Context(), &out, &out)
		if err != nil || !strings.Contains(out.String(), want) ||
			!strings.Contains(out.String(), "delivers message 1") {
			t.Errorf("%s: %v\n%s", replay, err, out.String())
		}
	}
	if err := (&options{Replay: "nope"}).Prove(t.Context(), new(bytes.Buffer), new(bytes.Buffer)); err == nil ||
		!strings.Contains(err.Error(), `"nope"`) {
		t.Errorf("got %v, want an error that names it", err)
	}
}

func TestFlagsSetTheBoundsOfARun(t *testing.T) {
	t.Parallel()
	type bounds struct{ Most, Worlds int }
	for flags, want := range map[string]bounds{
		"":                      {2, 1_000_000},
		"--worlds=5":            {2, 5},
		"--triples":             {3, 1_000_000},
		"--triples --worlds=5":  {3, 5},
		"--long":                {3, 100_000_000},
		"--resume=x --seed=9":   {2, 1_000_000},
		"--page=x --worlds=200": {2, 200},
	} {
		var o options
		p, err := kong.New(&o)
		if err == nil {
			_, err = p.Parse(strings.Fields(flags))
		}
		if err != nil {
			t.Fatal(err)
		}
		most, worlds := o.bounds()
		if got := (bounds{most, worlds}); got != want {
			t.Errorf("%q: got %+v, want %+v", flags, got, want)
		}
	}
}

func TestThePageHasThreeStoriesAndTheFullPageHasAll(t *testing.T) {
	t.Parallel()
	page, full := filepath.Join(t.TempDir(), "proof.md"), filepath.Join(t.TempDir(), "build", "proof-full.md")
	r := proof{figures: "the figures\n", baselines: "the baselines\n", bugs: "the bugs\n"}
	for _, name := range append(selected(), "fence") {
		r.histories = append(r.histories, history{name: name, about: "About " + name + ".", text: "I1 broken\n"})
	}
	if err := writePages(page, full, r); err != nil {
		t.Fatal(err)
	}
	const three = "## Three histories\n\n### bind\n\nAbout bind.\n\nI1 broken\n\n### idempotency-record-24h\n\n" +
		"About idempotency-record-24h.\n\nI1 broken\n\n### prepare-again\n\nAbout prepare-again.\n\nI1 broken\n"
	if _, got, _ := strings.Cut(read(t, page), "\n\nthe figures\n\nthe bugs\n\n"); got != three {
		t.Errorf("proof.md: (-got +want)\n%s", cmp.Diff(got, three))
	}
	if got := read(t, full); !strings.Contains(got, "the baselines\n") ||
		!strings.HasSuffix(got, "### fence\n\nAbout fence.\n\nI1 broken\n") {
		t.Errorf("proof-full.md lacks the baselines or the last history:\n%s", got)
	}
	r.histories = r.histories[1:]
	if err := writePages(page, full, r); err == nil || !strings.Contains(err.Error(), "no history of bind") {
		t.Errorf("got error %v without the history of bind, want one that names it", err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEveryBaselineHasARowAndAStory(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	table, histories, err := baselineReport(baselines.All(), baselineWorlds)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range baselines.All() {
		if row := "| " + b.Name + " | " + b.Does + " | I1 | "; !strings.Contains(table, row) ||
			histories[i].name != b.Name {
			t.Errorf("%s lacks a row in the table, or a history:\n%s", b.Name, table)
		}
	}
}
