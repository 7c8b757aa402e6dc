// Command run is `make prove-effects`, which `make prove` runs too. It runs every
// schedule of few deviations of the jobs around an order, with the product and with the
// usual code, and prints what breaks.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"time"

	"github.com/alecthomas/kong"

	"orderonce/scripts/lab/effects"
	"orderonce/scripts/lab/stage"
)

type options struct {
	Deviations int `default:"4" help:"How many faults, changes of actor and early starts a schedule has at most."`
}

func main() {
	var o options
	k := kong.Parse(&o, kong.Name("prove-effects"), kong.UsageOnError(), kong.Description(
		"Search every schedule of few deviations for one in which an order put by HTTP is charged twice, "+
			"a receipt is sent twice or lost, or a piece of stock is sold twice or lost."))
	debug.SetGCPercent(800) // a schedule lives microseconds, so there is little to mark and much to allocate
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, o)
	stop()
	k.FatalIfErrorf(err)
}

var errBroken = errors.New("a promise is broken")

// run searches all worlds at the same time and prints what each found, in their order.
func run(ctx context.Context, out io.Writer, o options) error {
	worlds, usual := effects.Worlds(), effects.UsualWorlds()
	began, reports := time.Now(), make([]stage.Report, len(worlds)+len(usual))
	stage.Parallel(len(reports), stage.NewPool, func(_ *stage.Pool, i int) {
		if i < len(worlds) {
			reports[i] = worlds[i].Search(ctx, o.Deviations)
		} else {
			reports[i] = usual[i-len(worlds)].Search(ctx, o.Deviations)
		}
	})
	total, broken := 0, false
	for i, w := range worlds {
		r, found := reports[i], "0 violations"
		if r.Found != nil {
			found, broken = r.Found.String(), true
		}
		total += r.Schedules
		fmt.Fprintf(out, "%9d schedules  %s: %s\n", r.Schedules, w.Name, found)
	}
	for i, w := range usual {
		fmt.Fprintf(out, "%19s  the usual code %s: %s\n", "", w.Does, reports[len(worlds)+i].Found.Violation.Detail)
	}
	fmt.Fprintf(out, "%9d schedules in %.0f s\n", total, time.Since(began).Seconds())
	if broken {
		return errBroken
	}
	return nil
}
