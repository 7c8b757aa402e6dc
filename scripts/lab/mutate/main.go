// Command mutate is `make mutate`: mutation testing with gremlins, which changes the code
// in one place, such as < to <=, runs the package's tests, and continues with the next
// place. A change that no test detects is a survivor: a test is missing, or the mutant is
// equivalent, and then survivors.txt says why.
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

const about = `Change the code in one place, run the tests of its package, and count the changes that no
test detects.

Each change is a mutant. It is killed if a test fails, lives if all pass, and times out if they do not
end. A package passes if its efficacy, killed / (killed + lived), is at least --want
percent, without the survivors that --survivors lists with a reason. A listed survivor that is killed
or gone is an error.

For a survivor, write the missing test; or, if the mutant is equivalent, copy the three printed lines
into the list and add the reason.

The tests run in a copy of the module, in which each package has one control mutant that must live and
one that must be killed. If they are not, the tests fail for another reason, or other tests were run,
and the figures are invalid. Mutants that do not compile are ignored. A test that fails on a busy
machine looks like a kill: run nothing else.

One package takes 5 to 20 minutes: make mutate PACKAGES=./domain/order`

type arguments struct {
	Packages  []string `arg:"" optional:"" help:"Folders of the product's module: ${packages}."`
	Gremlins  string   `required:"" placeholder:"MODULE@VERSION" help:"Module and version, as for go run. The Makefile pins it."`
	Want      float64  `default:"97" help:"Minimum efficacy of each package, in percent."`
	Survivors string   `default:"mutate/survivors.txt" help:"Known survivors, each with a reason."`
	Workers   int      `default:"1" help:"Concurrent mutants. More are faster, but time out more often."`
}

// packages returns the packages of the product.
func packages() []string {
	return []string{
		"./domain/order", "./adapters/internal/strictjson", "./adapters/sqs", "./adapters/sqs/orders",
		"./adapters/sqs/refunds", "./adapters/stripe", "./adapters/stripe/charge", "./adapters/stripe/refund",
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
	defer func() { _ = os.RemoveAll(dir) }() // a leftover in the temporary folder is harmless
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
