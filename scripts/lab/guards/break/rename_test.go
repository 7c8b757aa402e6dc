package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/local/system/systemtest"
)

// TestAGuardIsRemovedAfterTheModuleWasRenamed does what docs/guides/adapt.md says, in a
// copy.
func TestAGuardIsRemovedAfterTheModuleWasRenamed(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	openProduct(t)
	root, _ := allGuards(t)
	clone := filepath.Join(t.TempDir(), "shop")
	for _, name := range []string{"adapters", "domain", "examples", "functions", "scripts"} {
		systemtest.Must(t, os.CopyFS(filepath.Join(clone, name), os.DirFS(filepath.Join(root, name))))
	}
	for _, name := range []string{"Makefile", "go.mod", "go.sum", ".golangci.yml"} {
		systemtest.Must(t, os.WriteFile(filepath.Join(clone, name), []byte(content(t, filepath.Join(root, name))), 0o600))
	}
	_, section, _ := strings.Cut(content(t, filepath.Join(root, "docs", "guides", "adapt.md")), "\n## Rename the module\n")
	_, block, _ := strings.Cut(section, "```sh\n")
	commands, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("docs/guides/adapt.md has no commands that rename the module")
	}
	for _, c := range []string{commands, "make break GUARD=bind"} {
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", c)
		cmd.Dir = clone
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s\n%v\n%s", c, err, out)
		}
	}
}
