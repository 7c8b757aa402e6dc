package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orderonce/scripts/lab/storm/run"
)

// figuresHead starts what is generated of the page. People write what is before it.
const figuresHead = "\n## What became of the orders\n"

// write writes the chart, and the page from its figures on.
func write(docs string, a arguments, outcomes []run.Outcome, used usage) error {
	path := filepath.Join(docs, "reference", "storm.md")
	before, err := os.ReadFile(path) //nolint:gosec // G304: the page in the folder of the command line
	if err != nil {
		return err
	}
	text, _, found := strings.Cut(string(before), figuresHead)
	if !found {
		return fmt.Errorf("%s: no heading %q", path, figuresHead)
	}
	//nolint:gosec // G306: docs are public
	if err := os.WriteFile(filepath.Join(docs, "storm.svg"), []byte(chart(outcomes)), 0o644); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text+generated(a, outcomes, used)), 0o644) //nolint:gosec // G306: as above
}

// generated returns the page from its figures on.
func generated(a arguments, outcomes []run.Outcome, used usage) string {
	var b strings.Builder
	b.WriteString(figuresHead + "\n" + figures(outcomes).RenderMarkdown() + "\n")
	for _, o := range outcomes {
		if len(o.Checks) > 0 {
			b.WriteString(besideCharges)
			for _, f := range facts(o) {
				fmt.Fprintf(&b, "| %s | %d |\n", f.text, f.figure)
			}
			fmt.Fprintf(&b, audited, o.Books.Orders, o.Books.Matched, o.Books.Differing)
			fmt.Fprintf(&b, "\n## The invariants of %s\n\n%s.\n\n| invariant | | broken |\n|---|---|---:|\n",
				o.Handler.Name, summary(o))
			for _, check := range o.Checks {
				fmt.Fprintf(&b, "| %s | %s | %d |\n", check.ID, check.Claim, len(check.Broken))
			}
			b.WriteString("\n| fault profile | failed calls |\n|---|---:|\n")
			for _, profile := range slices.Sorted(maps.Keys(o.Faults)) {
				fmt.Fprintf(&b, "| %s | %d |\n", profile, o.Faults[profile])
			}
		}
	}
	b.WriteString("\n## The handlers\n\n| handler | what it does | where it fails |\n|---|---|---|\n")
	for _, o := range outcomes {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", o.Handler.Name, o.Handler.Does, o.Handler.Fails)
	}
	fmt.Fprintf(&b, "\n## How to repeat it\n\n    %s\n\n%v\n", a.command(), used)
	return b.String()
}

// command returns the command line that repeats the run.
func (a arguments) command() string {
	line := fmt.Sprintf(
		"go -C scripts/lab run ./storm --seed=%d --orders=%d --baselines=%d --kills=%d --duplicates=%g --instances=%d",
		a.Seed, a.Orders, a.Baselines, a.Kills, a.Duplicates, a.Instances,
	)
	if a.FIFO {
		line += " --fifo"
	}
	if a.NoFaults {
		line += " --no-faults"
	}
	return line + " --docs=../../docs"
}

const besideCharges = `
## Beside the charges

Refunds, cancels, orders by HTTP, stock, events and receipts of orderonce. The baselines have none.

| | |
|---|---:|
`

const audited = `
## The operator's audit

At the end, the compiled ` + "`orders audit`" + ` compared table and Stripe, as
[a person would](../guides/audit.md): %d orders, %d match, %d differ.
`
