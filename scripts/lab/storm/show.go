package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"orderonce/scripts/invariants"
	"orderonce/scripts/lab/chart"
	"orderonce/scripts/lab/storm/run"
	"orderonce/scripts/local/faults"
)

func columns() []run.Figure { return append(run.Errors(), run.Settled, run.Extra) }

func figures(outcomes []run.Outcome) table.Writer { //nolint:ireturn // the library has no concrete type
	header := table.Row{"handler", "version", run.Orders}
	for _, c := range columns() {
		header = append(header, c)
	}
	t := chart.Table(header...)
	for _, o := range outcomes {
		row := table.Row{o.Handler.Name, o.Handler.Version, o.Figures[run.Orders]}
		for _, c := range columns() {
			row = append(row, o.Figures[c])
		}
		t.AppendRow(row)
	}
	return t
}

func show(w io.Writer, outcomes []run.Outcome) {
	t := figures(outcomes)
	t.SetOutputMirror(w)
	t.Render()
	for _, o := range outcomes {
		if len(o.Checks) > 0 {
			fmt.Fprintf(w, "\n%s, %v:\n", o.Handler.Name, o.Took.Round(time.Second))
			for _, f := range run.Facts() {
				fmt.Fprintf(w, "%9d %s\n", o.Figures[f], f)
			}
			invariants.Show(w, o.Checks)
		}
	}
}

// figuresHead starts what is generated of the page. People write what is before it.
const figuresHead = "\n## What became of the orders\n"

func write(docs string, a arguments, outcomes []run.Outcome, used usage) error {
	return chart.WritePage(docs, "reference/storm.md", figuresHead,
		generated(a, outcomes, used), "storm.svg", drawn(outcomes))
}

func generated(a arguments, outcomes []run.Outcome, used usage) string {
	var b strings.Builder
	b.WriteString("\n" + figures(outcomes).RenderMarkdown() + "\n")
	for _, o := range outcomes {
		if len(o.Checks) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## What happened to %s\n\nIn %v. The baselines have neither refunds nor what follows "+
			"them.\n\n| | |\n|---|---:|\n", o.Handler.Name, o.Took.Round(time.Second))
		for _, f := range run.Facts() {
			fmt.Fprintf(&b, "| %s | %d |\n", f, o.Figures[f])
		}
		fmt.Fprintf(&b, "\n## The invariants of %s\n\n| invariant | | broken |\n|---|---|---:|\n", o.Handler.Name)
		for _, check := range o.Checks {
			fmt.Fprintf(&b, "| %s | %s | %d |\n", check.ID, check.Claim, len(check.Broken))
		}
		b.WriteString("\n| fault profile | failed calls |\n|---|---:|\n")
		for _, service := range faults.Profiles(0) {
			for _, profile := range service[1:] { // the first is healthy
				fmt.Fprintf(&b, "| %s | %d |\n", profile.Name, o.Figures[run.Figure(profile.Name)])
			}
		}
	}
	b.WriteString("\n## The handlers\n\n| handler | what it does | where it fails |\n|---|---|---|\n")
	for _, o := range outcomes {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", o.Handler.Name, o.Handler.Does, o.Handler.Fails)
	}
	fifo := ""
	if a.FIFO {
		fifo = " --fifo"
	}
	fmt.Fprintf(&b, "\n## How to repeat it\n\n    go -C scripts/lab run ./storm --seed=%d --orders=%d "+
		"--baselines=%d%s --docs=../../docs\n\n%v\n", a.Seed, a.Orders, a.Baselines, fifo, used)
	return b.String()
}

// drawn draws a panel for each column, with a bar for each handler: figures per 100
// orders. Errors are red.
func drawn(outcomes []run.Outcome) string {
	var names []string
	for _, o := range outcomes {
		names = append(names, o.Handler.Name)
	}
	var panels []chart.Panel
	for _, c := range columns() {
		p := chart.Panel{Title: string(c), Color: chart.Blue, Least: 1, Label: perHundred}
		if slices.Contains(run.Errors(), c) {
			p.Color = chart.Red
		}
		for _, o := range outcomes {
			p.Values = append(p.Values, 100*float64(o.Figures[c])/float64(max(o.Figures[run.Orders], 1)))
		}
		panels = append(panels, p)
	}
	return chart.Bars(names, panels)
}

// perHundred formats a figure. Only an exact zero is "0".
func perHundred(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.1:
		return "< 0.1"
	case v < 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
