package guards

import (
	"context"
	"errors"
	"fmt"
	"os"

	"orderonce/adapters/lambda/lambdatest"
)

// Build compiles a package of the product, such as ./functions/order, without the guard
// into the file out, for this machine. An error names the guard: its patch does not
// apply, or the product does not compile without it.
func (g Guard) Build(ctx context.Context, root, pkg, out string) (err error) {
	dir, err := os.MkdirTemp("", "orderonce-without-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := g.Remove(ctx, root, dir)
	if err != nil {
		return fmt.Errorf("%w; make break GUARD=%s shows whether the guard has changed", err, g.Name)
	}
	p := lambdatest.Program{Package: pkg, Root: root, Overlay: overlay}
	if err := p.Build(ctx, out); err != nil {
		return fmt.Errorf("without guard %s: %w", g.Name, err)
	}
	return nil
}
