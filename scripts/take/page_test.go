package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestThePageOfThePartsIsTheList(t *testing.T) {
	t.Parallel()
	root, err := findRoot()
	must(t, err)
	o, err := openOrigin(t.Context(), root)
	must(t, err)
	const page = "../../docs/parts.md"
	if os.Getenv("UPDATE_PAGES") != "" {
		must(t, os.WriteFile(page, []byte(o.parts.page()), 0o600))
	}
	got, err := os.ReadFile(page)
	must(t, err)
	if diff := cmp.Diff(string(got), o.parts.page()); diff != "" {
		t.Errorf("docs/parts.md (-page +parts.hcl); write it anew with UPDATE_PAGES=1:\n%s", diff)
	}
	for _, p := range o.parts.Parts {
		if p.Is == "" || p.Guide == "" || p.AWS == "" || p.Lines == 0 || o.files[p.Guide].data == nil {
			t.Errorf("part %s: want is, guide, aws and lines, and a guide that exists: %+v", p.Name, p)
		}
	}
}
