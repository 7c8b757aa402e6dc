package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/lab/stage"
)

func TestACommandPrintsItsFiguresOrOneHistory(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		run  func(screen) error
		want []string // in the output or in the error
	}{
		{
			func(s screen) error { return (&orders{Replay: "42"}).Run(t.Context(), s) },
			[]string{"delivers message 1", "0 violations"},
		},
		{func(s screen) error { return (&orders{Replay: "nope"}).Run(t.Context(), s) }, []string{`"nope"`}},
		{
			func(s screen) error { return (&refunds{Replay: "worst/1"}).Run(t.Context(), s) },
			[]string{"begins with message 1", "0 violations"},
		},
		{func(s screen) error { return (&refunds{Replay: "bad/1"}).Run(t.Context(), s) }, []string{`"bad/1"`}},
		{func(s screen) error { return (&refunds{Replay: "worst/x"}).Run(t.Context(), s) }, []string{`"worst/x"`}},
		{func(s screen) error { return (&refunds{Worlds: 50, Seed: 1, Faults: 1}).Run(t.Context(), s) }, []string{
			"| two small refunds |", "| broken worlds | 0 | 0 | 0 | 0 |", "0 violations",
		}},
		{
			func(s screen) error { return (&effects{Deviations: 1}).Run(t.Context(), s) },
			[]string{"two clients put one order: 0 violations"},
		},
	} {
		var out strings.Builder
		if err := tt.run(screen{&out, &out}); err != nil {
			out.WriteString(err.Error())
		}
		for _, want := range tt.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("got\n%s\nwant %q in it", out.String(), want)
			}
		}
	}
}

func TestWithoutACommandEachHasItsDefaults(t *testing.T) {
	t.Parallel()
	c, err := defaults()
	most, worlds := c.Orders.bounds()
	got := []int{most, worlds, c.Refunds.Worlds, c.Refunds.Faults, c.Effects.Deviations}
	if diff := cmp.Diff(got, []int{2, 1_000_000, 10_000, 2, 4}); diff != "" || err != nil {
		t.Errorf("%v, (-got +want)\n%s", err, diff)
	}
}

func TestAPageKeepsItsProseAndGetsItsParts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "proof.md")
	page := func(figures string) string {
		return "# A title\n\n<!-- generated: figures -->\n\n" + figures + "\n\n<!-- end -->\nwords\n"
	}
	if err := os.WriteFile(path, []byte(page("old")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := rewrite(path, map[string]string{"figures": "new\n"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(read(t, path), page("new")); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	if err := rewrite(path, map[string]string{"bugs": "b"}); err == nil {
		t.Error("got no error for a page that lacks a part")
	}
}

// The parts that the commands write are in the pages of docs/reference.
func TestThePagesHaveEveryPart(t *testing.T) {
	t.Parallel()
	parts, _ := (&refunds{}).parts(make([]stage.Report, 13), reports{})
	for path, parts := range map[string]map[string]string{
		"proof.md": {"figures": "", "histories": ""}, "refund-proof.md": parts,
	} {
		if _, err := fill(read(t, "../../../docs/reference/"+path), parts); err != nil {
			t.Errorf("%s: %v", path, err)
		}
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
