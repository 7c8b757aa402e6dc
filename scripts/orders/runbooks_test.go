package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"orderonce/scripts/local/incidents"
	"orderonce/scripts/local/system/systemtest"
)

// runbooksPage has a runbook under each heading with a number. TestEveryRunbook runs its
// console blocks. Write their output anew with UPDATE_SESSIONS=1.
const runbooksPage = "../../" + incidents.Page

// TestEveryRunbook puts the local system, which runs the compiled function, into the
// situation of each runbook of the page, runs the commands of the runbook, compares what
// they print, and audits the books afterwards.
func TestEveryRunbook(t *testing.T) {
	t.Parallel()
	kit := systemtest.New(t)
	text, err := os.ReadFile(runbooksPage)
	must(t, err)
	runbooks := map[string]incidents.Runbook{}
	for _, b := range incidents.Runbooks() {
		runbooks[b.Title] = b
	}
	sections := strings.Split(string(text), "\n## ")
	for n, section := range sections {
		title, _, _ := strings.Cut(section, "\n")
		book, found := runbooks[title]
		if !found {
			continue
		}
		delete(runbooks, title)
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			sections[n] = works(t, kit, book, section)
		})
	}
	for title := range runbooks {
		t.Errorf("%s: no heading %q", runbooksPage, title)
	}
	t.Cleanup(func() { // after the parallel subtests
		if os.Getenv("UPDATE_SESSIONS") != "" && !t.Failed() {
			must(t, os.WriteFile(runbooksPage, []byte(strings.Join(sections, "\n## ")), 0o600))
		}
	})
}

// TestEveryIncidentOfOperate works the incidents that have no runbook.
func TestEveryIncidentOfOperate(t *testing.T) {
	t.Parallel()
	kit := systemtest.New(t)
	ways := map[string]struct{ event, line, typed string }{
		"webhooks": {event: "the right secret is stored, and events are resent"},
		"events":   {"EventBridge accepts events again", "republish --since 26h", "republish\n"},
	}
	for _, b := range incidents.Others() {
		t.Run(b.Title, func(t *testing.T) {
			t.Parallel()
			i, folder := begin(t, kit, b), t.TempDir()
			if left := audited(t, i); len(left) == 0 {
				t.Error("nothing is wrong at the beginning")
			}
			name, _ := b.Name()
			must(t, i.Happen(ways[name].event))
			if way := ways[name]; way.line != "" {
				t.Log(enters(t, i, folder, command{line: way.line, typed: way.typed}))
			}
			for _, broken := range audited(t, i) {
				t.Error(broken)
			}
		})
	}
}

// The audit leaves out only the refund of the other system's payment.
func TestTheAuditOfADrillKeepsTheRefundsOfItsOwnCharge(t *testing.T) {
	t.Parallel()
	i := begin(t, systemtest.New(t), incidents.Runbooks()[3])
	must(t, i.Happen("the other payment is refunded in the Dashboard"))
	printed := enters(t, i, t.TempDir(), command{line: "refund ORD-4004 --all --reason duplicate --yes"})
	if part := missingPart(printed, "WARNING: 24.00 USD of pi_000006, \nsucceeded, re_000003"); part != "" {
		t.Errorf("printed\n%s\nwant %q in it", printed, part)
	}
	for _, broken := range audited(t, i) {
		if strings.Contains(broken, "ORD-4004") && !strings.HasPrefix(broken, "end ") {
			t.Error(broken)
		}
	}
}

