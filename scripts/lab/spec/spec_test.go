// Package spec simulates the specification of the charge protocol, docs/spec/charge.qnt,
// by Quint, which others wrote.
package spec_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
)

const folder = "../../../docs/spec"

// The table of the page has every switch of the specification, the invariant that its
// patch breaks in the lab, and what a simulation finds.
func TestTheSpecificationHoldsAndFailsWithoutEachGuard(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	out, err := exec.CommandContext(t.Context(), "node", "check.js").CombinedOutput()
	if err != nil {
		t.Fatalf("node check.js: %v; make spec installs what it needs\n%s", err, out)
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	t.Log(got[0])
	var want []string
	for _, row := range table(t) {
		want = append(want, fmt.Sprintf("without %s: %s broken after %s steps", row[1], row[2], row[4]))
	}
	if diff := cmp.Diff(want, got[1:]); diff != "" {
		t.Errorf("the table of docs/spec/README.md and the simulation (-table +simulation):\n%s", diff)
	}
}

func TestEachSwitchIsAPlantedBugOfTheLab(t *testing.T) {
	t.Parallel()
	var switches []string
	for _, match := range regexp.MustCompile(`\.bug [!=]= "([a-z0-9-]+)"`).FindAllStringSubmatch(read(t, folder, "charge.qnt"), -1) {
		switches = append(switches, match[1])
	}
	var listed []string
	for _, row := range table(t) {
		listed = append(listed, row[1])
		patch := read(t, "../guards/patches", row[1]+".patch")
		if !regexp.MustCompile(`(?m)^# caught by: ` + row[3] + `\b`).MatchString(patch) {
			t.Errorf("%s: the table says %s, the patch:\n%.200s", row[1], row[3], patch)
		}
	}
	slices.Sort(switches)
	slices.Sort(listed)
	if diff := cmp.Diff(slices.Compact(switches), listed); diff != "" {
		t.Errorf("switches of charge.qnt and of its page (-spec +page):\n%s", diff)
	}
}

// table returns the rows of the page's table: switch, invariant, that of the lab, steps.
func table(t *testing.T) [][]string {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\|.*\\| `(\\w+)` \\| (I\\d+) \\| (\\d+) \\|$")
	return row.FindAllStringSubmatch(read(t, folder, "README.md"), -1)
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
