package infra_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// The layout is that of terraform-docs, which finds its markers.
func TestTheModulesReadmeListsItsInputsOutputsAndResources(t *testing.T) {
	const begin, end = "<!-- BEGIN_TF_DOCS -->\n", "<!-- END_TF_DOCS -->\n"
	var inputs, outputs, resources []string
	files, err := filepath.Glob(folder + module + "*.tf")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		text := []byte(content(t, file))
		parsed, problems := hclsyntax.ParseConfig(text, file, hcl.InitialPos)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		body, _ := parsed.Body.(*hclsyntax.Body)
		for _, b := range body.Blocks {
			// argument returns the text of an argument on one line.
			argument := func(name string) string {
				a, ok := b.Body.Attributes[name]
				if !ok {
					return ""
				}
				value := strings.Join(strings.Fields(string(a.Expr.Range().SliceBytes(text))), " ")
				value = strings.TrimSuffix(strings.TrimPrefix(value, "<<-EOT "), " EOT")
				return strings.ReplaceAll(strings.ReplaceAll(value, "|", `\|`), `\"`, `"`)
			}
			description := strings.Trim(argument("description"), `"`)
			switch b.Type {
			case "variable":
				inputs = append(inputs, fmt.Sprintf("| %s | %s | `%s` | `%s` | no |\n",
					b.Labels[0], description, argument("type"), argument("default")))
			case "output":
				outputs = append(outputs, fmt.Sprintf("| %s | %s |\n", b.Labels[0], description))
			case "resource", "data":
				kind := strings.Replace(b.Type, "data", "data source", 1)
				resources = append(resources, fmt.Sprintf("| %s | %s |\n", strings.Join(b.Labels, "."), kind))
			}
		}
	}
	constraint := func(name string) string { return matches(t, ` `+name+` += "(.*?)"`, module+"versions.tf")[0] }
	want := "## Requirements\n\n| Name | Version |\n|---|---|\n" +
		"| terraform | " + constraint("required_version") + " |\n| aws | " + constraint("version") + " |\n\n" +
		"## Providers\n\n| Name | Version |\n|---|---|\n| aws | " + constraint("version") + " |\n\n" +
		"## Modules\n\nNo modules.\n\n" +
		"## Resources\n\n| Name | Type |\n|---|---|\n" + strings.Join(set(resources), "") + "\n" +
		"## Inputs\n\n| Name | Description | Type | Default | Required |\n|---|---|---|---|---|\n" +
		strings.Join(set(inputs), "") + "\n" +
		"## Outputs\n\n| Name | Description |\n|---|---|\n" + strings.Join(set(outputs), "")
	page := read(t, module+"README.md")
	before, rest, _ := strings.Cut(page, begin)
	got, after, marked := strings.Cut(rest, end)
	if os.Getenv("UPDATE_PAGES") != "" { //nolint:forbidigo // a test has no composition root
		page = before + begin + want + end + after
		if err := os.WriteFile(folder+module+"README.md", []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		got = want
	}
	if diff := cmp.Diff(got, want); diff != "" || !marked {
		t.Errorf("README.md (-page +module); write it anew with UPDATE_PAGES=1:\n%s", diff)
	}
}
