// Command run is the part of `make prove` about orders. It searches every schedule of a
// bounded world, runs a million random worlds, and prints what happened in them and the
// shortest history that breaks an invariant, if there is one. With --replay it prints one
// history again.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"orderonce/scripts/lab/guards"
	"orderonce/scripts/lab/progress"
	"orderonce/scripts/lab/prove"
	"orderonce/scripts/lab/simulation"
	"orderonce/scripts/lab/simulation/report"
	"orderonce/scripts/lab/stage"
)

type options struct {
	Worlds  int    `default:"1000000" help:"How many random worlds to run."`
	Seed    uint64 `default:"1"       help:"The first world's seed."`
	Triples bool   `help:"Search every three deviations, not two: ten minutes more."`
	Long    bool   `help:"Triples and a hundred million worlds."`
	Resume  string `type:"path"       help:"Save the progress in this file, and continue from it."`
	Page    string `help:"Also write this page, and --full, which takes minutes more."`
	Full    string `help:"With --page: the page with every history." default:"../../build/proof-full.md"`
	Replay  string `help:"Print the history of one seed, or of one schedule as a run prints it."`
}

func main() {
	prove.Main(new(options), "prove",
		"Search schedules and random worlds with faults for one in which an order is charged twice, or lost.")
}

// Prove runs the searches and the random worlds.
func (o *options) Prove(ctx context.Context, out, errOut io.Writer) error {
	if o.Replay != "" {
		return o.replay(out)
	}
	most, worlds := o.bounds()
	start := time.Now()
	done, err := simulation.LoadState(o.Resume)
	if err != nil {
		return err
	}
	searches := simulation.Deep(most)
	show := progress.Every(10*time.Second, errOut, time.Now)
	total, err := done.Searches(searches, func(n int) { show("%d of %d searches", n, len(searches)) })
	searched := time.Since(start)
	if err != nil {
		return err
	}
	if total.Worst == nil {
		total, err = done.Worlds(o.Seed, worlds, func(n int) { show("%d of %d worlds", n, worlds) })
		if err != nil {
			return err
		}
	}
	printTables(out, most, total, searched, time.Since(start))
	if o.Page != "" {
		all, err := planted(ctx)
		if err != nil {
			return err
		}
		p, err := newProof(ctx, *o, total, all, time.Since(start))
		if err := errors.Join(err, writePages(o.Page, o.Full, p)); err != nil {
			return err
		}
	}
	return verdict(out, total)
}

func planted(ctx context.Context) ([]guards.Guard, error) {
	root, err := guards.Root(ctx)
	if err != nil {
		return nil, err
	}
	return guards.All(root)
}

// bounds returns the most deviations of a schedule and the number of random worlds.
func (o *options) bounds() (most, worlds int) {
	switch {
	case o.Long:
		return 3, 100_000_000
	case o.Triples:
		return 3, o.Worlds
	}
	return 2, o.Worlds
}

func verdict(out io.Writer, r report.Report) error {
	if r.Worst == nil {
		return prove.Verdict(out, nil, "")
	}
	return prove.Verdict(out, r.Worst, "./simulation/run --replay "+r.Worst.Replay)
}

func (o *options) replay(out io.Writer) error {
	history, worst, err := replayed(o.Replay)
	switch {
	case err != nil:
		return err
	case worst == nil:
		return prove.Replayed(out, history, nil, "")
	}
	return prove.Replayed(out, history, worst, "./simulation/run --replay "+worst.Replay)
}

// replayed returns the history of a seed such as 42, or of a schedule such as
// pairs/7/000100.
func replayed(name string) (stage.History, *report.Finding, error) {
	if search, schedule, ok := strings.Cut(name, "/"); ok {
		return simulation.ReplaySchedule(search, schedule)
	}
	seed, err := strconv.ParseUint(name, 10, 64)
	if err != nil {
		return nil, nil, fmt.Errorf("replay %q: want a seed, or a schedule such as pairs/7/000100", name)
	}
	h, f := simulation.Replay(seed)
	return h, f, nil
}

func printTables(out io.Writer, most int, r report.Report, searched, all time.Duration) {
	what := map[int]string{2: "every pair", 3: "every triple"}[most]
	rows := []table.Row{
		{"schedules: " + what + " of deviations", r.Schedules},
		{"  of them merged into an equal state", r.Merged},
		{"random worlds", r.Drawn},
		{"  with the deployed batch handler", r.Tally.Handler},
		{"webhooks", r.Tally.Webhooks},
		{"reconcile runs", r.Tally.Looks},
		{"publications", r.Tally.Publications},
		{"steps", r.Tally.Steps},
		{"deliveries", r.Tally.Deliveries},
		{"charges", r.Tally.Charges},
		{"declines", r.Tally.Declines},
	}
	t := newTable("the run", "times")
	t.AppendRows(rows)
	_, _ = fmt.Fprintln(out, t.Render())
	t = newTable("fault", "times")
	for _, c := range report.Unusual(r.Tally) {
		t.AppendRow(table.Row{c.What, c.Times})
	}
	_, _ = fmt.Fprintf(out, "%s\n%.0f s, of which %.0f s for the schedules\n", t.Render(), all.Seconds(),
		searched.Seconds())
}

func newTable(header ...any) table.Writer { //nolint:ireturn // as the library has it
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(header)
	return t
}
