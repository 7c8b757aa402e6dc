// Package orderonce_test checks what no single package can see: who imports whom, and
// that the documents say what the code does.
package orderonce_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/refund"
)

func TestTheDomainDependsOnTheStandardLibraryAlone(t *testing.T) {
	t.Parallel()
	for _, path := range list(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}",
		"./domain/order/ordertest", "./domain/settle", "./domain/outbox", "./domain/intake/intaketest") {
		if !strings.HasPrefix(path, lambdatest.Module()+"/domain/") {
			t.Errorf("the domain depends on %s", path)
		}
	}
}

// What people run, and what proves and measures, has modules of its own below scripts.
func TestTheModuleRequiresWhatTheProductNeedsAndNothingElse(t *testing.T) {
	t.Parallel()
	var got []string
	for line := range strings.Lines(read(t, "go.mod")) {
		if path, version, ok := strings.Cut(strings.TrimSpace(line), " v"); ok && !strings.Contains(version, "// indirect") {
			got = append(got, path)
		}
	}
	want := []string{
		"github.com/aws/aws-lambda-go", "github.com/aws/aws-sdk-go-v2",
		"github.com/aws/aws-sdk-go-v2/service/dynamodb", "github.com/aws/aws-sdk-go-v2/service/eventbridge",
		"github.com/aws/aws-sdk-go-v2/service/secretsmanager", "github.com/aws/aws-sdk-go-v2/service/sesv2",
		"github.com/aws/aws-sdk-go-v2/service/sqs", "github.com/aws/smithy-go", "github.com/caarlos0/env/v11",
		"github.com/go-json-experiment/json", "github.com/go-playground/validator/v10", "github.com/stripe/stripe-go/v76",
		"github.com/google/go-cmp", "pgregory.net/rapid", // of its tests
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("direct requirements (-go.mod +product):\n%s", diff)
	}
}

func TestNoAdapterDependsOnAnother(t *testing.T) {
	t.Parallel()
	below := func(folder, path string) (name string, ok bool) {
		rest, ok := strings.CutPrefix(path, lambdatest.Module()+"/"+folder+"/")
		name, _, _ = strings.Cut(rest, "/")
		return name, ok
	}
	for _, pair := range list(t, "-f", "{{$own := .ImportPath}}{{range .Deps}}{{$own}}>{{.}} {{end}}", "./adapters/...") {
		pkg, path, _ := strings.Cut(pair, ">")
		own, _ := below("adapters", pkg)
		adapter, isAdapter := below("adapters", path)
		_, isFunction := below("functions", path)
		_, isScript := below("scripts", path)
		if isAdapter && adapter != own && adapter != "internal" || isFunction || isScript {
			t.Errorf("%s depends on %s", pkg, path)
		}
	}
}

func TestNothingDeployedDependsOnADoubleOrOnTesting(t *testing.T) {
	t.Parallel()
	functions := []string{"-deps"}
	for name := range maxClosure() {
		functions = append(functions, "./functions/"+name)
	}
	for _, path := range list(t, functions...) {
		folder, ours := strings.CutPrefix(path, lambdatest.Module()+"/")
		double := ours && strings.HasSuffix(folder, "test")
		if path == "testing" || ours && strings.HasPrefix(folder, "scripts") || double {
			t.Errorf("a function depends on %s", path)
		}
	}
}

// maxClosure is how many lines of this module a function links, without tests. The aim
// is 6,000 for order and 6,500 for each other. A figure above that is what is reached.
func maxClosure() map[string]int {
	return map[string]int{
		"order": 7_000, "refund": 8_510, "receipt": 8_180, "intake": 6_840, "webhook": 8_070, "reconcile": 7_740,
		"publish": 4_900,
	}
}

