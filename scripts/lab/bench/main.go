// Command bench is `make bench-quick`: it measures the compiled order function, as it would run in one Lambda instance,
// and compares four figures with what we aim at. It is a measurement and no test: it fails only if an order did.
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

The function's own process runs under a Runtime API host, one instance, and works on batches of 10. Its back ends are
canned: they answer at once over loopback HTTP, so what is measured is the function and not DynamoDB or Stripe. There is no
TLS and no network. Back ends and host live in this program's process and share the processors with the function, which alone
would do more orders a second than the table says; the CPU figures are the function's alone.

Each round makes some cold starts, then fresh orders, then duplicates of settled orders; the table shows medians over the
rounds, so that a neighbor's burst of work spoils one round and not a figure. A missed aim is said and changes no exit code.
Compare two versions on the same quiet machine only.`

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
