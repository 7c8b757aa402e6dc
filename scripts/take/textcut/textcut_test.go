package textcut_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"orderonce/scripts/take/textcut"
)

func mentions(text string) bool {
	return strings.Contains(strings.ToLower(text), "refund")
}

// Each unit is cut where it is the smallest that mentions. A leading line break makes the
// table legible.
func TestTheSmallestUnitIsCut(t *testing.T) {
	for _, tt := range []struct{ name, path, before, after string }{
		{"a section with those below it", "a.md", `
# A
One.

## Refunds
Two.

### More
Three.

## B
Four.
`, `
# A
One.

## B
Four.
`},
		{"a section that nothing is left of", "a.md", "# A\nOne.\n\n## B\n- Refund it.\n\n## C\nTwo.\n", "# A\nOne.\n\n## C\nTwo.\n"},
		{
			"a sentence, with the one that refers back to it", "a.md",
			"Orders wait, e.g. for `a. B`. A refund waits. It is made once. Then an order\nis paid.\n\nKeep.\n",
			"Orders wait, e.g. for `a. B`.\n\nKeep.\n",
		},
		{
			"a paragraph keeps its width", "a.md", "One two three four five.\nA refund. Six seven eight nine ten\neleven.\n",
			"One two three four five. Six seven\neight nine ten eleven.\n",
		},
		{"names in an enumeration", "a.md", "The commands `show`, `refund` and `list` read.\n", "The commands `show` and `list` read.\n"},
		{
			"an item, its nested list, and numbers", "a.md", "1. One.\n2. Refund.\n   - nested\n3. Three. A refund.\n   - nested\n",
			"1. One.\n2. Three.\n   - nested\n",
		},
		{
			"rows, columns and clauses", "a.md",
			"| a | refunds | c |\n|---|---|---|\n| 1 | 2 | 3; a refund |\n| refund | 2 | 3 |\n", "| a | c |\n|---|---|\n| 1 | 3 |\n",
		},
		{
			"commands with their output, and what introduces them", "a.md",
			"Do it. Like this:\n\n```console\n$ orders refund\nmade\n```\n\nAnd:\n\n```\n$ a\nb\n```\n", "Do it.\n\nAnd:\n\n```\n$ a\nb\n```\n",
		},
		{
			"a mark whose commands are cut", "a.md",
			"A.\n\n```sh\n# needs an AWS account\norders refund\n```\n\n```sh\n# needs an AWS account\nb\n```\n",
			"A.\n\n```sh\n# needs an AWS account\nb\n```\n",
		},
		{"comments and details", "a.md", "A.\n\n<!-- refund -->\n\n<details><summary>a refund</summary>\n\nB.\n\n</details>\n", "A.\n"},
		{
			"an attribute, a block, an element, an argument and a comment", "a.tf", `
# Orders. Refunds too.
locals {
  # of refunds
  refund = 1
  all    = merge({ a = [local.refund, 2], refund = 3 }, local.refund)
}

resource "x" "refund" {
  a = 1
}
`, `
# Orders.
locals {
  all = { a = [2] }
}
`,
		},
		{
			"conditions", "a.tf", `
locals {
  a = var.refund ? 1 : 2
  b = concat([1], !var.refund ? [] : [2], [3])
  c = (var.x && !var.refund) || local.refund ? 1 : 2
  d = [for x in ["a", "refund"] : x if x != "refund"]
}
`, `
locals {
  a = 2
  b = concat([1], [3])
  c = (var.x) ? 1 : 2
  d = [for x in ["a"] : x]
}
`,
		},
		{
			"an operand of an assertion, and a test that asserts nothing any more", "a.tftest.hcl", `
run "one" {
  assert {
    condition     = a.b == 1 && a.refund == 2
    error_message = "no"
  }
}

run "two" {
  assert {
    condition     = a.refund == 2
    error_message = "no"
  }
}
`, `
run "one" {
  assert {
    condition     = a.b == 1
    error_message = "no"
  }
}
`,
		},
		{
			"members and elements", "a.json", "{\n  \"a\": [\"b\", \"refund\"],\n  \"refund\": {\"c\": 1},\n  \"d\": {\"e\": \"refund\"}\n}\n",
			"{\n  \"a\": [\"b\"]\n}\n",
		},
		{
			"targets, words and alternatives", "Makefile", `
LONG := TestA|TestRefunds|TestB
.PHONY: a refund b

# Makes refunds.
refund: a ## refund
	@echo

a: b refund ## one; refunds
	@echo a
	@echo refund \
	  more
`, `
LONG := TestA|TestB
.PHONY: a b

a: b ## one
	@echo a
`,
		},
		{"a block of a script", "a.sh", "a\nif [ -n \"$refund\" ]; then\n  b\nfi\nc refund \\\n  d\ne\n", "a\ne\n"},
		{
			"items, members and elements of YAML", "a.yml", `
a:
  # Of refunds.
  - run: refund
    with: {b: c}
  - files: ["x", "refund"] # y
refund:
  b: c
d:
  e: refund
`, `
a:
  - files: ["x"] # y
`,
		},
		{"lines", "a.txt", "a\nrefund\nb\n", "a\nb\n"},
		{
			"sections, sentences and entries of a help", "help.txt", `
== show
It reads an order. Nothing
is changed. Refunds that wait are
listed. The words are:

  paid    The money moved.
  back    The customer has it again, by
          a refund.

Examples:
  show ORD-1

== refund
It gives money back.

Examples:
  refund ORD-1

== list
Examples:
  list --refunds
`, `
== show
It reads an order. Nothing is
changed. The words are:

  paid    The money moved.

Examples:
  show ORD-1
`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := textcut.Cut(tt.path, []byte(strings.TrimPrefix(tt.before, "\n")), mentions)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(tt.after, "\n"), string(got)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func TestWhatHasNoUnitIsRefused(t *testing.T) {
	for _, tt := range []struct{ path, src, want string }{
		{"a.md", "A.\n\nThe refunds:\n\n- a\n", "a.md:3: cannot cut a sentence that introduces what stays: The refunds:"},
		{
			"a.tf", "output \"a\" {\n  value = 1\n  description = \"Refunds\"\n}\n",
			`a.tf:3: cannot cut the only sentence of a text: description = "Refunds"`,
		},
		{"a.js", "a()\nrefund()\n", "a.js:2: cannot cut a js file that mentions it: refund()"},
	} {
		if got, err := textcut.Cut(tt.path, []byte(tt.src), mentions); err == nil || err.Error() != tt.want {
			t.Errorf("Cut(%q) = %q, %v; want %q", tt.path, got, err, tt.want)
		}
	}
}

func TestWhatRefersToNothingOrIsUnusedGoesFromAModule(t *testing.T) {
	got, err := textcut.Terraform(map[string][]byte{
		"m/a.tf": []byte("locals {\n  a = merge({ b = 1 }, local.b, local.h)\n" +
			"  b = aws_x.refund.y\n  c = 1\n}\n\nvariable \"d\" {\n  validation {\n    condition = var.d > 0\n  }\n}\n"),
		"m/refund.tf": []byte("locals {\n  h = { c = 1 }\n}\n"),
		"m/b.tf": []byte("resource \"aws_x\" \"refund\" {\n  d = var.d\n  e = local.c\n}\n\n" +
			"output \"f\" {\n  value = local.b\n}\n"),
		"m/tests/a.tfvars":     []byte("d = 1\n"),
		"m/tests/a.tftest.hcl": []byte("run \"a\" {\n  variables {\n    d = 1\n  }\n\n  assert {\n    condition = local.a == 1\n  }\n}\n"),
		"c/main.tf":            []byte("module \"m\" {\n  source = \"../m\"\n  d      = 1\n}\n"),
		"c/outputs.tf":         []byte("output \"g\" {\n  value = module.m.f\n}\n"),
	}, mentions)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{
		"m/a.tf":               []byte("locals {\n  a = { b = 1 }\n}\n"),
		"m/tests/a.tftest.hcl": []byte("run \"a\" {\n  assert {\n    condition = local.a == 1\n  }\n}\n"),
		"c/main.tf":            []byte("module \"m\" {\n  source = \"../m\"\n}\n"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestDeadLinksAreFoundAndUnlinked(t *testing.T) {
	text := "# A `b` c\n[here](#a-b-c), [gone](#b), [other](b.md).\n\n" +
		"- [other](b.md)\n- [other](b.md): what is there\n- See [the other](b.md#x).\n\n```\n[x](y)\n```\n"
	tree := fstest.MapFS{"a.md": {Data: []byte(text)}}
	got, err := textcut.Links(tree)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a.md:2: #b", "a.md:2: b.md", "a.md:4: b.md", "a.md:5: b.md", "a.md:6: b.md#x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	unlinked := string(textcut.Unlink(tree, []byte(text), "a.md"))
	after := "# A `b` c\n[here](#a-b-c), gone, other.\n\n- See the other.\n\n```\n[x](y)\n```\n"
	if diff := cmp.Diff(after, unlinked); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}
