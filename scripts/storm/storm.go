package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/storm/play"
)

// storm is the command line.
type storm struct {
	Orders     int     `default:"10000" help:"Orders that our function gets."`
	Duplicates float64 `default:"0.3" help:"Share of messages that come twice: in one batch, to two instances at once, or sent again."`
	Copies     int     `default:"1" help:"How often every message is sent."`
	Kills      int     `default:"500" help:"Processes of ours to kill while the orders come in, and as many for a message afterwards."`
	Instances  int     `default:"16" help:"Processes of ours at once."`
	Seed       uint64  `default:"1" help:"Decides the messages and the dice. The interleaving is this machine's own."`
	FIFO       bool    `name:"fifo" help:"Use a FIFO queue, one group for each order."`
	Calm       bool    `help:"No faults and no kills."`
	Others     int     `default:"500" help:"Orders that each of the other handlers gets, with as many kills for an order; 0 plays ours alone."`
	Only       string  `help:"Play one handler alone, by its name; orderonce is ours."`
	Dir        string  `default:"build/storm" help:"Where programs and logs go; two runs at once need two."`
	Docs       string  `type:"existingdir" help:"Write the page reference/storm.md and the picture storm.svg into this folder."`
}

var errBroken = errors.New("our function broke an invariant")

const (
	// The others play four at a time, for most of a small storm is waiting.
	atOnce = 4
	// heapLimit lets the collector work harder before a storm of 100,000 orders needs 1 GiB with the engine and all processes.
	heapLimit      = 384 << 20
	theirInstances = 4
)

// Run plays the storms.
func (c storm) Run(ctx context.Context) error {
	engine, err := dynamodbtest.Find(os.Getenv, ".")
	if err != nil {
		return err
	}
	handlers, err := c.handlers()
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(heapLimit)
	began := time.Now()
	bar := newBar(os.Stderr)
	outcomes := make([]play.Outcome, len(handlers))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, h := range handlers {
		o := c.options(engine, h)
		o.Progress = bar.of(h.Name)
		group.Go(func() (err error) {
			if outcomes[i], err = play.Run(ctx, o, h); err != nil {
				return fmt.Errorf("%s: %w", h.Name, err)
			}
			return nil
		})
		if h.Name == ourName { // alone on the machine
			if err := group.Wait(); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(group.Wait(), bar.end()); err != nil {
		return err
	}
	return c.conclude(outcomes, cost{took: time.Since(began), processor: processorTime()})
}

// cost is what all storms of a run took. Beside other work the clock says little, and the processors' time more.
type cost struct{ took, processor time.Duration }

func (c cost) String() string {
	return fmt.Sprintf("The whole run took %v, and %v of processor time.", c.took.Round(time.Second), c.processor.Round(time.Second))
}

// processorTime is that of this process and of every process that it started and that ended.
func processorTime() (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

func (c storm) options(engine dynamodbtest.Location, h play.Handler) play.Options {
	o := play.Options{
		Script: play.Script{Seed: c.Seed, Orders: c.Orders, Duplicates: c.Duplicates, Copies: c.Copies},
		Kills:  c.Kills, Instances: c.Instances, FIFO: c.FIFO, Calm: c.Calm, Dir: c.Dir, Engine: engine,
	}
	if h.Name != ourName {
		o.Script.Orders, o.Instances = c.Others, theirInstances
		o.Kills = c.Kills * c.Others / max(c.Orders, 1)
	}
	return o
}

// conclude shows and writes what happened, and is an error if ours broke something.
func (c storm) conclude(outcomes []play.Outcome, spent cost) error {
	show(os.Stdout, outcomes)
	fmt.Printf("\n%v\n", spent)
	if c.Docs != "" {
		if err := write(c.Docs, c, outcomes, spent); err != nil {
			return err
		}
	}
	for _, o := range outcomes {
		if len(o.Broken()) > 0 {
			return errBroken
		}
	}
	return nil
}

// handlers are those to play, ours first.
func (c storm) handlers() ([]play.Handler, error) {
	all := append([]play.Handler{ourselves()}, others("./scripts/storm/other", filepath.Join(c.Dir, "others"))...)
	if ts, err := powertools(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		all = append(all, ts)
	}
	var names []string
	for _, h := range all {
		if h.Name == c.Only {
			return []play.Handler{h}, nil
		}
		names = append(names, h.Name)
	}
	switch {
	case c.Only != "":
		return nil, fmt.Errorf("no handler is named %q, want one of %s", c.Only, strings.Join(names, ", "))
	case c.Others == 0:
		return all[:1], nil
	}
	return slices.Clip(all), nil
}

const ourName = "orderonce"

// ourselves is the product.
func ourselves() play.Handler {
	return play.Handler{
		Name: ourName, Pattern: "claim, prepare, bind, confirm, finish", Claim: "an order is charged exactly once, and its row says so",
		Build: func(ctx context.Context, dir string) (binary, next string, err error) {
			return build(ctx, "./functions/order", dir)
		},
	}
}

// build makes a program twice; the second one differs by a tag that no file knows.
func build(ctx context.Context, pkg, dir string) (binary, next string, err error) {
	binary, next = filepath.Join(dir, "v1", "bootstrap"), filepath.Join(dir, "v2", "bootstrap")
	return binary, next, errors.Join(
		lambdatest.Build(ctx, pkg, binary),
		lambdatest.Build(ctx, pkg, next, "next"),
	)
}
