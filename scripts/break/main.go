// Command break takes one guard of the product away, lets package prove search for what that costs, and prints the history
// of the broken promise. What no small world can see, such as a panic that takes a batch along or a condition inside a
// DynamoDB expression, is left to the test that the patch names, and its message is printed. The product knows nothing of
// it: a guard is a patch, applied to copies and put over the module by `go test -overlay`. Nothing in the tree changes.
//
// It fails if nothing was broken without the guard, or another promise than the patch says: then either the guard or its
// patch is out of date.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

func main() {
	var c struct {
		Guard string `arg:"" optional:"" help:"The guard to take away; none lists them all."`
	}
	k := kong.Parse(&c, kong.Name("break"), kong.UsageOnError(), kong.Description(
		"Take one guard against double charges (or worse) away, and see the history of what happens then."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, c.Guard)
	stop()
	k.FatalIfErrorf(err)
}

func run(ctx context.Context, out io.Writer, name string) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	guards, err := readGuards(filepath.Join(root, bugs))
	if err != nil {
		return err
	}
	if name == "" {
		return list(out, guards)
	}
	for _, g := range guards {
		if g.name == name {
			return show(ctx, out, root, g)
		}
	}
	return fmt.Errorf("no guard is named %q; make break lists them", name)
}

// moduleRoot is the folder of go.mod, from wherever in the module this runs.
func moduleRoot(ctx context.Context) (string, error) {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	file := strings.TrimSpace(string(mod))
	if err != nil || filepath.Base(file) != "go.mod" {
		return "", fmt.Errorf("go env GOMOD says %q (%w): run this inside the module", file, err)
	}
	return filepath.Dir(file), nil
}

func list(out io.Writer, guards []guard) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"guard", "breaks", "seen in", "what is taken away"})
	for _, g := range guards {
		t.AppendRow(table.Row{g.name, g.promise, g.catcher.pkg, g.says})
	}
	const more = "make break GUARD=bind takes one away. The invariants are in docs/design.md."
	_, err := fmt.Fprintf(out, "%s\n\n%d guards. %s\n", t.Render(), len(guards), more)
	return err
}

func show(ctx context.Context, out io.Writer, root string, g guard) error {
	if _, err := fmt.Fprintf(out, "Without %s: %s\n\n%s\n", g.name, g.says, g.changes()); err != nil {
		return err
	}
	story, err := g.take(ctx, root)
	if err == nil {
		story += fmt.Sprintf("\nCaught, as expected: %s is broken. Nothing was changed: the patch was applied to copies.\n", g.promise)
	}
	_, writeErr := io.WriteString(out, story)
	return errors.Join(err, writeErr)
}
