package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"orderonce/scripts/invariants"
	"orderonce/scripts/lab/chart"
	"orderonce/scripts/lab/storm/run"
	"orderonce/scripts/local/faults"
)

// columns are the figures of every handler.
func columns() []run.Figure { return append(run.Errors(), run.Settled, run.Extra) }

// figures returns the table of the figures.
func figures(outcomes []run.Outcome) table.Writer { //nolint:ireturn // the library has no concrete type
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	header := table.Row{"handler", "version", run.Orders}
	for _, c := range columns() {
		header = append(header, c)
	}
	t.AppendHeader(header)
	for _, o := range outcomes {
		row := table.Row{o.Handler.Name, o.Handler.Version, o.Figures[run.Orders]}
		for _, c := range columns() {
			row = append(row, o.Figures[c])
		}
		t.AppendRow(row)
	}
	return t
}

// show prints the table, and what else is known of the product.
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

// write writes the chart, and the page from its figures on.
func write(docs string, a arguments, outcomes []run.Outcome, used usage) error {
	return chart.WritePage(docs, "reference/storm.md", figuresHead,
		generated(a, outcomes, used), "storm.svg", drawn(outcomes))
}

// generated returns the page from its figures on.
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
