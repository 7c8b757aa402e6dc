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

// protocol is the product or a baseline, with what was found in each class.
type protocol struct {
	Name, Does string
	Reports    reports
}

type reports map[search.Class]search.Report

// Run runs the worlds of every class, and searches the small cases.
func (o *refunds) Run(ctx context.Context, s screen) error {
	if o.Replay != "" {
		return o.replay(ctx, s)
	}
	start := time.Now()
	product := o.search(ctx, nil)
	protocols := []protocol{{"the product", "nothing is removed", product}}
	for _, b := range search.Baselines() {
		protocols = append(protocols, protocol{b.Name, b.Does, o.search(ctx, b.Consume)})
	}
	parts, found := o.parts(search.SearchEvery(ctx, o.Faults), protocols)
	_, _ = fmt.Fprintf(s.out, "%s\n%s\n%.0f s\n", parts["schedules"], parts["worlds"], time.Since(start).Seconds())
	if o.Page != "" {
		if err := rewrite(o.Page, parts); err != nil {
			return err
		}
	}
	if found != nil {
		return s.verdict(found, "")
	}
	for _, class := range search.Classes() {
		if f := product[class].Best; f != nil {
			return s.verdict(f, fmt.Sprintf("refunds --replay %s/%d", class, f.Seed))
		}
	}
	return s.verdict(nil, "")
}

func (o *refunds) search(ctx context.Context, consume search.Consumer) reports {
	all := reports{}
	for _, class := range search.Classes() {
		s := search.Search{Class: class, Seed: o.Seed, Worlds: o.Worlds, Consume: consume}
		if consume != nil {
			s.Only = search.MadeOnce
		}
		all[class] = s.Run(ctx)
	}
	return all
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
func (o *refunds) parts(searched []stage.Report, protocols []protocol) (map[string]string, *stage.Finding) {
	var b strings.Builder
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
	var unknown, excused []string
	for _, class := range search.Classes() {
		r := protocols[0].Reports[class]
		unknown = append(unknown, fmt.Sprintf("%d in %s worlds", r.Unknown, class))
		excused = append(excused, fmt.Sprintf("%d %s worlds", r.Excused, class))
	}
	return map[string]string{
		"schedules": b.String(),
		"worlds": fmt.Sprintf("%d worlds of each class, seeds from %d:\n\n%s\n"+
			"Of the product's refunds, these became unknown and wait for a person: %s.\n"+
			"I18 excused a small one that was made twice in %s.\n",
			o.Worlds, o.Seed, table(protocols), strings.Join(unknown, ", "), strings.Join(excused, ", ")),
	}, found
}

func table(all []protocol) string {
	var b strings.Builder
	b.WriteString("| protocol | what it is | kind | worst | keyless | aged |\n|---|---|---:|---:|---:|---:|\n")
	for _, p := range all {
		fmt.Fprintf(&b, "| %s | %s |", p.Name, p.Does)
		for _, class := range search.Classes() {
			fmt.Fprintf(&b, " %s |", cell(p.Reports[class]))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// cell returns the broken worlds of a class: made twice + others.
func cell(r search.Report) string {
	others := 0
	for invariant, n := range r.Broken {
		if invariant != search.MadeOnce {
			others += n
		}
	}
	text := strconv.Itoa(r.Broken[search.MadeOnce])
	if others > 0 {
		text += " + " + strconv.Itoa(others)
	}
	return text
}
