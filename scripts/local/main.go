// Command local runs all of orderonce on this machine, without an account or credentials.
// Its command run posts the example orders, shows what became of them and checks the
// invariants. Its command up keeps the same system running and serves its live page. Its
// command drill lets a person work an incident.
package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"
)

type commands struct {
	Run run `cmd:"" help:"Post orders, kill the function once, and show every order, the totals and the invariants."`
	Up  up  `cmd:"" help:"Serve the live page of the system until Ctrl-C, and print commands that use it."`

	Drill drill `cmd:"" help:"Practice an incident of the runbooks, and audit what is left behind."`
}

func main() {
	var c commands
	k := kong.Parse(&c, kong.Name("local"), kong.UsageOnError(), kong.Description(
		"All of orderonce on this machine: the functions' real binaries, a DynamoDB-compatible engine, and pretend services.",
	))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	k.BindTo(ctx, (*context.Context)(nil))
	err := k.Run()
	stop()
	k.FatalIfErrorf(err)
}
