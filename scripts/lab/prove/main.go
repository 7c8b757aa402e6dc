// Command prove is `make prove`. It searches schedules and random worlds with faults for
// one in which an order is charged twice or lost, a refund is made twice, lost or called
// wrongly, or a receipt or a unit of stock is lost. Without a command it does all of
// that. Each command prints its figures and, if an invariant breaks, the shortest history
// that breaks it; with --page it also writes a page of docs/reference.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"orderonce/scripts/lab/stage"
)

type commands struct {
	All     all     `cmd:"" default:"1" help:"All of the others, also after one that finds something."`
	Orders  orders  `cmd:"" help:"Orders: every schedule of two deviations, and a million random worlds."`
	Refunds refunds `cmd:"" help:"Refunds: every schedule of two faults, and 40,000 random worlds."`
	Effects effects `cmd:"" help:"Requests by HTTP, receipts and stock: every schedule of few deviations."`
}

// screen is what a command prints on.
type screen struct{ out, progress io.Writer }

func main() {
	var c commands
	k := kong.Parse(&c, kong.Name("prove"), kong.UsageOnError(),
		kong.Description("Search schedules and random worlds with faults for a broken invariant."))
	// A world lives a millisecond, so there is little to mark and much to allocate.
	debug.SetGCPercent(2000)
	debug.SetMemoryLimit(1 << 30)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	k.BindTo(ctx, (*context.Context)(nil))
	err := k.Run(screen{os.Stdout, os.Stderr})
	stop()
	k.FatalIfErrorf(err)
}

type all struct{}

// Run runs every command with its defaults.
func (all) Run(ctx context.Context, s screen) error {
	c, err := defaults()
	if err == nil {
		err = errors.Join(c.Orders.Run(ctx, s), c.Refunds.Run(ctx, s), c.Effects.Run(ctx, s))
	}
	if err == nil {
		_, err = fmt.Fprintln(s.out, "orders, refunds and other effects: 0 violations")
	}
	return err
}

func defaults() (c commands, err error) {
	for _, options := range []any{&c.Orders, &c.Refunds, &c.Effects} {
		err = errors.Join(err, kong.ApplyDefaults(options))
	}
	return c, err
}

var errBroken = errors.New("not proved: an invariant is broken, see above")

// verdict prints that nothing is broken, or what was found and the arguments that show it
// again, and returns errBroken.
func (s screen) verdict(found fmt.Stringer, again string) error {
	if found == nil {
		_, err := fmt.Fprintln(s.out, "0 violations")
		return err
	}
	_, _ = fmt.Fprintf(s.out, "%s\n", found)
	if again != "" {
		_, _ = fmt.Fprintf(s.out, "Replay: go -C scripts/lab run ./prove %s\n", again)
	}
	return errBroken
}

// replayed prints the history of one world, and what was found in it.
func (s screen) replayed(h stage.History, found fmt.Stringer, again string) error {
	text := h.String()
	if found != nil {
		text = "As generated:\n\n" + text + "\n\nShrunk:\n"
	}
	_, _ = fmt.Fprintln(s.out, text)
	return s.verdict(found, again)
}
