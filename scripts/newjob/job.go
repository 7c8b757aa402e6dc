package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/hashicorp/hcl/v2/hclwrite"
)

//go:embed templates
var templates embed.FS

// kind is one of the four kinds of docs/guides/adapt.md.
type kind struct {
	Kind    string
	What    string // it does
	Calls   int    // of an attempt that nothing disturbs
	Pretend string // what stands in for the real thing
	Todo    string // where that goes
}

func kinds() []kind {
	const provider = "provider that is pretended"
	return []kind{
		{
			"a", "an object is made first and takes effect by a second call, at most once", 5, provider,
			"provider.go: statuses, paths, request and answers; world_test.go pretends the same",
		},
		{
			"b", "the effect is a write to a table of your own", 1, "counter for each order in the job's table",
			"table.go: the effect, which item it changes and on which condition",
		},
		{
			"c", "a call under a key that the provider forgets, read before anything else", 5, provider,
			"provider.go: the life of a key, list, request and answers; world_test.go pretends the same",
		},
		{
			"d", "a call that nobody can ask about, so each doubt is parked for a person", 3, provider,
			"provider.go: request and answers, and which of them exclude an effect",
		},
	}
}

// list returns a line for each kind.
func list() string {
	var b strings.Builder
	for _, k := range kinds() {
		fmt.Fprintf(&b, "\n  %s  %s", k.Kind, k.What)
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// job is what the templates are filled in with.
type job struct {
	kind

	Name, Upper  string
	Module       string // the path of the project's module
	Folder       string // of the function
	module, part string // folder of the Terraform module, and the job's file in it
	A, B, C, D   bool
	Doubts       bool   // a doubt is parked
	ResultOf     string // the function that maps errors
}

// newJob returns a job for the project in the folder root.
func newJob(root, letter, name string) (job, error) {
	var j job
	for _, k := range kinds() {
		if k.Kind == letter {
			j.kind = k
		}
	}
	if j.Kind == "" {
		return j, fmt.Errorf("KIND %q: want one of these, see docs/guides/adapt.md:\n%s", letter, list())
	}
	word := regexp.MustCompile(`^[a-z][a-z0-9]{1,19}$`)
	if !word.MatchString(name) || token.IsKeyword(name) || name == "internal" {
		const want = "want 2 to 20 lower-case letters and digits, the first a letter, and no word of Go"
		return j, fmt.Errorf("NAME %q: %s", name, want)
	}
	goMod, err := os.ReadFile(filepath.Join(root, "go.mod")) //nolint:gosec // of the project
	module := regexp.MustCompile(`(?m)^module (\S+)$`).FindSubmatch(goMod)
	parts, _ := filepath.Glob(filepath.Join(root, "infra/terraform/modules/*/functions.tf"))
	if err != nil || module == nil || len(parts) != 1 {
		return j, errors.New("no go.mod or not one infra/terraform/modules/*/functions.tf here: " +
			"run it in the root of the project")
	}
	j.module, err = filepath.Rel(root, filepath.Dir(parts[0]))
	if err != nil {
		return j, err
	}
	j.Name, j.Upper, j.Module = name, strings.ToUpper(name), string(module[1])
	j.Folder, j.part = "functions/"+name, j.module+"/"+name+".tf"
	j.A, j.B, j.C, j.D = letter == "a", letter == "b", letter == "c", letter == "d"
	j.Doubts, j.ResultOf = j.C || j.D, "order.ResultOf"
	if j.Doubts {
		j.ResultOf = "resultOf"
	}
	return j, j.taken(root)
}

// taken returns an error if the project uses the name.
func (j job) taken(root string) error {
	files, err := filepath.Glob(filepath.Join(root, j.module, "*.tf"))
	if err != nil {
		return err
	}
	const use = `(?m)^  NAME +=|queues += \{ NAME =|^resource "aws_dynamodb_table" "NAME"|` +
		`^variable "(create_)?NAME(_url)?"`
	uses := regexp.MustCompile(strings.ReplaceAll(use, "NAME", j.Name))
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // of the project
		if err != nil {
			return err
		}
		if uses.Match(text) {
			return fmt.Errorf("NAME %q: taken, see %s: choose another", j.Name, j.module+"/"+filepath.Base(file))
		}
	}
	return nil
}

// change is a file that is written: a new one, or an old one with other text.
type change struct {
	path     string // relative to the root
	old, new []byte
}

// changes returns everything that the job changes, and changes nothing.
func (j job) changes(root string) ([]change, error) {
	all, err := j.files()
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if _, err := os.Lstat(filepath.Join(root, c.path)); err == nil {
			return nil, fmt.Errorf("%s: exists, and is not overwritten: choose another NAME or remove it", c.path)
		}
	}
	for _, e := range j.edits() {
		c := change{path: e.path}
		if c.old, err = os.ReadFile(filepath.Join(root, e.path)); err != nil { //nolint:gosec // of the project
			return nil, err
		}
		at := regexp.MustCompile(e.at)
		if !at.Match(c.old) {
			return nil, fmt.Errorf("%s: no line matches %s, beside which the job belongs", e.path, e.at)
		}
		c.new = at.ReplaceAll(c.old, []byte(e.with))
		if strings.HasSuffix(e.path, ".tf") {
			c.new = hclwrite.Format(c.new)
		}
		all = append(all, c)
	}
	return all, nil
}

