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
	worlds := search.Worlds()
	began, reports := time.Now(), make([]stage.Report, len(worlds))
	stage.Parallel(len(worlds), stage.NewPool, func(_ *stage.Pool, i int) {
		reports[i] = worlds[i].Search(ctx, o.Deviations)
	})
	total, broken := 0, false
	for i, r := range reports {
		found := "0 violations"
		if r.Found != nil {
			found, broken = r.Found.String(), true
		}
		total += r.Schedules
		_, _ = fmt.Fprintf(s.out, "%9d schedules  %s: %s\n", r.Schedules, worlds[i].Name, found)
	}
	_, _ = fmt.Fprintf(s.out, "%9d schedules in %.0f s\n", total, time.Since(began).Seconds())
	if broken {
		return errBroken
	}
	return nil
}
