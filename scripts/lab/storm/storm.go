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

// arguments are those of the command line.
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
				outcomes[i], err = a.storm(ctx, engine, h)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

func (a arguments) storm(
	ctx context.Context, engine dynamodbtest.Location, h run.Handler,
) (run.Outcome, error) {
	o := a.options(engine, h)
	o.Progress = os.Stderr
	out, err := run.Storm(ctx, o, h)
	if err != nil {
		return out, fmt.Errorf("%s: %w", h.Name, err)
	}
	return out, nil
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

// cpuTime returns that of this process and of its ended children.
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
		Instances: instances, FIFO: a.FIFO, Dir: a.Dir, Engine: engine,
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
	without *guards.Guard // nil: with every guard
	overlay string        // without it, once it is removed

	mu    sync.Mutex
	paths map[string]string // by package and tag
}

// build builds a package and returns the path of the program.
func (p *programs) build(ctx context.Context, pkg string, tags ...string) (path string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := strings.Join(append([]string{filepath.Base(pkg)}, tags...), "-")
	if p.paths[name] != "" {
		return p.paths[name], nil
	}
	if p.without != nil && p.overlay == "" {
		if p.overlay, err = remove(ctx, *p.without, filepath.Join(p.folder, "copies")); err != nil {
			return "", err
		}
	}
	path = filepath.Join(p.folder, name, "bootstrap")
	program := lambdatest.Program{Package: pkg, Overlay: p.overlay, Tags: tags}
	if err := program.Build(ctx, path); err != nil {
		return "", err
	}
	if p.paths == nil {
		p.paths = map[string]string{}
	}
	p.paths[name] = path
	return path, nil
}

// versions builds a package twice; the second version differs by an unused build tag.
func (p *programs) versions(pkg string) func(ctx context.Context, _ string) (binary, next string, err error) {
	return func(ctx context.Context, _ string) (binary, next string, err error) {
		if binary, err = p.build(ctx, pkg); err == nil {
			next, err = p.build(ctx, pkg, "next")
		}
		return binary, next, err
	}
}

// product returns the product, whose programs are built into dir.
func product(dir string) run.Handler {
	return productOf("claim, prepare, bind, confirm, finish", &programs{folder: filepath.Join(dir, "product")})
}

func productOf(does string, p *programs) run.Handler {
	return run.Handler{
		Name: productName, Does: does, Build: p.versions("functions/order"),
		Program: func(ctx context.Context, pkg string) (string, error) { return p.build(ctx, pkg) },
	}
}

// withoutGuard returns the product without one of its guards.
func withoutGuard(ctx context.Context, name, dir string) (run.Handler, error) {
	root, err := guards.Root(ctx)
	if err != nil {
		return run.Handler{}, err
	}
	guard, err := guards.Find(root, name)
	p := &programs{folder: filepath.Join(dir, "without"), without: &guard}
	return productOf("without "+name+": "+guard.Summary, p), err
}

// remove removes a guard from copies in a folder, and returns their overlay.
func remove(ctx context.Context, guard guards.Guard, folder string) (overlay string, err error) {
	root, err := guards.Root(ctx)
	if err != nil {
		return "", err
	}
	folder, err = filepath.Abs(folder)
	if err := errors.Join(err, os.RemoveAll(folder), os.MkdirAll(folder, 0o700)); err != nil {
		return "", err
	}
	return guard.Remove(root, folder)
}