// works runs the commands and events of a runbook, and returns the section with what the
// commands printed.
func works(t *testing.T, kit systemtest.Kit, b incidents.Runbook, section string) string {
	t.Helper()
	i, folder := begin(t, kit, b), t.TempDir()
	r := newRecorder(i.System)
	parts := regexp.MustCompile("(?ms)^ *```console\\n.*?```$|<!-- .*? -->")
	got := parts.ReplaceAllStringFunc(section, func(part string) string {
		if name, is := strings.CutPrefix(part, "<!-- "); is {
			must(t, i.Happen(strings.TrimSuffix(name, " -->")))
			return part
		}
		return r.block(part, func(c command) string { return enters(t, i, folder, c) })
	})
	for _, e := range i.CanHappen() {
		if !e.Happened && e.Name != incidents.Stopped {
			t.Errorf("the runbook does not say where this happens: %s", e.Name)
		}
	}
	if diff := gocmp.Diff(got, section); diff != "" && os.Getenv("UPDATE_SESSIONS") == "" {
		t.Errorf("%s (-got +want):\n%s", runbooksPage, diff)
	}
	for _, broken := range audited(t, i) {
		t.Error(broken)
	}
	return got
}

// begin makes an incident happen.
func begin(t *testing.T, kit systemtest.Kit, b incidents.Runbook) *incidents.Incident {
	t.Helper()
	folder := t.TempDir()
	here, err := os.Getwd()
	must(t, err)
	i, err := b.Start(t.Context(), incidents.Setup{
		Root: "../..", Folder: folder, Patience: 5 * time.Minute, Engine: kit.Engine,
		Build: func(function string) (string, error) { // a relative path, as that of make drill
			return filepath.Rel(here, kit.Build(t, "functions/"+function))
		},
		Operate: func(i *incidents.Incident, line string) error {
			enters(t, i, folder, command{line: line})
			return nil
		},
	})
	must(t, err)
	t.Cleanup(func() { must(t, i.Close()) })
	return i
}

// audited returns what is wrong with an incident's system.
func audited(t *testing.T, i *incidents.Incident) (all []string) {
	t.Helper()
	results, err := i.Audit()
	must(t, err)
	for _, c := range results {
		for _, broken := range c.Broken {
			all = append(all, fmt.Sprintf("%s (%s): %s", c.ID, c.Claim, broken))
		}
	}
	return all
}

// enters runs one command at a terminal, in a folder for the files that it writes. A page
// names files from the root.
func enters(t *testing.T, i *incidents.Incident, folder string, c command) string {
	t.Helper()
	environ := i.OperatorEnv()
	for _, v := range environ {
		if value, is := strings.CutPrefix(v, c.like+"="); is && c.variable != "" {
			environ = append(environ, c.variable+"="+value)
		}
	}
	sh := testShell(environ)
	sh.Terminal, sh.Now = true, time.Now
	line := strings.NewReplacer("--save ", "--save "+folder+"/", " scripts/orders/", " ").Replace(c.line)
	printed, _ := runs(t.Context(), t, sh, line, c.typed)
	must(t, i.Settle())
	return printed
}

// TestThePagesQuoteWhatTheProgramsPrint compares the log lines, errors and statuses that
// the pages for operators quote with the texts of the sources. A phrase that begins with
// a command is not one of them.
func TestThePagesQuoteWhatTheProgramsPrint(t *testing.T) {
	t.Parallel()
	var sources strings.Builder
	must(t, fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err == nil && d.Name() == "node_modules", err == nil && name == "build":
			return fs.SkipDir
		case err != nil, !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return err
		}
		text, err := os.ReadFile(filepath.Join("../..", name))
		sources.Write(text)
		return err
	}))
	found := 0
	for _, page := range []string{runbooksPage, "../../docs/guides/operate.md"} {
		text, err := os.ReadFile(page)
		must(t, err)
		prose := regexp.MustCompile("(?ms)^ *```.*?^ *```").ReplaceAllString(string(text), "")
		commands := regexp.MustCompile(`^(audit|aws|make|orders|redrive|discard|terraform) `)
		for _, m := range regexp.MustCompile("`([a-z]+( [a-z-]+)+)`").FindAllStringSubmatch(prose, -1) {
			phrase := strings.TrimPrefix(m[1], "refund ") // of a mismatch: refund and the field
			if commands.MatchString(phrase) {
				continue
			}
			if found++; !strings.Contains(sources.String(), phrase) {
				t.Errorf("%s quotes %q, which no program prints", page, m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d quotes, want more", found)
	}
}
