package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"orderonce/scripts/lab/guards"
	"orderonce/scripts/lab/simulation"
)

// selected are the planted bugs whose histories are in docs/reference/proof.md: a payment
// that is saved after the charge, and a 500 that Stripe stores under the key.
func selected() []string { return []string{"bind", "prepare-again"} }

// writePage writes docs/reference/proof.md.
func (o *orders) writePage(ctx context.Context, r simulation.Report, figures string) error {
	root, err := guards.Root(ctx)
	if err != nil {
		return err
	}
	planted, err := guards.All(root)
	if err != nil {
		return err
	}
	var histories strings.Builder
	for _, name := range selected() {
		text, err := historyOf(ctx, root, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&histories, "### %s\n\n%s\n", name, text)
	}
	return rewrite(o.Page, map[string]string{
		"figures":   figures + "\nNo planted bug needs these: " + strings.Join(unneeded(planted, r), "; ") + ".\n",
		"histories": histories.String(),
	})
}

// unneeded returns the faults of a run without which every planted bug would still be
// found.
func unneeded(all []guards.Guard, r simulation.Report) []string {
	return slices.DeleteFunc(deviationsOf(r.Tally), func(what string) bool {
		return slices.ContainsFunc(all, func(g guards.Guard) bool {
			return strings.Contains("; "+g.Needs+"; ", "; "+what+"; ") || strings.Contains(g.Needs, what+": ")
		})
	})
}

// historyOf returns the shortest history in which a planted bug breaks an invariant, in
// Markdown.
func historyOf(ctx context.Context, root, name string) (string, error) {
	g, err := guards.Find(root, name)
	if err != nil {
		return "", err
	}
	//nolint:gosec // G204: our own arguments
	out, err := exec.CommandContext(ctx, "go", "run", "./guards/break", name).Output()
	if err != nil {
		return "", fmt.Errorf("go -C scripts/lab run ./guards/break %s: %w\n%s", name, err, out)
	}
	return fmt.Sprintf("A planted bug. %s\n\n```\n%s```\n", g.Summary, historyIn(string(out))), nil
}

// historyIn returns the history in the output of make break.
func historyIn(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if strings.ContainsAny(line, "┌│├└") || strings.Contains(line, " broken for order ") {
			b.WriteString(line)
		}
	}
	return b.String()
}
