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
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/lab/guards"
	"orderonce/scripts/lab/storm/run"
)

type arguments struct {
	Orders    int    `default:"10000" help:"Orders of the product."`
	Seed      uint64 `default:"1" help:"Seed of the messages and the faults. The interleaving differs between runs."`
	FIFO      bool   `name:"fifo" help:"Use a FIFO queue, one group for each order."`
	Baselines int    `default:"500" help:"Orders of each baseline; 0 runs the product alone."`
	Only      string `help:"Run one handler alone, by its name; orderonce is the product."`
	Without   string `placeholder:"GUARD" help:"Run the product alone, without this guard; make break lists them."`
	Dir       string `default:"../../build/storm" help:"Folder for programs and logs; concurrent runs need different ones."`
	Docs      string `type:"existingdir" help:"Write the page reference/storm.md and the picture storm.svg into this folder."`
}

var errBroken = errors.New("invariant broken")

const (
	// A storm mostly waits: eight concurrent ones keep two cores busy, or three on Node.js.
	// With more, starts use up the time limits, and what is killed then starts again.
	concurrent       = 8
	concurrentOnNode = 3
	// heapLimit keeps a storm of 100,000 orders below 1 GiB with the engine and all
	// processes.
	heapLimit         = 320 << 20
	instances         = 16 // concurrent processes of the product
	baselineInstances = 4
	// refunded is the share of the product's orders that get refunds, three or four each
	// on average.
	refunded = 0.01
)

// Run runs the storms.
func (a arguments) Run(ctx context.Context) error {
	if a.Docs != "" && a.Without != "" {
		return errors.New("--docs: not possible with --without")
	}
	engine, err := dynamodbtest.Find(os.Getenv, ".")
	if err != nil {
		return err
	}
	handlers, err := a.handlers(ctx)
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(heapLimit)
	sampling, stop := context.WithCancel(ctx)
	peak := make(chan int64, 1)
	go func() { peak <- memory(sampling) }()
	began := time.Now()
	outcomes, err := a.storms(ctx, engine, handlers)
	used := usage{took: time.Since(began), cpu: cpuTime()}
	stop()
	if used.memory = <-peak; err != nil {
		return err
	}
	return a.report(outcomes, used)
}

