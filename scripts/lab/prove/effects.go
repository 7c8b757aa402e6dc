package main

import (
	"context"
	"fmt"
	"time"

	search "orderonce/scripts/lab/effects"
	"orderonce/scripts/lab/stage"
)

type effects struct {
	Deviations int `default:"4" help:"The most faults, changes of actor and early starts of a schedule."`
}

// Run searches all worlds at the same time and prints what each found, in their order.
func (o *effects) Run(ctx context.Context, s screen) error {
	worlds, naive := search.Worlds(), search.NaiveWorlds()
	began, reports := time.Now(), make([]stage.Report, len(worlds)+len(naive))
	stage.Parallel(len(reports), stage.NewPool, func(_ *stage.Pool, i int) {
		if i < len(worlds) {
			reports[i] = worlds[i].Search(ctx, o.Deviations)
		} else {
			reports[i] = naive[i-len(worlds)].Search(ctx, o.Deviations)
		}
	})
	total, broken := 0, false
	for i, w := range worlds {
		r, found := reports[i], "0 violations"
		if r.Found != nil {
			found, broken = r.Found.String(), true
		}
		total += r.Schedules
		_, _ = fmt.Fprintf(s.out, "%9d schedules  %s: %s\n", r.Schedules, w.Name, found)
	}
	for i, w := range naive {
		found := reports[len(worlds)+i].Found
		_, _ = fmt.Fprintf(s.out, "%19s  naive code that %s: %s\n", "", w.Does, found.Violation.Detail)
	}
	_, _ = fmt.Fprintf(s.out, "%9d schedules in %.0f s\n", total, time.Since(began).Seconds())
	if broken {
		return errBroken
	}
	return nil
}
