// Command build compiles the order function without one guard of the product, for the
// page of `make up`, which deploys it. The patch is applied to copies; the tree does not
// change.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/alecthomas/kong"

	"orderonce/scripts/lab/guards"
)

func main() {
	var c struct {
		Guard string `arg:"" help:"The guard to remove; make break lists them."`
		Out   string `arg:"" help:"The absolute path of the binary."`
	}
	k := kong.Parse(&c, kong.Name("build"), kong.UsageOnError(), kong.Description(
		"Compile functions/order for this machine without one guard."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, c.Guard, c.Out)
	stop()
	k.FatalIfErrorf(err)
}

var errRelative = errors.New("not an absolute path; go -C changes the folder")

// run compiles functions/order without the guard into the file out.
func run(ctx context.Context, name, out string) error {
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
	return g.Build(ctx, root, "./functions/order", out)
}
