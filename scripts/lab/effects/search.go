package effects

import (
	"context"
	"fmt"

	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/simulation/schedule"
)

// World is one job with what happens around it.
type World struct {
	Name string
	Less int // how many deviations fewer the search of a large world has
	// play runs one schedule and returns what is broken, or "".
	play func(s *stage) string
}

// Report is what a search found.
type Report struct {
	Schedules int
	Broken    string   // of the simplest schedule that breaks something; "" if none does
	History   []string // of that schedule
}

// Search runs every schedule of the world with at most this many deviations, or Less, up
// to the first that breaks something.
func (w World) Search(ctx context.Context, most int) (r Report) {
	var broken schedule.Tape
	r.Schedules = schedule.Explore(most-w.Less, func(t schedule.Tape, choose schedule.Choose) {
		if r.Broken == "" {
			if r.Broken = w.play(&stage{ctx: ctx, choose: choose}); r.Broken != "" {
				broken = append(broken, t...)
			}
		}
	})
	if r.Broken == "" {
		return r
	}
	bad := func(t schedule.Tape) bool { return w.play(&stage{ctx: ctx, choose: t.Chooser()}) != "" }
	shortest := &stage{ctx: ctx, choose: schedule.Shrink(broken, bad).Chooser(), keeps: true}
	r.Broken = w.play(shortest)
	r.History = append(shortest.history, fmt.Sprintf("broken: %s", r.Broken))
	return r
}

// Worlds returns the worlds in which the product must break nothing.
func Worlds() []World {
	return []World{
		Intake{}.World(), Intake{Other: true}.World(),
		Receipts{}.World(), Receipts{Reports: true}.World(), Receipts{AtLeastOnce: true}.World(),
		Receipts{Stops: true}.World(),
		Receipts{Person: true}.World(), Receipts{Person: true, Reports: true}.World(),
		Stock{Card: ordertest.Pays}.World(), Stock{Card: ordertest.Declines}.World(),
		Stock{Card: ordertest.NeedsAuthentication, Cancels: true}.World(),
		Stock{Card: ordertest.Declines, Pays: true}.World(),
	}
}
