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
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"orderonce/scripts/lab/effects"
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
	reports := make([]effects.Report, len(worlds)+len(usual))
	began, free := time.Now(), make(chan struct{}, runtime.GOMAXPROCS(0))
	var searching sync.WaitGroup
	search := func(i int, w effects.World) {
		searching.Go(func() {
			free <- struct{}{}
			reports[i] = w.Search(ctx, o.Deviations)
			<-free
		})
	}
	for i, w := range worlds {
		search(i, w)
	}
	for i, w := range usual {
		search(len(worlds)+i, w.World)
	}
	searching.Wait()
	total, broken := 0, false
	for i, w := range worlds {
		r, found := reports[i], "0 violations"
		if r.Broken != "" {
			found, broken = r.Broken+"\n  "+strings.Join(r.History, "\n  "), true
		}
		total += r.Schedules
		fmt.Fprintf(out, "%9d schedules  %s: %s\n", r.Schedules, w.Name, found)
	}
	for i, w := range usual {
		fmt.Fprintf(out, "%19s  the usual code %s: %s\n", "", w.Does, reports[len(worlds)+i].Broken)
	}
	fmt.Fprintf(out, "%9d schedules in %.0f s\n", total, time.Since(began).Seconds())
	if broken {
		return errBroken
	}
	return nil
}
