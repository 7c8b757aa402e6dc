package lambdatest_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orderonce/adapters/lambda/lambdatest"
)

// "Tests that open files within the package's module or that consult environment
// variables only match future runs in which the files and environment variables are
// unchanged" (go help test). What a child process reads, such as go build, does not
// count.
//
// The test runs itself once more as go test would, with a file in which the testing
// package notes what the test opens.
func TestATestThatBuildsABinaryIsRunAgainWhenItsSourcesChange(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	if flag.Arg(0) == "child" {
		out := filepath.Join(t.TempDir(), "bootstrap")
		must(t, lambdatest.Build(t.Context(), "functions/order", out))
		return
	}
	program, err := os.Executable()
	must(t, err)
	notes := filepath.Join(t.TempDir(), "testlog")
	child := exec.CommandContext(t.Context(), program,
		"-test.run=^"+t.Name()+"$", "-test.testlogfile="+notes, "child")
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Clean(notes))
	must(t, err)
	opened := strings.Split(string(text), "\n")
	root, err := filepath.Abs("../../..") // go test looks only at what is below the folder of its own go.mod
	must(t, err)
	for _, path := range []string{
		"functions/order", "adapters/config", "adapters/lambda", "adapters/secretsmanager", "domain/order", "go.mod", "go.sum",
	} {
		if want := "open " + filepath.Join(root, path); !slices.Contains(opened, want) {
			t.Errorf("%s was not opened, although the binary is built from it", path)
		}
	}
	if slices.Contains(opened, "open "+filepath.Join(root, "scripts/orders")) {
		t.Error("scripts/orders was opened, although the binary is not built from it")
	}
}
