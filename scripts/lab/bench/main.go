// Command bench is `make bench-quick`. It measures the compiled order function in one
// instance, under a Runtime API host: cold starts, then fresh orders, then duplicates, in
// batches of 10. DynamoDB and Stripe are canned back ends that respond at once over
// loopback HTTP, without TLS. They run in this program's process and share the processors
// with the function, so the throughput is a lower bound; the CPU figures are those of the
// function alone. It fails only if an order is not settled. Compare two versions on the
// same quiet machine only.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/lab/guards"
)

const (
	function   = "./functions/order"
	binaryPath = "../../build/bench/bootstrap"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, plan{Rounds: 7, ColdStarts: 3, Batches: 286, Duplicates: 100}) // 20,000 fresh orders
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
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
