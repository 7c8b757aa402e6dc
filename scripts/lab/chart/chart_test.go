package chart_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orderonce/scripts/lab/chart"
)

func TestAPageIsReplacedFromItsHeadingOn(t *testing.T) {
	docs := t.TempDir()
	page := filepath.Join(docs, "page.md")
	write := func(heading string) (string, error) {
		err := chart.WritePage(docs, "page.md", heading, "new\n", "page.svg", "<svg/>")
		text, _ := os.ReadFile(page)
		return string(text), err
	}
	if err := os.WriteFile(page, []byte("By hand.\n\n## Figures\nold\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := write("\n## Other\n"); err == nil || !strings.HasSuffix(got, "old\n") {
		t.Errorf("got %q and error %v, want the page as it was and an error", got, err)
	}
	if _, err := os.Stat(filepath.Join(docs, "page.svg")); err == nil {
		t.Error("the chart was written without its page")
	}
	if got, err := write("\n## Figures\n"); err != nil || got != "By hand.\n\n## Figures\nnew\n" {
		t.Errorf("got %q and error %v, want the new figures below what is by hand", got, err)
	}
}
