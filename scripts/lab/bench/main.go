// Command bench is `make bench` and `make bench-quick`. It measures the compiled order
// function in one instance, under a Runtime API host, beside the function of an earlier
// revision and beside what others would use, in turns.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"time"

	"github.com/alecthomas/kong"

	"orderonce/scripts/lab/chart"
	"orderonce/scripts/lab/guards"
)

const about = `Measure the compiled order function: cold starts, fresh orders, and duplicates of paid
orders, in batches of ten. DynamoDB and Stripe are canned back ends on this machine, so the throughput
is a lower bound; CPU is that of the function alone. Every function takes its turn in each round, in
another order each time, and the figures are medians. It fails only if an order is not settled.

Beside orderonce, unless --quick:
  plain       Go as its SDKs are documented: a conditional put, one call to Stripe with the orderId as key
  floor       net/http repeats the calls of orderonce, byte for byte, without an SDK or a decision
  empty       aws-lambda-go alone
  powertools  the handler of Powertools for TypeScript (make storm-node installs it)`

type arguments struct {
	Base   string `arg:"" optional:"" help:"A revision of git whose order function is measured too."`
	Quick  bool   `help:"Only orderonce and the base, with back ends that respond at once."`
	Rounds int    `default:"15" help:"How often each function takes its turn."`
	Docs   string `placeholder:"FOLDER" help:"Write reference/performance.md and its chart there; minutes longer, needs an engine."`
}

func main() {
	var a arguments
	k := kong.Parse(&a, kong.Name("bench"), kong.UsageOnError(), kong.Description(about))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	k.BindTo(ctx, (*context.Context)(nil))
	err := k.Run()
	stop()
	k.FatalIfErrorf(err)
}

// settings returns what make bench measures, or make bench-quick alone.
func (a arguments) settings() []setting {
	if a.Quick {
		return []setting{{Name: instant, ColdStarts: 2, Batches: 100}}
	}
	far := setting{TLS: true, DynamoDB: 5 * time.Millisecond, Stripe: 20 * time.Millisecond}
	region, share := far, far
	region.Name, region.Batches, region.Singles = distant, 10, 10
	share.Name, share.Share, share.Batches, share.Singles = shared, 0.145, 6, 6
	return []setting{
		{Name: instant, ColdStarts: 2, Batches: 60},
		{Name: encrypted, TLS: true, ColdStarts: 2, Batches: 20},
		region, share,
	}
}

const (
	instant   = "back ends respond at once, HTTP"
	encrypted = "back ends respond at once, TLS"
	distant   = "DynamoDB after 5 ms, Stripe after 20 ms, TLS"
	shared    = "the same, with 0.145 of a processor as a function of 256 MB has"
)

// Run measures, prints the figures, and writes the page if it is wanted.
func (a arguments) Run(ctx context.Context) (err error) {
	root, err := guards.Root(ctx)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	functions, note, err := build(ctx, root, a.Base, folder, !a.Quick)
	if err != nil {
		return err
	}
	began := time.Now()
	b, err := serveBackends(folder)
	if err != nil {
		return err
	}
	m := &measurement{backends: b, close: []func() error{b.Close}}
	defer func() { err = errors.Join(err, m.Close()) }()
	if note != "" {
		m.notes = append(m.notes, note)
	}
	if err := m.prepare(ctx, functions); err != nil {
		return err
	}
	for _, set := range a.settings() {
		if err := m.add(ctx, set, functions); err != nil {
			return err
		}
	}
	if err := m.measure(ctx, a.Rounds, os.Stderr); err != nil {
		return err
	}
	show(os.Stdout, m, a.Rounds, time.Since(began))
	if a.Docs == "" {
		return nil
	}
	extra, err := m.measureMore(ctx, root, folder, functions[0])
	if err != nil {
		return err
	}
	return chart.WritePage(a.Docs, "reference/performance.md", figuresHead,
		m.generated(extra, a.Rounds, time.Since(began)), "performance.svg", m.drawn())
}
