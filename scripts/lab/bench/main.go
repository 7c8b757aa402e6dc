// Command bench is `make bench-quick`. It measures the compiled order function in one
// instance and compares four figures with targets. It is not a test: it fails only if an
// order is not settled.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/alecthomas/kong"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/lab/guards"
)

const (
	function   = "./functions/order"
	binaryPath = "../../build/bench/bootstrap"
)

const about = `Measure the compiled order function: cold start, orders a second, CPU, memory and zip size.

The function runs as one process under a Runtime API host and gets batches of 10. DynamoDB and Stripe
are canned back ends that respond at once over loopback HTTP, without TLS. They run in this program's
process and share the processors with the function, so the throughput is a lower bound; the CPU
figures are those of the function alone.

Each round measures cold starts, then fresh orders, then duplicates of settled orders. The table shows
medians over the rounds. A missed target does not change the exit status. Compare two versions on the
same quiet machine only.`

func main() {
	var p plan
	k := kong.Parse(&p, kong.Name("bench"), kong.UsageOnError(), kong.Description(about))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, p)
	stop()
	k.FatalIfErrorf(err)
}

func run(ctx context.Context, p plan) error {
	fmt.Println("Building", function, "...")
	if err := build(ctx, binaryPath); err != nil {
		return err
	}
	began := time.Now()
	f, err := measure(ctx, p, binaryPath, os.Stderr)
	if err != nil {
		return err
	}
	show(os.Stdout, p, f, time.Since(began))
	return nil
}

func build(ctx context.Context, binary string) error {
	root, err := guards.Root(ctx)
	if err != nil {
		return err
	}
	return lambdatest.Program{Root: root, Package: function}.Build(ctx, binary)
}
