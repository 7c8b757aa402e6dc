package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryMistakeCanBePlanted(t *testing.T) {
	t.Parallel()
	for _, m := range mistakes() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			file := read(t, m.file)
			planted, err := m.plant(file)
			if err != nil || planted == file {
				t.Errorf("it changes nothing: %v", err)
			}
			tests := read(t, m.tests())
			alone, err := m.alone(tests)
			runs := 1 + strings.Count(alone, "\nrun \""+deployed+"\"")
			if err != nil || strings.Count(alone, "\nrun ") != runs || !strings.Contains(alone, "mock_provider") {
				t.Errorf("got the tests %s, %v", alone, err)
			}
		})
	}
}

func TestEveryFileOfTestsHasAMistake(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for _, m := range mistakes() {
		covered[filepath.Base(m.tests())] = true
	}
	files, err := filepath.Glob("../../infra/terraform/tests/*.tftest.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files of tests: %v", len(files), err)
	}
	for _, file := range files {
		if !covered[filepath.Base(file)] {
			t.Errorf("%s: nobody has seen it fail", file)
		}
	}
}

func TestAMistakeThatStandsTwiceIsRefused(t *testing.T) {
	t.Parallel()
	m := mistake{name: "x", file: "queue.tf", right: "a", wrong: "b"}
	if got, err := m.plant("a a"); err == nil {
		t.Errorf("got %q, want an error: half of it would stay right", got)
	}
	if got, err := m.alone("mock_provider \"aws\" {}\n"); err == nil {
		t.Errorf("got %q, want an error: there is no such run", got)
	}
}

func TestTheRegistryIsNamedWhenItCannotBeReached(t *testing.T) {
	t.Parallel()
	for printed, want := range map[string]string{
		"Error: Failed to query available provider packages\n\ncould not connect\nto registry.example: failed to request": "registry.example",
		"Error: Failed to query available provider packages\n\nno available releases match":                               "",
		"Terraform has been successfully initialized!":                                                                    "",
	} {
		if got := unreachable(printed); got != want {
			t.Errorf("%q: got %q, want %q", printed, got, want)
		}
	}
}

func TestTheCanaryIsTheKeyOfTheTests(t *testing.T) {
	t.Parallel()
	if !strings.Contains(read(t, "tests/secrets.tftest.hcl"), `"`+canary+`"`) {
		t.Errorf("the tests are not given the key %s, so nobody would find it", canary)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../infra/terraform", filepath.Clean(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