// Whoever wants one effect takes its function, and what that links, and no other effect.
func TestEachFunctionLinksWhatItsEffectNeeds(t *testing.T) {
	t.Parallel()
	got := map[string]bool{}
	for _, path := range list(t, "-f", "{{.ImportPath}}", "./functions/...") {
		function, isFunction := strings.CutPrefix(path, lambdatest.Module()+"/functions/")
		if !isFunction || strings.HasPrefix(function, "internal/") {
			continue
		}
		got[function] = true
		lines := 0
		for _, file := range list(t, "-deps", "-f", "{{$dir := .Dir}}{{if .Module}}{{if .Module.Main}}"+
			"{{range .GoFiles}}{{$dir}}/{{.}} {{end}}{{end}}{{end}}", path) {
			lines += strings.Count(read(t, file), "\n")
			for _, other := range []string{
				"/domain/settle/", "/domain/outbox/", "/domain/refund/", "/domain/receipt/", "/domain/intake/",
				"/dynamodb/stream/", "/sqs/refunds/", "/sqs/intake/",
				"/stripe/refund/", "/stripe/dispute/", "/stripe/payer/", "/stripe/webhook/",
				"/adapters/ses/", "/adapters/eventbridge/", "/adapters/httpapi/", "/adapters/apigateway/",
			} {
				if function == "order" && strings.Contains(file, other) {
					t.Errorf("functions/order links %s", file)
				}
			}
			if function == "refund" && (strings.Contains(file, "/sqs/orders/") || strings.Contains(file, "/stripe/charge/")) {
				t.Errorf("functions/refund links %s, which charges", file)
			}
		}
		most, known := maxClosure()[function]
		if !known { // a job of your own
			most = 6_500
		}
		if lines > most {
			t.Errorf("functions/%s links %d lines of this module, want at most %d", function, lines, most)
		}
	}
	for function := range maxClosure() {
		if !got[function] {
			t.Errorf("no functions/%s", function)
		}
	}
}

// opened is set once the sources were opened.
var opened sync.Once //nolint:gochecknoglobals // once for every test

// list runs go list and returns its lines.
func list(t *testing.T, args ...string) []string {
	t.Helper()
	opened.Do(
		func() { // so that go test runs this again when a source changes: what go list reads, go test does not see
			if err := lambdatest.OpenSources(t.Context(), "..."); err != nil {
				t.Fatal(err)
			}
		},
	)
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %s: %v", strings.Join(args, " "), err)
	}
	return strings.Fields(string(out))
}

func TestEveryReasonHasARowInTheDocuments(t *testing.T) {
	t.Parallel()
	var want []string
	for _, r := range slices.Concat(order.Reasons(), sqs.Reasons(), refund.Reasons(), receipt.Reasons()) {
		want = append(want, string(r))
	}
	same(t, firstColumn(read(t, "docs/reference/failures.md")), want)
}

func TestEveryVariableHasARowInTheDocuments(t *testing.T) {
	t.Parallel()
	var want []string
	files, err := filepath.Glob("functions/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	shared, err := filepath.Glob("functions/internal/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range slices.Concat(files, shared, []string{"adapters/config/aws.go"}) {
		for _, match := range regexp.MustCompile(`env:"([A-Z0-9_]+)`).FindAllStringSubmatch(read(t, file), -1) {
			if !slices.Contains(
				[]string{"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}, match[1],
			) {
				want = append(want, match[1])
			}
		}
	}
	var got []string
	for _, name := range firstColumn(read(t, "docs/reference/configuration.md")) {
		if strings.HasPrefix(name, "_") {
			name = "AWS_ENDPOINT_URL" + name
		}
		got = append(got, name)
	}
	slices.Sort(want)
	same(t, got, slices.Compact(want))
}

func TestEveryLogKeyHasARowInTheDocuments(t *testing.T) {
	t.Parallel()
	_, code, _ := strings.Cut(read(t, "adapters/sqs/report.go"), ") logRecord(")
	tasks, err := filepath.Glob("adapters/sqs/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range tasks {
		code += read(t, file)
	}
	var want []string
	for _, match := range regexp.MustCompile(`slog\.\w+\("(\w+)"`).FindAllStringSubmatch(code, -1) {
		want = append(want, match[1])
	}
	logs, _, _ := strings.Cut(read(t, "docs/reference/metrics.md"), "## Metrics")
	same(t, firstColumn(logs), want)
}

func TestEveryLinkInTheDocumentsLeadsSomewhere(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t, ".") {
		for _, target := range linked(t, page) {
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link to %s: %v", page, target, err)
			}
		}
	}
}

