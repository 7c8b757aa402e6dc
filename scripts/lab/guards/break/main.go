// Command break is `make break`. It removes one guard of the product and runs the test
// that catches it: mostly the simulation, which prints the shortest history that breaks
// an invariant. What the simulation cannot see, such as a panic or a condition of a
// DynamoDB expression, is caught by the test that the patch names, and its message is
// printed. The patch is applied to copies, which `go test -overlay` compiles; the tree
// does not change.
//
// It fails if nothing breaks without the guard, or another invariant than the patch says:
// then the guard or its patch is out of date.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/alecthomas/kong"
	"github.com/jedib0t/go-pretty/v6/table"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/lab/chart"
	"orderonce/scripts/lab/guards"
)

func main() {
	var c struct {
		Guard  string `arg:"" optional:"" help:"The guard to remove; without it, all guards are listed."`
		Update bool   `help:"Write into the patch, or into all, the faults that its history needs."`
		Out    string `placeholder:"FILE" help:"Compile functions/order without the guard into this absolute path, and run no test."`
	}
	k := kong.Parse(&c, kong.Name("break"), kong.UsageOnError(), kong.Description(
		"Remove one guard of the product, and print the history that breaks an invariant."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if c.Out != "" {
		err = compile(ctx, c.Guard, c.Out)
	} else {
		err = run(ctx, os.Stdout, c.Guard, c.Update)
	}
	stop()
	k.FatalIfErrorf(err)
}

func run(ctx context.Context, out io.Writer, name string, write bool) error {
	root, err := guards.Root(ctx)
	if err != nil {
		return err
	}
	all, err := guards.All(root)
	switch {
	case err != nil:
		return err
	case write:
		return update(ctx, out, root, name, all)
	case name == "":
		return list(out, all)
	}
	g, err := guards.Find(root, name)
	if err != nil {
		return err
	}
	return show(ctx, out, root, g)
}

var errRelative = errors.New("not an absolute path; go -C changes the folder")

// compile compiles functions/order without a guard, for the page of `make up`, which
// deploys it.
func compile(ctx context.Context, name, out string) error {
	if !filepath.IsAbs(out) {
		return fmt.Errorf("%q: %w", out, errRelative)
	}
	root, err := guards.Root(ctx)
	if err != nil {
		return err
	}
	g, err := guards.Find(root, name)
	if err != nil {
		return err
	}
	err = g.Without(root, func(overlay string) error {
		return lambdatest.Program{Package: "./functions/order", Root: root, Overlay: overlay}.Build(ctx, out)
	})
	if err != nil {
		return fmt.Errorf("without guard %s: %w; make break GUARD=%s shows whether it has changed", name, err, name)
	}
	return nil
}

// update writes the faults that the histories need into the patches.
func update(ctx context.Context, out io.Writer, root, name string, all []guards.Guard) error {
	for _, g := range all {
		if !g.Catcher.IsSimulation() || name != "" && name != g.Name {
			continue
		}
		_, err := runCatcher(ctx, root, g)
		needs, differs := errors.AsType[*needsError](err)
		switch {
		case differs:
			if err := g.Update(needs.got); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(out, "%s needs %s\n", g.Name, needs.got)
		case err != nil:
			_, _ = fmt.Fprintf(out, "%s: %v\n", g.Name, err)
		}
	}
	return nil
}

func list(out io.Writer, all []guards.Guard) error {
	t := chart.Table("guard", "breaks", "caught in", "what is removed")
	for _, g := range all {
		t.AppendRow(table.Row{g.Name, g.Invariant, g.Catcher.Pkg, g.Summary})
	}
	const more = "make break GUARD=bind removes one. The invariants are in docs/design.md."
	_, err := fmt.Fprintf(out, "%s\n\n%d guards. %s\n", t.Render(), len(all), more)
	return err
}

func show(ctx context.Context, out io.Writer, root string, g guards.Guard) error {
	if _, err := fmt.Fprintf(out, "Without %s: %s\n\n%s\n", g.Name, g.Summary, g.Changes()); err != nil {
		return err
	}
	history, err := runCatcher(ctx, root, g)
	if err == nil {
		history += fmt.Sprintf(
			"\nCaught: %s is broken, as expected. The patch was applied to copies only.\n", g.Invariant,
		)
	}
	_, writeErr := io.WriteString(out, history)
	return errors.Join(err, writeErr)
}
