// Command run is `make prove-effects`, which `make prove` runs too. It runs every
// schedule of few deviations of the jobs around an order, with the product and with the
// usual code, and prints what breaks.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
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
		"Search every schedule of few deviations for one in which an order put by HTTP is charged twice, a receipt is sent twice or lost, or a piece of stock is sold twice or lost."))
	debug.SetGCPercent(800) // a schedule lives microseconds, so there is little to mark and much to allocate
	k.FatalIfErrorf(run(os.Stdout, o))
}

var errBroken = errors.New("a promise is broken")

func run(out io.Writer, o options) error {
	broken := false
	for _, w := range effects.Worlds() {
		began := time.Now()
		r := w.Search(o.Deviations)
		found := "0 violations"
		if r.Broken != "" {
			found, broken = r.Broken+"\n  "+strings.Join(r.History, "\n  "), true
		}
		fmt.Fprintf(out, "%-55s %7d schedules, %2.0f s: %s\n", w.Name, r.Schedules, time.Since(began).Seconds(), found)
	}
	for _, w := range effects.UsualWorlds() {
		r := w.Search(o.Deviations)
		fmt.Fprintf(out, "%-55s broken: %s\n", "usual code: "+w.Does, r.Broken)
	}
	if broken {
		return errBroken
	}
	return nil
}