// A page is in the list by reader, or one that is links to it.
func TestEachPageIsFoundByItsReader(t *testing.T) {
	t.Parallel()
	found := append(linked(t, "docs/README.md"), "docs/README.md")
	for _, page := range slices.Clone(found) {
		if filepath.Ext(page) == ".md" {
			found = append(found, linked(t, page)...)
		}
	}
	for _, page := range pages(t, "docs") {
		if !slices.Contains(found, page) {
			t.Errorf("docs/README.md does not list %s, nor does a page that it lists link to it", page)
		}
	}
}

func TestTheRulesNameTestsAndTargetsThatExist(t *testing.T) {
	t.Parallel()
	rules, makefile, tests := read(t, "AGENTS.md"), read(t, "Makefile"), map[string]bool{}
	for _, file := range sources(t) {
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(read(t, file), -1) {
			tests[match[1]] = true
		}
	}
	for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(rules, -1) {
		if !tests[name] {
			t.Errorf("AGENTS.md: no test is called %s", name)
		}
	}
	for _, match := range regexp.MustCompile("`make ([a-z -]+)`").FindAllStringSubmatch(rules, -1) {
		for target := range strings.FieldsSeq(match[1]) {
			if !strings.Contains(makefile, "\n"+target+": ") {
				t.Errorf("AGENTS.md: no target is called %s", target)
			}
		}
	}
}

// pages returns the Markdown files below a folder.
func pages(t *testing.T, root string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains([]string{"node_modules", ".git", "build"}, d.Name()) {
			return fs.SkipDir
		}
		if err == nil && filepath.Ext(path) == ".md" {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// linked returns the files that a page links to.
func linked(t *testing.T, page string) (files []string) {
	t.Helper()
	code := regexp.MustCompile("(?s)```.*?```") // such as f[T](x)
	links := regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)
	for _, match := range links.FindAllStringSubmatch(code.ReplaceAllString(read(t, page), ""), -1) {
		if !strings.Contains(match[1], "://") {
			files = append(files, filepath.Join(filepath.Dir(page), match[1]))
		}
	}
	return files
}

func TestTheREADMEIsShort(t *testing.T) {
	t.Parallel()
	if n := strings.Count(read(t, "README.md"), "\n"); n > 130 {
		t.Errorf("README.md has %d lines, want at most 130", n)
	}
}

// firstColumn returns what is in backquotes in the first column of a document's
// tables.
func firstColumn(document string) []string {
	var names []string
	for line := range strings.Lines(document) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
				names = append(names, match[1])
			}
		}
	}
	return names
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("- in the document, + in the code:\n%s", diff)
	}
}

// Wider comments do not fit beside a diff. An address and the output of an example stay
// on one line.
func TestCommentsWrapAtNinetyColumns(t *testing.T) {
	t.Parallel()
	const widest = 90
	for _, file := range sources(t) {
		output := false
		for n, line := range strings.Split(read(t, file), "\n") {
			text, comment := strings.CutPrefix(strings.TrimLeft(line, "\t"), "// ")
			output = comment && (output || strings.HasSuffix(text, "Output:"))
			if comment && !output && utf8.RuneCountInString(line) > widest && !strings.Contains(text, "://") {
				t.Errorf("%s:%d: comment of %d columns, want at most %d", file, n+1, utf8.RuneCountInString(line), widest)
			}
		}
	}
}

// Whoever adopts the code renames the module and its imports. A path in another place
// would stay behind: use lambdatest.Module.
func TestTheModulesPathIsWrittenInImportsAlone(t *testing.T) {
	t.Parallel()
	path := `["` + "`]" + regexp.QuoteMeta(lambdatest.Module()) + `/`
	written, imported := regexp.MustCompile(path), regexp.MustCompile(`^(import )?\s*([\w.]+ )?`+path+`[^"]*"( //.*)?$`)
	for _, file := range sources(t) {
		for n, line := range strings.Split(read(t, file), "\n") {
			if written.MatchString(line) && !imported.MatchString(line) {
				t.Errorf("%s:%d: the module's path outside of an import: %s", file, n+1, line)
			}
		}
	}
}

// sources returns every Go file of the three modules.
func sources(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"adapters", "domain", "examples", "functions", "scripts"} {
		err := fs.WalkDir(os.DirFS(folder), ".", func(path string, d fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".go" && !d.IsDir() {
				files = append(files, filepath.Join(folder, path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}
