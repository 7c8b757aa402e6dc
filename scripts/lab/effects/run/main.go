// Command run is `make prove-effects`, which `make prove` runs too. It runs every
// schedule of few deviations of the jobs around an order, with the product and with the
// usual code, and prints what breaks.
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"orderonce/scripts/lab/effects"
	"orderonce/scripts/lab/prove"
	"orderonce/scripts/lab/stage"
)

type options struct {
	Deviations int `default:"4" help:"How many faults, changes of actor and early starts a schedule has at most."`
}

func main() {
	prove.Main(new(options), "prove-effects",
		"Search every schedule of few deviations for one in which an order put by HTTP is charged twice, "+
			"a receipt is sent twice or lost, or a unit of stock is sold twice or lost.")
}

// Prove searches all worlds at the same time and prints what each found, in their order.
func (o *options) Prove(ctx context.Context, out, _ io.Writer) error {
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
		return prove.ErrBroken
	}
	return nil
}
