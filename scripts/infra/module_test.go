package infra_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// resource returns the text of a resource of the module.
func resource(t *testing.T, address string) string {
	t.Helper()
	kind, name, _ := strings.Cut(address, ".")
	found := matches(t, `(?ms)^resource "`+kind+`" "`+name+`" \{\n(.*?)^\}`, module+"*.tf")
	if len(found) != 1 {
		t.Fatalf("%s: got %d resources, want one", address, len(found))
	}
	return found[0]
}

// all returns what the first group of a pattern matches.
func all(pattern, text string) (found []string) {
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

// statement is a statement of a policy.
type statement struct {
	actions   []string
	condition string // JSON, or ""
}

// statements returns those of every policy, by kind and name, such as "role order", and
// by Sid. Terraform's tests compare the list with the plan.
func statements(t *testing.T) map[string]map[string]statement {
	t.Helper()
	line := regexp.MustCompile(`(?m)^(\w+ [\w-]+) (\w+): (?:Allow|Deny) ([\w: ]+?)(?: by \S+)?(?: on .+?)?(?: if (.+))?$`)
	all := map[string]map[string]statement{}
	for _, m := range line.FindAllStringSubmatch(strings.Join(matches(t, `(?s)(.*)`, module+"tests/policies/*.txt"), ""), -1) {
		if all[m[1]] == nil {
			all[m[1]] = map[string]statement{}
		}
		all[m[1]][m[2]] = statement{strings.Fields(m[3]), m[4]}
	}
	return all
}

// actions returns what statements allow, without what they allow on KMS keys.
func actions(statements map[string]statement) (all []string) {
	for _, s := range statements {
		all = append(all, s.actions...)
	}
	return set(slices.DeleteFunc(all, func(a string) bool { return strings.HasPrefix(a, "kms:") }))
}

// set sorts texts and removes duplicates.
func set(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

func TestTheRootPassesEveryVariableAndOutput(t *testing.T) {
	rootHasEach(t, `(?m)^variable "(\w+)"`, "main.tf", `(?m)^  (\w+ += (?:coalesce\()?var\.\w+)`, "%s = var.%[1]s")
	rootHasEach(t, `(?m)^output "(\w+)"`, "outputs.tf", `(?m)^output (.*)$`, `"%s" { value = module.orderonce.%[1]s }`)
}

// An apply over the state of a release without the module's folder moves its resources. A
// new resource has no earlier address: make it an exception here.
func TestTheRootMovesEveryResource(t *testing.T) {
	rootHasEach(t, `(?m)^resource "(\w+" "\w+)"`, "moved.tf.json",
		`"from": ("[\w.]+", "to": "module\.orderonce\.[\w.]+)(?:\[0])?"`, `"%s", "to": "module.orderonce.%[1]s`)
}

// rootHasEach compares what the module declares, written in the format, with what a file
// of the root has.
func rootHasEach(t *testing.T, declared, file, inRoot, format string) {
	t.Helper()
	var want []string
	for _, name := range matches(t, declared, module+"*.tf") {
		_, job, _ := strings.Cut(name, `" "`)
		if files, _ := filepath.Glob(folder + "../functions/" + job + "/table.go"); len(files) > 0 {
			continue // the table of a job of your own, which is new
		}
		want = append(want, fmt.Sprintf(format, strings.ReplaceAll(name, `" "`, ".")))
	}
	var got []string
	for _, text := range matches(t, inRoot, "terraform/"+file) {
		got = append(got, strings.Replace(strings.Join(strings.Fields(text), " "), "coalesce(", "", 1))
	}
	got = slices.DeleteFunc(got, func(s string) bool { return s == "region = var.region" }) // of the provider
	if diff := cmp.Diff(set(got), set(want)); diff != "" {
		t.Errorf("%s (- in the root, + in the module):\n%s", file, diff)
	}
}
