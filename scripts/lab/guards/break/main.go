// Command break takes one guard of the product away, lets package prove search for what
// that costs, and prints the history of the broken promise. What no small world can see,
// such as a panic that takes a batch along or a condition inside a DynamoDB expression,
// is left to the test that the patch names, and its message is printed. The product knows
// nothing of it: a guard is a patch, applied to copies and put over the module by `go
// test -overlay`. Nothing in the tree changes.
//
// It fails if nothing was broken without the guard, or another promise than the patch
// says: then either the guard or its patch is out of date.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"orderonce/scripts/lab/guards"
)

func main() {
	var c struct {
		Guard  string `arg:"" optional:"" help:"The guard to take away; none lists them all."`
		Update bool   `help:"Write into the patch, or into all of them, which kinds of trouble the story needs."`
	}
	k := kong.Parse(&c, kong.Name("break"), kong.UsageOnError(), kong.Description(
		"Take one guard against double charges (or worse) away, and see the history of what happens then."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, c.Guard, c.Update)
	stop()
	k.FatalIfErrorf(err)
}

func run(ctx context.Context, out io.Writer, name string, write bool) error {
	root, err := guards.Root(ctx)
	if err != nil {
		return err
	}
	if write {
		return update(ctx, out, root, name)
	}
	if name == "" {
		all, err := guards.All(root)
		if err != nil {
			return err
		}
		return list(out, all)
	}
	g, err := guards.Find(root, name)
	if err != nil {
		return err
	}
	return show(ctx, out, root, g)
}

// update takes guards away and writes into their patches what their stories need.
func update(ctx context.Context, out io.Writer, root, name string) error {
	all, err := guards.All(root)
	if err != nil {
		return err
	}
	for _, g := range all {
		if !g.Catcher.Tells() || name != "" && name != g.Name {
			continue
		}
		_, err := take(ctx, root, g)
		wrong, differs := errors.AsType[*needsError](err)
		switch {
		case differs:
			if err := g.Update(wrong.got); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(out, "%s needs %s\n", g.Name, wrong.got)
		case err != nil:
			_, _ = fmt.Fprintf(out, "%s: %v\n", g.Name, err)
		}
	}
	return nil
}

func list(out io.Writer, all []guards.Guard) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"guard", "breaks", "seen in", "what is taken away"})
	for _, g := range all {
		t.AppendRow(table.Row{g.Name, g.Promise, g.Catcher.Pkg, g.Says})
	}
	const more = "make break GUARD=bind takes one away. The invariants are in docs/design.md."
	_, err := fmt.Fprintf(out, "%s\n\n%d guards. %s\n", t.Render(), len(all), more)
	return err
}

func show(ctx context.Context, out io.Writer, root string, g guards.Guard) error {
	if _, err := fmt.Fprintf(out, "Without %s: %s\n\n%s\n", g.Name, g.Says, g.Changes()); err != nil {
		return err
	}
	story, err := take(ctx, root, g)
	if err == nil {
		story += fmt.Sprintf(
			"\nCaught, as expected: %s is broken. Nothing was changed: the patch was applied to copies.\n",
			g.Promise,
		)
	}
	_, writeErr := io.WriteString(out, story)
	return errors.Join(err, writeErr)
}
