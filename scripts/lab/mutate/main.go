// Command mutate is `make mutate`: mutation testing. It has gremlins change the code of a
// package in one place, such as < to <=, and run the package's tests, for one place after
// the other. A change that no test notices is a survivor: either a test is missing, or
// the change makes no difference, and then survivors.txt says why.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/scripts/lab/guards"
)

const about = `Change the code in one place, run the tests of its package, and count the
changes that no test notices.

Each change is a mutant: it is killed if a test fails, lives if all pass, and times out if they do
not end. A package passes when its efficacy, killed / (killed + lived + timed out), is at least
--want percent, without the survivors that --survivors lists with a reason. A listed survivor that
is killed or gone is an error too, so that the list stays true.

A survivor is either a missing test or a change that makes no difference. Write the test, or copy
the three lines that are printed into the list and say why.

The tests run in a copy of the module. There each package has a mutant that nothing kills and one
that a test kills: where it is otherwise, the tests fail for another reason, or others were run, and
no figure counts. Changes that do not compile are left out. A test that fails for a busy machine
looks like a kill: let nothing else run.

One package takes 5 to 20 minutes: make mutate PACKAGES=./domain/order runs one
alone.`

type arguments struct {
	Packages  []string `arg:"" optional:"" help:"Folders of the product's module, without their doubles: ${packages}."`
	Gremlins  string   `required:"" placeholder:"MODULE@VERSION" help:"As go run takes it. The Makefile pins it."`
	Want      float64  `default:"97" help:"The least efficacy of each package, in percent."`
	Survivors string   `default:"mutate/survivors.txt" help:"The known survivors, each with a reason."`
	Workers   int      `default:"1" help:"Mutants at the same time. More are faster, and time out sooner."`
}

// packages are those whose tests have to notice every change: the product, without what
// it is proved with.
func packages() []string {
	return []string{
		"./domain/order",
		"./adapters/sqs",
		"./adapters/stripe",
		"./adapters/dynamodb",
		"./functions/order",
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
	text, err := os.ReadFile(filepath.Clean(a.Survivors))
	if err != nil {
		return err
	}
	known, err := parseSurvivors(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", a.Survivors, err)
	}
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
	defer func() { _ = os.RemoveAll(dir) }() // what is left of it is the system's to clean
	r := runner{
		gremlins: a.Gremlins,
		workers:  a.Workers,
		dir:      filepath.Join(dir, "module"),
		engine:   engine,
		out:      os.Stderr,
	}
	if err := copyModule(root, r.dir); err != nil {
		return err
	}
	var results []result
	for _, pkg := range a.Packages {
		mutants, err := r.mutate(ctx, filepath.ToSlash(filepath.Clean(pkg)))
		if err != nil {
			return errors.Join(err, show(out, results))
		}
		results = append(results, judge(filepath.ToSlash(filepath.Clean(pkg)), mutants, known))
	}
	return errors.Join(show(out, results), verdict(results, a.Want))
}
