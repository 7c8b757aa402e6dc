package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"orderonce/scripts/lab/progress"
	"orderonce/scripts/lab/simulation"
	"orderonce/scripts/lab/simulation/world"
)

type orders struct {
	Worlds  int    `default:"1000000" help:"How many random worlds to run."`
	Seed    uint64 `default:"1"       help:"The first world's seed."`
	Triples bool   `help:"Search every three deviations, not two: ten minutes more."`
	Long    bool   `help:"Triples and a hundred million worlds."`
	Resume  string `type:"path"       help:"Save the progress in this file, and continue from it."`
	Page    string `help:"Also write this page."`
	Replay  string `help:"Print the history of one seed, or of one schedule as a run prints it."`
}

// Run runs the searches and the random worlds.
func (o *orders) Run(ctx context.Context, s screen) error {
	if o.Replay != "" {
		history, found, err := simulation.Replay(o.Replay)
		switch {
		case err != nil:
			return err
		case found == nil:
			return s.replayed(history, nil, "")
		}
		return s.replayed(history, found, "orders --replay "+found.Replay)
	}
	most, worlds := o.bounds()
	start := time.Now()
	done, err := simulation.LoadState(o.Resume, o.Seed)
	if err == nil {
		err = done.Continue(simulation.Deep(most), worlds, progress.Every(10*time.Second, s.progress, time.Now))
	}
	if err != nil {
		return err
	}
	r := done.Report
	figures := figuresOf(r, done.Seed, time.Since(start))
	_, _ = fmt.Fprintln(s.out, figures)
	if o.Page != "" {
		if err := o.writePage(ctx, r, figures); err != nil {
			return err
		}
	}
	if r.Worst == nil {
		return s.verdict(nil, "")
	}
	return s.verdict(r.Worst, "orders --replay "+r.Worst.Replay)
}

// bounds returns the most deviations of a schedule and the number of random worlds.
func (o *orders) bounds() (most, worlds int) {
	switch {
	case o.Long:
		return 3, 100_000_000
	case o.Triples:
		return 3, o.Worlds
	}
	return 2, o.Worlds
}

// figuresOf returns the figures of a run in Markdown.
func figuresOf(r simulation.Report, seed uint64, took time.Duration) string {
	found, t := "0 violations", r.Tally
	if r.Worst != nil {
		found = r.Worst.Violation.String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d schedules, %d of them merged into an equal state, and %d random worlds "+
		"(seeds from %d), %d steps, %d deliveries, %d charges, %d declines, %.0f s: **%s**.\n"+
		"In the worlds with these actors: %d webhooks, %d reconcile runs and %d publications; %d worlds ran the\n"+
		"deployed batch handler.\n\n| fault | times |\n|---|---:|\n",
		r.Schedules, r.Merged, r.Drawn, seed, t[world.Steps], t[world.Deliveries], t[world.Charges],
		t[world.CardDeclines], took.Seconds(), found, t[world.Webhooks], t[world.ReconcileRuns],
		t[world.Publications], t[world.Handled])
	for _, what := range deviationsOf(t) {
		fmt.Fprintf(&b, "| %s | %d |\n", what, t[what])
	}
	return b.String()
}

// deviationsOf returns the faults and other deviations of a tally, most frequent first.
func deviationsOf(t world.Tally) []string {
	all := slices.SortedFunc(maps.Keys(t), func(a, b string) int { return cmp.Or(t[b]-t[a], cmp.Compare(a, b)) })
	return slices.DeleteFunc(all, func(what string) bool { return slices.Contains(world.Counters(), what) })
}
