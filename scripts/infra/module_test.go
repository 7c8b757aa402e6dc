package infra_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// resource returns the text of a resource of the module.
func resource(t *testing.T, address string) string {
	t.Helper()
	kind, name, _ := strings.Cut(address, ".")
	found := matches(t, `(?ms)^resource "`+kind+`" "`+name+`" \{\n(.*?)^\}`, "terraform/*.tf")
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
	for _, m := range line.FindAllStringSubmatch(read(t, "terraform/tests/policies.txt"), -1) {
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
