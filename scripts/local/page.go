package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"orderonce/scripts/local/console"
	"orderonce/scripts/local/console/attack"
	"orderonce/scripts/local/console/watch"
	"orderonce/scripts/local/system"
)

type page struct {
	watch    *watch.Watch
	attacker *attack.Attacker

	server *console.Server
	stop   context.CancelFunc
	run    sync.WaitGroup
}

// newPage returns a page for a system that starts with these options, which it changes.
func newPage(o *system.Options) *page {
	w := watch.New(time.Now)
	p := &page{watch: w, attacker: attack.New(w, string(upFolder), buildWithout)}
	p.attacker.Hook(o)
	p.watch.Hook(o)
	o.Stock[attack.SKU] = 1_000_000_000
	o.Output = w
	return p
}

func (p *page) serve(ctx context.Context, s *system.System, port int) (err error) {
	ctx, p.stop = context.WithCancel(ctx)
	p.attacker.Start(ctx, s)
	p.run.Go(func() { p.watch.Run(ctx, s) })
	p.server, err = console.Serve(console.Options{
		Port: port, Token: rand.Text(), Picture: p.watch.Picture, Timeline: p.watch.Timeline,
		Attacks: p.attacker.Attacks(), Guards: attack.Guards(), Act: p.attacker.Act,
	})
	return err
}

// Close ends the page and what its visitors began.
func (p *page) Close() (err error) {
	if p.server != nil {
		err = p.server.Close()
	}
	if p.stop != nil {
		p.stop()
		p.attacker.Close()
	}
	p.run.Wait()
	return err
}

func buildWithout(ctx context.Context, guard, out string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	//nolint:gosec // G204: the guard is one of the page's
	cmd := exec.CommandContext(ctx, "go", "-C", "scripts/lab", "run", "./guards/break", "--out", out, guard)
	cmd.WaitDelay = 5 * time.Second // go run leaves its program running, which ends soon
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	return nil
}
