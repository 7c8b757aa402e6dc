// Command local runs the whole of orderonce on this machine: `run` posts the example orders, shows what became of them
// and checks the books; `up` keeps the same system running. No account and no credentials are needed.
package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"
)

type commands struct {
	Run run `cmd:"" help:"Post orders, crash the function once, and show every order, the totals and the invariants."`
	Up  up  `cmd:"" help:"Keep the local system running until Ctrl-C, and print commands to use it with."`
}

func main() {
	var c commands
	k := kong.Parse(&c, kong.Name("local"), kong.UsageOnError(), kong.Description(
		"The whole of orderonce on this machine: the function's real binary, a queue, a DynamoDB-compatible engine and a pretend Stripe."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	k.BindTo(ctx, (*context.Context)(nil))
	err := k.Run()
	stop()
	k.FatalIfErrorf(err)
}
