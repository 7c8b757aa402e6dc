package attack

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/scripts/local/console"
	"orderonce/scripts/local/console/watch"
)

// program returns the path of a version, and of one without a guard.
func (d *Desk) program(version int, guard string) string {
	name := fmt.Sprintf("order-v%d", version)
	if guard != "" {
		name += "-without-" + guard
	}
	return filepath.Join(d.folder, name)
}

// rollOut deploys the same program as a new version, without the guard that is missing.
func (d *Desk) rollOut(context.Context) (console.Result, error) {
	d.deploying.Lock()
	defer d.deploying.Unlock()
	d.mu.Lock()
	guard := d.guard
	d.mu.Unlock()
	if guard != "" {
		return console.Result{}, fmt.Errorf("%w: put the guard %q back first", console.ErrNotNow, guard)
	}
	version, err := d.deploy("", d.copy)
	return console.Result{Text: fmt.Sprintf("You: version %d rolled out", version)}, err
}

// Guard implements console.Actions. To deploy the function without a guard, it compiles
// it, which takes some seconds. A second call waits for the first: the last one decides
// what is deployed. Close waits for both.
func (d *Desk) Guard(ctx context.Context, name string) (console.Result, error) {
	d.running.Add(1)
	defer d.running.Done()
	d.deploying.Lock()
	defer d.deploying.Unlock()
	if name == "" {
		return d.restore()
	}
	all := Guards()
	i := slices.IndexFunc(all, func(g Guard) bool { return g.Name == name })
	if i < 0 {
		return console.Result{}, fmt.Errorf("guard %q: unknown", name)
	}
	d.watch.SetControl(func(c *watch.Control) { c.Building = name })
	defer d.watch.SetControl(func(c *watch.Control) { c.Building = "" })
	version, err := d.deploy(name, func(out string) error {
		if err := d.build(ctx, name, out); err != nil {
			return err
		}
		d.watch.SetMissing(all[i].Missing) // before the program gets its first delivery
		return nil
	})
	if err != nil {
		return console.Result{}, fmt.Errorf("take the guard %q away: %w", name, err)
	}
	did := console.Result{Text: fmt.Sprintf("You: version %d deployed without the guard %q", version, name)}
	d.watch.Say(watch.Bad, "", did.Text)
	return did, nil
}

// restore deploys the function with every guard. The messages of orders that were broken
// without it leave the queue: nothing but a person can repair them.
func (d *Desk) restore() (console.Result, error) {
	version, err := d.deploy("", d.copy)
	if err != nil {
		return console.Result{}, err
	}
	d.watch.SetMissing("")
	d.target().Purge(func(m sqstest.Message) bool { return d.watch.Broken(orderOf(m.Body)) })
	did := console.Result{Text: fmt.Sprintf("You: version %d deployed with every guard", version)}
	d.watch.Say(watch.Good, "", did.Text)
	return did, nil
}

// copy makes another version of the same program.
func (d *Desk) copy(out string) error { return copyFile(filepath.Join(d.folder, "order"), out) }

// deploy builds a program and deploys it as the next version. The caller holds
// d.deploying.
func (d *Desk) deploy(guard string, build func(out string) error) (version int, err error) {
	d.mu.Lock()
	d.version++
	version, s := d.version, d.system
	d.mu.Unlock()
	out := d.program(version, guard)
	if err := build(out); err != nil {
		return version, err
	}
	if err := s.Function.Replace(out); err != nil {
		return version, err
	}
	if err := d.forget(out); err != nil {
		return version, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.guard = guard
	d.watch.SetControl(func(c *watch.Control) { c.Version, c.Guard = fmt.Sprintf("v%d", version), guard })
	return version, nil
}

// forget removes the program before the last one. An instance that was starting while the
// next version was deployed may still need the last one. The caller holds d.deploying.
func (d *Desk) forget(newest string) error {
	d.programs = append(d.programs, newest)
	if len(d.programs) <= 2 {
		return nil
	}
	oldest := d.programs[0]
	d.programs = d.programs[1:]
	return os.Remove(oldest)
}

// copyFile copies a program.
func copyFile(from, to string) error {
	in, err := os.Open(filepath.Clean(from))
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	//nolint:gosec // G302: a program is executable
	out, err := os.OpenFile(filepath.Clean(to), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close() // the error of the copy says more
		return err
	}
	return out.Close()
}
