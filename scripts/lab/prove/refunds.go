package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	search "orderonce/scripts/lab/refunds"
	"orderonce/scripts/lab/stage"
)

type refunds struct {
	Worlds int    `default:"10000" help:"How many random worlds of each class to run."`
	Seed   uint64 `default:"1"     help:"The first world's seed."`
	Faults int    `default:"2"     help:"How many faults the searched schedules have at most."`
	Page   string `help:"Also write this page."`
	Replay string `help:"Print the history of one world, such as worst/42."`
}

type reports map[search.Class]search.Report

// Run runs the worlds of every class, and searches the small cases.
func (o *refunds) Run(ctx context.Context, s screen) error {
	if o.Replay != "" {
		return o.replay(ctx, s)
	}
	start := time.Now()
	random := reports{}
	for _, class := range search.Classes() {
		random[class] = search.Search{Class: class, Seed: o.Seed, Worlds: o.Worlds}.Run(ctx)
	}
	parts, found := o.parts(search.SearchEvery(ctx, o.Faults), random)
	took := time.Since(start).Seconds()
	_, _ = fmt.Fprintf(s.out, "%s\n%s\n%.0f s\n", parts["schedules"], parts["worlds"], took)
	if o.Page != "" {
		if err := rewrite(o.Page, parts); err != nil {
			return err
		}
	}
	if found != nil {
		return s.verdict(found, "")
	}
	for _, class := range search.Classes() {
		if f := random[class].Best; f != nil {
			return s.verdict(f, fmt.Sprintf("refunds --replay %s/%d", class, f.Seed))
		}
	}
	return s.verdict(nil, "")
}

func (o *refunds) replay(ctx context.Context, s screen) error {
	class, number, _ := strings.Cut(o.Replay, "/")
	seed, err := strconv.ParseUint(number, 10, 64)
	if err != nil || !slices.Contains(search.Classes(), search.Class(class)) {
		return fmt.Errorf("replay %q: want a class and a seed, such as worst/42", o.Replay)
	}
	history, found := search.Search{Class: search.Class(class)}.Replay(ctx, seed)
	if found == nil {
		return s.replayed(history, nil, "")
	}
	return s.replayed(history, found, "")
}

// parts returns the generated parts of docs/reference/refund-proof.md, and the first
// finding of the complete searches or nil.
func (o *refunds) parts(searched []stage.Report, random reports) (map[string]string, *stage.Finding) {
	var b, worlds strings.Builder
	var found *stage.Finding
	fmt.Fprintf(&b, "At most %d faults:\n\n| case | schedules | broken |\n|---|---:|---|\n", o.Faults)
	total := 0
	for i, c := range search.Every() {
		r, broken := searched[i], ""
		if total += r.Schedules; r.Found != nil {
			found, broken = cmp.Or(found, r.Found), r.Found.Violation.String()
		}
		fmt.Fprintf(&b, "| %s | %d | %s |\n", c.Name, r.Schedules, broken)
	}
	fmt.Fprintf(&b, "| all | %d | |\n", total)
	row := func(what string, n func(r search.Report) int) {
		fmt.Fprintf(&worlds, "| %s |", what)
		for _, class := range search.Classes() {
			fmt.Fprintf(&worlds, " %d |", n(random[class]))
		}
		worlds.WriteString("\n")
	}
	fmt.Fprintf(&worlds, "%d worlds of each class, seeds from %d:\n\n"+
		"| | kind | worst | keyless | aged |\n|---|---:|---:|---:|---:|\n", o.Worlds, o.Seed)
	row("broken worlds", func(r search.Report) int { return r.Broken })
	row("refunds that became unknown and wait for a person", func(r search.Report) int { return r.Unknown })
	row("worlds in which a refund made twice was excused", func(r search.Report) int { return r.Excused })
	return map[string]string{"schedules": b.String(), "worlds": worlds.String()}, found
}
