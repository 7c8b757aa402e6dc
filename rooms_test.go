package orderonce_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// room is a part of the repository that has to fit into a reader's head.
type room struct {
	name    string
	folders string // separated by spaces
	count   func(t *testing.T, folders []string) int
	start   int // lines at 663aa48, before the redesign
	ceiling int // above it the test fails: the budget, or above that the lines of the day, in fifties
	budget  int // to raise it needs a paragraph in docs/decisions.md
}

func rooms() []room {
	return []room{
		{"domain/order, with settle and outbox", "domain/order domain/settle domain/outbox", product, 2489, 2970, 1900},
		{"domain/refund", "domain/refund", product, 1093, 1210, 760},
		{"domain/receipt, intake", "domain/receipt domain/intake", product, 998, 1000, 810},
		{"adapters/dynamodb", "adapters/dynamodb", product, 2025, 1520, 900},
		{"adapters/stripe", "adapters/stripe", product, 2289, 1820, 1800},
		{"adapters/sqs", "adapters/sqs adapters/internal", product, 1903, 1980, 1400},
		{"adapters/eventbridge, ses", "adapters/eventbridge adapters/ses", product, 492, 480, 420},
		{"adapters/httpapi, apigateway", "adapters/httpapi adapters/apigateway", product, 553, 540, 480},
		{"adapters/config, lambda, secretsmanager", "adapters/config adapters/lambda adapters/secretsmanager", product, 731, 670, 620},
		{"functions", "functions", product, 1185, 1260, 950},
		{"**the heart**: all above", "domain adapters functions", product, 13758, 13430, 10400},
		{"the spine: what the [tour](../tour.md) opens", "docs/tour.md", spine, 3270, 3020, 2450},
		{"doubles and contract suites", "domain adapters", doubles, 15289, 11720, 9000},
		{"scripts/lab, with patches", "scripts/lab", lab, 19038, 17120, 12500},
		{"scripts/orders, local, console", "scripts/orders scripts/local", product, 14894, 18400, 11500},
		{"scripts/conform, with its tests", "scripts/conform", everyGo, 0, 4560, 4560},
		{"**everything tracked**", ".", tracked, 146032, 137950, 95000},
	}
}

const roomsPage = "docs/reference/rooms.md"

// Each room may shrink, and none may outgrow its ceiling.
func TestEachRoomKeepsItsBudget(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString(`# Rooms

How many lines each part may have. Counted are the lines of Go without tests, comments included; of a double those of its
package, of the lab also the planted bugs, and of everything tracked the lines of every file without pictures and
package-lock.json. A room above its budget may only shrink: its ceiling is what it had when the table was written, and falls
with it. ` + "`go test -run TestEachRoomKeepsItsBudget -v .`" + ` prints today's lines. A budget is raised with a paragraph in
[decisions.md](../decisions.md) only. A test holds this page; UPDATE_PAGES=1 writes it anew.

| room | folders | before | ceiling | budget |
|---|---|---:|---:|---:|
`)
	for _, r := range rooms() {
		folders := strings.Fields(r.folders)
		lines := r.count(t, folders)
		fmt.Fprintf(&page, "| %s | %s | %d | %d | %d |\n", r.name, strings.Join(folders, ", "), r.start, r.ceiling, r.budget)
		t.Logf("%-50s %6d lines, %+d to the budget of %d", r.name, lines, lines-r.budget, r.budget)
		if r.ceiling < r.budget {
			t.Errorf("%s: ceiling %d is below the budget of %d", r.name, r.ceiling, r.budget)
		}
		if lines > r.ceiling {
			t.Errorf("%s: %d lines, want at most %d: remove as much as was added", r.name, lines, r.ceiling)
		}
	}
	if os.Getenv("UPDATE_PAGES") != "" { //nolint:forbidigo // a test has no composition root
		if err := os.WriteFile(roomsPage, []byte(page.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(read(t, roomsPage), page.String()); diff != "" {
		t.Errorf("%s (-page +code); write it anew with UPDATE_PAGES=1:\n%s", roomsPage, diff)
	}
}

func TestTheHeartHasNoRoomThatIsNotCounted(t *testing.T) {
	t.Parallel()
	sum, heart := 0, 0
	for _, r := range rooms() {
		if strings.HasPrefix(r.name, "**the heart**") {
			heart = r.count(t, strings.Fields(r.folders))
			break
		}
		sum += r.count(t, strings.Fields(r.folders))
	}
	if sum != heart {
		t.Errorf("the rooms have %d lines, and the heart %d: a folder has no room, or two", sum, heart)
	}
}

// isDouble reports whether a folder is that of a test double or a contract suite.
func isDouble(path string) bool { return regexp.MustCompile(`/[a-z]+test/`).MatchString(path) }

func product(t *testing.T, folders []string) int {
	t.Helper()
	return count(t, folders, func(path string) bool {
		return isProgram(path) && (!isDouble(path) || strings.HasPrefix(path, "scripts/"))
	})
}

func doubles(t *testing.T, folders []string) int {
	t.Helper()
	return count(t, folders, func(path string) bool { return isProgram(path) && isDouble(path) })
}

func lab(t *testing.T, folders []string) int {
	t.Helper()
	return count(t, folders, func(path string) bool { return isProgram(path) || strings.HasSuffix(path, ".patch") })
}

func everyGo(t *testing.T, folders []string) int {
	t.Helper()
	return count(t, folders, func(path string) bool { return strings.HasSuffix(path, ".go") })
}

func isProgram(path string) bool {
	return strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
}

// count returns the lines of the files below the folders that are counted.
func count(t *testing.T, folders []string, counted func(path string) bool) (n int) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "node_modules" {
				return fs.SkipDir
			}
			if err == nil && !d.IsDir() && counted(filepath.ToSlash(path)) {
				n += lines(t, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// spine counts the files that the numbered sections of the tour open: one order, from
// event to answer.
func spine(t *testing.T, pages []string) (n int) {
	t.Helper()
	numbered, _, _ := strings.Cut(read(t, pages[0]), "\n## A refund")
	for _, match := range regexp.MustCompile(`\*\*\[[^]]+\]\(\.\./([^)]+\.go)\)\*\*`).FindAllStringSubmatch(numbered, -1) {
		n += lines(t, match[1])
	}
	return n
}

// tracked counts every file that git tracks, or 0 in an archive, which has no git.
func tracked(t *testing.T, _ []string) (n int) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "-z").Output()
	if err != nil {
		t.Logf("git ls-files: %v", err)
	}
	for file := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if file != "" && filepath.Base(file) != "package-lock.json" {
			n += lines(t, file)
		}
	}
	return n
}

// lines returns the lines of a file, or 0 of a picture, a link and a file that was
// removed.
func lines(t *testing.T, path string) int {
	t.Helper()
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return 0 // its target is counted
	}
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return 0
	}
	return bytes.Count(text, []byte("\n"))
}