// files returns the job's own files.
func (j job) files() (all []change, err error) {
	t, err := template.ParseFS(templates, "templates/*.tmpl")
	if err != nil {
		return nil, err
	}
	if t, err = t.ParseFS(templates, "templates/"+j.Kind+".tmpl"); err != nil { // its middle
		return nil, err
	}
	for _, name := range []string{
		"job.go", "provider.go", "table.go", "main.go", "job_test.go", "world_test.go", "part.tf",
	} {
		var b bytes.Buffer
		if err := t.ExecuteTemplate(&b, name+".tmpl", j); err != nil {
			return nil, err
		}
		c := change{path: j.Folder + "/" + name, new: b.Bytes()}
		switch {
		case name == "part.tf":
			c.path, c.new = j.part, hclwrite.Format(c.new)
		case len(bytes.TrimSpace(b.Bytes())) == 0: // a job of kind b has no provider
			continue
		default:
			if c.new, err = format.Source(c.new); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, b.String())
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// edit replaces what a pattern matches in a file of the project.
type edit struct{ path, at, with string }

func (j job) edits() []edit {
	variables, values := "", ""
	variable := func(name, description, rest string) {
		variables += fmt.Sprintf("\nvariable %q {\n  description = %q\n%s}\n", name, description, rest)
		values += fmt.Sprintf("  %s = var.%[1]s\n", name)
	}
	variable("create_"+j.Name, "Create the "+j.Name+" function with its queue, table and alarms.",
		"  type = bool\n  default = false\n  nullable = false\n")
	if !j.B {
		variable(j.Name+"_url", "Address of the provider of "+j.Name+". Required with create_"+j.Name+".",
			"  type = string\n  default = null\n")
	}
	row := fmt.Sprintf("| `%s_TABLE` | required | name of its table |\n", j.Upper)
	if !j.B {
		row += fmt.Sprintf("| `%s_URL` | required | address of its provider |\n", j.Upper)
	}
	return []edit{
		{
			j.module + "/functions.tf", `(?m)^ +order +(= local\.order(_environment|_statements)?)$`,
			"$0\n    " + j.Name + " = local." + j.Name + "$2",
		},
		{j.module + "/variables.tf", `\n\z`, "\n" + variables},
		{"infra/terraform/main.tf", `(?m)^  package_dir +=`, values + "$0"},
		{
			"docs/reference/configuration.md", `\n\z`,
			"\n\n## The " + j.Name + " function\n\n| name | | what |\n|---|---|---|\n" + row,
		},
	}
}

// write writes all changes or none.
func write(root string, changes []change) (err error) {
	var undo []func() error
	defer func() {
		for _, f := range undo {
			if err != nil {
				err = errors.Join(err, f())
			}
		}
	}()
	for _, c := range changes {
		path := filepath.Join(root, c.path)
		if c.old != nil {
			undo = append(undo, func() error { return os.WriteFile(path, c.old, 0o600) }) // it keeps its mode
		} else {
			undo = append(undo, func() error { return os.RemoveAll(path) })
			if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
				return err
			}
		}
		if err := os.WriteFile(path, c.new, 0o644); err != nil { //nolint:gosec // sources are for everybody
			return err
		}
	}
	return nil
}
