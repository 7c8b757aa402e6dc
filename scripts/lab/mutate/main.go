// Command mutate is `make mutate`: mutation testing with gremlins, which changes the code
// in one place, such as < to <=, runs the package's tests, and continues with the next
// place. A change that no test detects is a survivor: a test is missing.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/scripts/lab/guards"
	"orderonce/scripts/lab/progress"
)

const about = `Change the code in one place, run the tests of its package, and print the changes that no
test detects.

Each change is a mutant. It is killed if a test fails, lives if all pass, and times out if they do not
end. A package passes if its efficacy, killed / (killed + lived), is at least 97 percent. A mutant
that does not compile, such as - between two texts, counts as killed.

The tests run in a copy of the module, in which each package has one control mutant that must live and
one that must be killed. If they are not, the tests fail for another reason, or other tests were run,
and the figures are invalid. A test that fails on a busy machine looks like a kill: run nothing else.

One package takes 5 to 20 minutes: make mutate PACKAGES=./domain/order`

type arguments struct {
	Packages []string `arg:"" optional:"" help:"Folders of the product's module: ${packages}."`
	Gremlins string   `required:"" placeholder:"MODULE@VERSION" help:"Module and version, as for go run. The Makefile pins it."`
}

const least = 97

func packages() []string {
	return []string{
		"./domain/order", "./adapters/internal/strictjson", "./adapters/sqs", "./adapters/sqs/orders",
		"./adapters/sqs/intake", "./adapters/sqs/refunds", "./adapters/stripe", "./adapters/stripe/charge", "./adapters/stripe/refund",
		"./adapters/stripe/webhook", "./adapters/dynamodb", "./functions/order",
	}
}

func main() {
	var a arguments
	k := kong.Parse(&a, kong.Name("mutate"), kong.UsageOnError(), kong.Description(about),
		kong.Vars{"packages": strings.Join(packages(), " ")})
	if len(a.Packages) == 0 {
		a.Packages = packages()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := a.run(ctx, os.Stdout)
	stop()
	k.FatalIfErrorf(err)
}

func (a arguments) run(ctx context.Context, out io.Writer) error {
	root, err := guards.Root(ctx)
	if err != nil {
		return err
	}
	engine, err := dynamodbtest.Find(os.Getenv, root)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a leftover in the temporary folder is harmless
	module := filepath.Join(dir, "module")
	if err := copyModule(ctx, root, module); err != nil {
		return err
	}
	var failures []error
	for _, name := range a.Packages {
		pkg := filepath.ToSlash(filepath.Clean(name))
		r, err := a.mutate(ctx, module, pkg, engine)
		if err != nil {
			return errors.Join(append(failures, fmt.Errorf("mutate %s: %w", pkg, err))...)
		}
		_, _ = fmt.Fprintf(out, "%s: %d killed, %d lived, %d not covered, efficacy %.1f %%\n",
			pkg, r.Killed, r.Lived, r.NotCovered, r.efficacy())
		failures = append(failures, r.check(pkg))
	}
	return errors.Join(failures...)
}

// mutate tests every mutant of one package of the copy. A mutant times out after five
// times the duration of the tests.
func (a arguments) mutate(
	ctx context.Context, module, pkg string, engine dynamodbtest.Location,
) (report, error) {
	if err := prepare(module, pkg); err != nil {
		return report{}, err
	}
	path := filepath.Join(module, "mutants.json")
	cmd := exec.CommandContext( //nolint:gosec // G204: our own arguments
		ctx, "go", "run", a.Gremlins, "unleash", "--output", path, "--workers", "1", // more time out
		"--timeout-coefficient", "5", "--exclude-files", `[a-z]test/`, "--invert-logical", "--invert-loopctrl", "./"+pkg,
	)
	cmd.Dir, cmd.Env, cmd.Stderr = module, environ(os.Environ(), engine), os.Stderr
	printed, err := cmd.StdoutPipe()
	if err != nil {
		return report{}, err
	}
	if err := cmd.Start(); err != nil {
		return report{}, err
	}
	last := follow(pkg, printed, os.Stderr)
	if err := cmd.Wait(); err != nil {
		return report{}, fmt.Errorf("%w\n%s", err, last)
	}
	text, err := os.ReadFile(path) //nolint:gosec // G304: it was just written
	if err != nil {
		return report{}, err
	}
	return parseReport(text)
}

// environ disables go test's cache, whose short durations would also shorten the timeout,
// and enables every test. The engine is not one of gremlins' copies: gremlins keeps every
// file open that it wrote, and Linux does not execute a file that is open for writing.
func environ(environ []string, engine dynamodbtest.Location) []string {
	env := append(environ, "GOFLAGS=-count=1", "ORDERONCE_ALL=1")
	if engine.Binary != "" {
		folder, _ := filepath.Abs(filepath.Dir(engine.Binary)) // Find returns an absolute path, or one from PATH
		env = append(env, "PATH="+folder+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	return env
}

// follow prints the survivors and the progress, and returns the last line.
func follow(pkg string, printed io.Reader, out io.Writer) (last string) {
	lines := bufio.NewScanner(printed)
	done, printLine := 0, progress.Every(30*time.Second, out, time.Now)
	for lines.Scan() {
		last = strings.TrimSpace(lines.Text())
		switch status, _, _ := strings.Cut(last, " "); status {
		case "LIVED", "TIMED":
			done++
			if !strings.Contains(last, control) {
				_, _ = fmt.Fprintf(out, "%s: %s\n", pkg, last)
			}
		case "KILLED":
			done++
		}
		printLine("%s: %d mutants tested", pkg, done)
	}
	return last
}

// report is the JSON report of gremlins, without the control mutants.
type report struct {
	Killed     int `json:"mutants_killed"`
	Lived      int `json:"mutants_lived"`
	NotCovered int `json:"mutants_not_covered"`
	Files      []struct {
		Name      string `json:"file_name"`
		Mutations []struct {
			Status string `json:"status"`
			Line   int    `json:"line"`
		} `json:"mutations"`
	} `json:"files"`

	controls []string // their statuses
}

func parseReport(text []byte) (report, error) {
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("parse gremlins report: %w", err)
	}
	for _, f := range r.Files {
		if filepath.Base(f.Name) == control {
			for _, m := range f.Mutations {
				r.controls = append(r.controls, fmt.Sprintf("line %d %s", m.Line, m.Status))
			}
			r.Killed, r.Lived = r.Killed-1, r.Lived-1
		}
	}
	return r, nil
}

// efficacy returns the percentage of killed mutants among those that were killed or
// lived, as gremlins counts. A mutant that timed out has an endless loop, waits for
// something that never comes, or had a busy machine: it counts neither way.
func (r report) efficacy() float64 {
	return 100 * float64(r.Killed) / float64(max(1, r.Killed+r.Lived))
}

// check returns an error if the figures are invalid or too low.
func (r report) check(pkg string) error {
	slices.Sort(r.controls)
	if !slices.Equal(r.controls, []string{"line 3 LIVED", "line 5 KILLED"}) {
		return fmt.Errorf("%s: control mutants are %q, want line 3 LIVED and line 5 KILLED: the tests fail for "+
			"another reason, or other tests were run; the figures are invalid", pkg, r.controls)
	}
	if got := r.efficacy(); got < least {
		return fmt.Errorf("%s: efficacy %.1f %%, want at least %d %%", pkg, got, least)
	}
	return nil
}
