package attack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/scripts/local/console"
	"orderonce/scripts/local/console/watch"
)

// rollOut deploys the same program as a new version, without the guard that is missing.
func (a *Attacker) rollOut(context.Context) (console.Result, error) {
	a.deploying.Lock()
	defer a.deploying.Unlock()
	a.mu.Lock()
	guard := a.guard
	a.mu.Unlock()
	if guard != "" {
		return console.Result{}, fmt.Errorf("%w: put the guard %q back first", console.ErrNotNow, guard)
	}
	version, err := a.deploy("", a.same)
	return console.Result{Text: fmt.Sprintf("You: version %d rolled out", version)}, err
}

// deployWithout deploys the function without a guard, or with "" the one that has them
// all. It compiles it, which takes some seconds. A second call waits for the first: the
// last one decides what is deployed. Close waits for both.
func (a *Attacker) deployWithout(ctx context.Context, name string) (console.Result, error) {
	a.running.Add(1)
	defer a.running.Done()
	a.deploying.Lock()
	defer a.deploying.Unlock()
	if name == "" {
		return a.restore()
	}
	all := Guards()
	i := slices.IndexFunc(all, func(g console.Guard) bool { return g.Name == name })
	if i < 0 {
		return console.Result{}, fmt.Errorf("guard %q: %w", name, console.ErrUnknown)
	}
	a.watch.SetControl(func(c *watch.Control) { c.Building = name })
	defer a.watch.SetControl(func(c *watch.Control) { c.Building = "" })
	version, err := a.deploy(name, func(out string) error {
		if err := a.build(ctx, name, out); err != nil {
			return err
		}
		// Before the program gets its first delivery.
		a.watch.SetControl(func(c *watch.Control) { c.Missing = all[i].Missing })
		return nil
	})
	if err != nil {
		return console.Result{}, fmt.Errorf("take the guard %q away: %w", name, err)
	}
	did := console.Result{Text: fmt.Sprintf("You: version %d deployed without the guard %q", version, name)}
	a.watch.Say(watch.Bad, did.Text)
	return did, nil
}

// restore deploys the function with every guard. The messages of orders that were broken
// without it leave the queue: nothing but a person can repair them.
func (a *Attacker) restore() (console.Result, error) {
	version, err := a.deploy("", a.same)
	if err != nil {
		return console.Result{}, err
	}
	a.target().Purge(func(m sqstest.Message) bool {
		timeline, _ := a.watch.Timeline(orderOf(m.Body))
		return len(timeline.Order.Bad) > 0
	})
	did := console.Result{Text: fmt.Sprintf("You: version %d deployed with every guard", version)}
	a.watch.Say(watch.Good, did.Text)
	return did, nil
}

func (a *Attacker) same(out string) error {
	if err := os.Remove(out); err != nil && !errors.Is(err, fs.ErrNotExist) { // of an earlier start
		return err
	}
	return os.Link(filepath.Join(a.folder, "order"), out)
}

// deploy builds a program and deploys it as the next version. The caller holds
// a.deploying.
func (a *Attacker) deploy(guard string, build func(out string) error) (version int, err error) {
	a.mu.Lock()
	a.version++
	version, s := a.version, a.system
	a.mu.Unlock()
	name := fmt.Sprintf("order-v%d", version)
	if guard != "" {
		name += "-without-" + guard
	}
	out := filepath.Join(a.folder, name)
	if err = build(out); err == nil {
		err = s.Function.Replace(out)
	}
	if err != nil {
		return version, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.guard = guard
	a.watch.SetControl(func(c *watch.Control) { c.Version, c.Guard = fmt.Sprintf("v%d", version), guard })
	return version, nil
}
