package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/lab/guards"
	"orderonce/scripts/lab/storm/play"
)

// storm is the command line.
type storm struct {
	Orders     int     `default:"10000" help:"Orders that our function gets."`
	Duplicates float64 `default:"0.3" help:"Share of messages that come twice: in one batch, to two instances at once, or sent again."`
	Copies     int     `default:"1" help:"How often every message is sent."`
	Kills      int     `default:"-1" help:"Processes of ours to kill while orders come in; -1 is one for 20 orders."`
	Instances  int     `default:"16" help:"Processes of ours at once."`
	Seed       uint64  `default:"1" help:"Decides the messages and the dice. The interleaving is this machine's own."`
	FIFO       bool    `name:"fifo" help:"Use a FIFO queue, one group for each order."`
	Calm       bool    `help:"No faults and no kills."`
	Others     int     `default:"500" help:"Orders that each of the other handlers gets, with as many kills for an order; 0 plays ours alone."`
	Only       string  `help:"Play one handler alone, by its name; orderonce is ours."`
	Without    string  `placeholder:"GUARD" help:"Play ours alone, and with a guard taken away: make break lists them."`
	Dir        string  `default:"../../build/storm" help:"Where programs and logs go; two runs at once need two."`
	Docs       string  `type:"existingdir" help:"Write the page reference/storm.md and the picture storm.svg into this folder."`
}

var errBroken = errors.New("our function broke an invariant")

const (
	// Most of a storm is waiting. Eight at a time keep two cores busy.
	atOnce = 8
	// heapLimit lets the collector work harder before a storm of 100,000 orders needs 1 GiB with the engine and all processes.
	heapLimit      = 320 << 20
	theirInstances = 4
	// ordersPerKill is how many orders come in for each process that is killed, unless --kills says otherwise.
	ordersPerKill = 20
)

// Run plays the storms.
func (c storm) Run(ctx context.Context) error {
	if c.Docs != "" && c.Without != "" {
		return errors.New("--docs writes of the product as it is: leave out --without")
	}
	if c.Kills < 0 {
		c.Kills = c.Orders / ordersPerKill
	}
	engine, err := dynamodbtest.Find(os.Getenv, ".")
	if err != nil {
		return err
	}
	handlers, err := c.handlers(ctx)
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(heapLimit)
	looking, stop := context.WithCancel(ctx)
	peak := make(chan int64, 1)
	go func() { peak <- memory(looking) }()
	began := time.Now()
	outcomes, err := c.play(ctx, engine, handlers)
	spent := cost{took: time.Since(began), processor: processorTime()}
	stop()
	if spent.memory = <-peak; err != nil {
		return err
	}
	return c.conclude(outcomes, spent)
}

// play runs the storms of all handlers, and returns what they came to in the same order.
func (c storm) play(ctx context.Context, engine dynamodbtest.Location, handlers []play.Handler) ([]play.Outcome, error) {
	bar := newBar(os.Stderr)
	outcomes := make([]play.Outcome, len(handlers))
	group, ctx := errgroup.WithContext(ctx)
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
	}
	return outcomes, errors.Join(group.Wait(), bar.end())
}

// cost is what all storms of a run took. Beside other work the clock says little, and the processors' time more.
type cost struct {
	took, processor time.Duration
	memory          int64 // at most at once, in bytes
}

func (c cost) String() string {
	return fmt.Sprintf("The whole run took %v, %v of processor time, and at most %d MiB of memory in all its processes.",
		c.took.Round(time.Second), c.processor.Round(time.Second), c.memory>>20)
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
	if c.Without != "" {
		fmt.Printf("%s %s\n", ourName, outcomes[0].Handler.Does)
	}
	show(os.Stdout, outcomes)
	fmt.Printf("\n%v\n", spent)
	if c.Docs != "" {
		if err := write(c.Docs, c, outcomes, spent); err != nil {
			return err
		}
	}
	var broken []string
	for _, o := range outcomes {
		for _, check := range o.Broken() {
			broken = append(broken, check.ID)
		}
		if o.Checks != nil && len(broken) == 0 && o.Count.Wrong() > 0 {
			broken = append(broken, fmt.Sprintf("%d orders are wrong by a rule that no invariant names", o.Count.Wrong()))
		}
	}
	if len(broken) > 0 {
		return fmt.Errorf("%w: %s", errBroken, strings.Join(broken, ", "))
	}
	return nil
}

// handlers are those to play, ours first.
func (c storm) handlers(ctx context.Context) ([]play.Handler, error) {
	if c.Without != "" {
		ours, err := withoutGuard(ctx, c.Without)
		return []play.Handler{ours}, err
	}
	ours := ourselves()
	if c.Only == ourName || c.Others == 0 {
		return []play.Handler{ours}, nil
	}
	all := append([]play.Handler{ours}, baselineHandlers("./storm/baseline", filepath.Join(c.Dir, "others"))...)
	if ts, err := powertools(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		all = append(all, ts)
	}
	if c.Only == "" {
		return all, nil
	}
	var names []string
	for _, h := range all {
		if h.Name == c.Only {
			return []play.Handler{h}, nil
		}
		names = append(names, h.Name)
	}
	return nil, fmt.Errorf("no handler is named %q, want one of %s", c.Only, strings.Join(names, ", "))
}

const (
	ourName = "orderonce"
	product = "./functions/order"
)

// ourselves is the product.
func ourselves() play.Handler {
	return play.Handler{
		Name: ourName, Does: "claim, prepare, bind, confirm, finish",
		Build: func(ctx context.Context, dir string) (binary, next string, err error) {
			root, err := guards.Root(ctx)
			if err != nil {
				return "", "", err
			}
			return build(ctx, lambdatest.Program{Root: root, Package: product}, dir)
		},
	}
}

// withoutGuard is the product without one of its guards.
func withoutGuard(ctx context.Context, name string) (play.Handler, error) {
	root, err := guards.Root(ctx)
	if err != nil {
		return play.Handler{}, err
	}
	guard, err := guards.Find(root, name)
	if err != nil {
		return play.Handler{}, err
	}
	h := ourselves()
	h.Does = "without " + name + ": " + guard.Says
	h.Build = func(ctx context.Context, dir string) (binary, next string, err error) {
		copies, err := filepath.Abs(filepath.Join(dir, "without"))
		if err := errors.Join(err, os.RemoveAll(copies), os.MkdirAll(copies, 0o700)); err != nil {
			return "", "", err
		}
		overlay, err := guard.TakeAway(ctx, root, copies)
		if err != nil {
			return "", "", err
		}
		return build(ctx, lambdatest.Program{Root: root, Package: product, Overlay: overlay}, dir)
	}
	return h, nil
}

// build makes a program twice; the second one differs by a tag that no file knows.
func build(ctx context.Context, p lambdatest.Program, dir string) (binary, next string, err error) {
	binary, next = filepath.Join(dir, "v1", "bootstrap"), filepath.Join(dir, "v2", "bootstrap")
	err = p.Build(ctx, binary)
	p.Tags = []string{"next"}
	return binary, next, errors.Join(err, p.Build(ctx, next))
}