// storms runs a storm for each handler, those on Node.js last, and returns the outcomes
// in the order of the handlers.
func (a arguments) storms(
	ctx context.Context, engine dynamodbtest.Location, handlers []run.Handler,
) ([]run.Outcome, error) {
	outcomes := make([]run.Outcome, len(handlers))
	for _, onNode := range []bool{false, true} {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(concurrent)
		if onNode {
			group.SetLimit(concurrentOnNode)
		}
		for i, h := range handlers {
			if isOnNode(h) != onNode {
				continue
			}
			group.Go(func() (err error) {
				if outcomes[i], err = run.Storm(ctx, a.options(engine, h), h); err != nil {
					return fmt.Errorf("%s: %w", h.Name, err)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// usage is what a run used. On a busy machine the CPU time says more than the duration.
type usage struct {
	took, cpu time.Duration
	memory    int64 // peak, in bytes
}

// String returns a sentence for the page and the terminal.
func (u usage) String() string {
	return fmt.Sprintf("The run took %v, %v of CPU time, and at most %d MiB of memory in all processes.",
		u.took.Round(time.Second), u.cpu.Round(time.Second), u.memory>>20)
}

func cpuTime() (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

func (a arguments) options(engine dynamodbtest.Location, h run.Handler) run.Options {
	o := run.Options{
		Workload:  run.Workload{Seed: a.Seed, Orders: a.Orders, Refunded: refunded},
		Instances: instances, FIFO: a.FIFO, Dir: a.Dir, Engine: engine, Progress: os.Stderr,
	}
	if h.Name != productName {
		o.Workload.Orders, o.Instances = a.Baselines, baselineInstances
	}
	return o
}

// report prints and writes the outcomes. It returns errBroken if the product broke an
// invariant.
func (a arguments) report(outcomes []run.Outcome, used usage) error {
	if a.Without != "" {
		fmt.Printf("%s %s\n", productName, outcomes[0].Handler.Does)
	}
	show(os.Stdout, outcomes)
	fmt.Printf("\n%v\n", used)
	if a.Docs != "" {
		if err := write(a.Docs, a, outcomes, used); err != nil {
			return err
		}
	}
	var broken []string
	for _, o := range outcomes {
		broken = append(broken, o.Broken()...)
		if n := o.Figures.Wrong(); o.Checks != nil && len(broken) == 0 && n > 0 {
			broken = append(broken, fmt.Sprintf("%d errors that no invariant covers", n))
		}
	}
	if len(broken) > 0 {
		return fmt.Errorf("%w: %s", errBroken, strings.Join(broken, ", "))
	}
	return nil
}

// handlers returns the handlers to run, the product first.
func (a arguments) handlers(ctx context.Context) ([]run.Handler, error) {
	if a.Without != "" {
		h, err := withoutGuard(ctx, a.Without, a.Dir)
		return []run.Handler{h}, err
	}
	if a.Only == productName || a.Baselines == 0 {
		return []run.Handler{product(a.Dir)}, nil
	}
	onNode, err := nodeHandlers(".")
	if err != nil {
		return nil, err
	}
	baselines := baselineHandlers("scripts/lab/storm/baseline", a.Dir)
	all := slices.Concat([]run.Handler{product(a.Dir)}, baselines, onNode)
	all = append(slices.DeleteFunc(slices.Clone(all), hasBind),
		slices.DeleteFunc(all, func(h run.Handler) bool { return !hasBind(h) })...)
	if a.Only == "" {
		return all, nil
	}
	var names []string
	for _, h := range all {
		if h.Name == a.Only {
			return []run.Handler{h}, nil
		}
		names = append(names, h.Name)
	}
	return nil, fmt.Errorf("unknown handler %q, want one of %s", a.Only, strings.Join(names, ", "))
}

const productName = "orderonce"

// programs builds programs into a folder, each once. It is safe for concurrent use.
type programs struct {
	folder  string
	overlay string // of a product without a guard; "" is the product as it is

	mu    sync.Mutex
	paths map[string]string // by package
}

func (p *programs) build(ctx context.Context, pkg string) (path string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paths[pkg] != "" {
		return p.paths[pkg], nil
	}
	path = filepath.Join(p.folder, filepath.Base(pkg), "bootstrap")
	if err := (lambdatest.Program{Package: pkg, Overlay: p.overlay}).Build(ctx, path); err != nil {
		return "", err
	}
	if p.paths == nil {
		p.paths = map[string]string{}
	}
	p.paths[pkg] = path
	return path, nil
}

// product returns the product, whose programs are built into dir.
func product(dir string) run.Handler {
	return productOf("claim, prepare, bind, confirm, finish", &programs{folder: filepath.Join(dir, "product")})
}

func productOf(does string, p *programs) run.Handler {
	return run.Handler{
		Name: productName, Does: does, Program: p.build,
		Build: func(ctx context.Context, _ string) (string, error) { return p.build(ctx, "functions/order") },
	}
}

// withoutGuard returns the product without one of its guards, which it removes from
// copies in dir.
func withoutGuard(ctx context.Context, name, dir string) (run.Handler, error) {
	root, err := guards.Root(ctx)
	if err != nil {
		return run.Handler{}, err
	}
	guard, err := guards.Find(root, name)
	if err != nil {
		return run.Handler{}, err
	}
	p := &programs{folder: filepath.Join(dir, "without")}
	copies, err := filepath.Abs(filepath.Join(p.folder, "copies"))
	if err := errors.Join(err, os.RemoveAll(copies), os.MkdirAll(copies, 0o700)); err != nil {
		return run.Handler{}, err
	}
	p.overlay, err = guard.Remove(root, copies)
	return productOf("without "+name+": "+guard.Summary, p), err
}
