package main

import (
	"path/filepath"
	"strings"
	"testing"

	"orderonce/adapters/lambda/lambdatest"
)

// examples/label has every generated line in its order, except those with a TODO.
func TestTheExampleIsTheOutputAndItsOwnLines(t *testing.T) {
	t.Parallel()
	j, err := newJob(project(t, "infra"), "a", "label")
	must(t, err)
	j.Module, j.Folder = lambdatest.Module(), "examples/label"
	files, err := j.files()
	must(t, err)
	for _, c := range files {
		if filepath.Ext(c.path) != ".go" {
			continue
		}
		rest := read(t, filepath.Join(root, c.path))
		for line := range strings.Lines(string(c.new)) {
			_, after, found := strings.Cut("\n"+rest, "\n"+line)
			if !found && !strings.Contains(line, "TODO") {
				t.Errorf("%s: no line %q where the template has it", c.path, line)
			}
			if found {
				rest = after
			}
		}
		if strings.Contains(read(t, filepath.Join(root, c.path)), "TODO") {
			t.Errorf("%s: a TODO is left", c.path)
		}
	}
}
