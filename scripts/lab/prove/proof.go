package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"orderonce/scripts/lab/baselines"
	"orderonce/scripts/lab/guards"
	"orderonce/scripts/lab/simulation"
	"orderonce/scripts/lab/simulation/oracle"
)

// baselineWorlds is how many random worlds a baseline gets.
const baselineWorlds = 100_000

// selected are the three histories of docs/reference/proof.md: a payment that is saved
// after the charge, a record that expires, and a 500 that Stripe stores under the key.
func selected() []string { return []string{"bind", "idempotency-record-24h", "prepare-again"} }

// story is the shortest history in which a planted bug or a baseline breaks an invariant,
// in Markdown.
type story struct{ name, text string }

// writePages writes docs/reference/proof.md, and the full page, which also has the
// baselines and every history. It runs every baseline and every planted bug, which takes
// minutes.
func (o *orders) writePages(ctx context.Context, r simulation.Report, figures string) error {
	root, err := guards.Root(ctx)
	if err != nil {
		return err
	}
	planted, err := guards.All(root)
	if err != nil {
		return err
	}
	baseline, stories, err := baselineReport(baselines.All(), baselineWorlds)
	if err != nil {
		return err
	}
	bugs, more, err := bugReport(ctx, planted)
	if err != nil {
		return err
	}
	figures += "\nNo planted bug needs these: " + strings.Join(unneeded(planted, r), "; ") + ".\n"
	return o.fillPages(figures, bugs, baseline, append(stories, more...))
}

func (o *orders) fillPages(figures, bugs, baseline string, stories []story) error {
	parts := map[string]string{"figures": figures, "bugs": bugs}
	for _, name := range selected() {
		at := slices.IndexFunc(stories, func(s story) bool { return s.name == name })
		if at < 0 {
			return fmt.Errorf("write %s: no history of %s", o.Page, name)
		}
		parts["histories"] += stories[at].text + "\n"
	}
	if err := rewrite(o.Page, parts); err != nil {
		return err
	}
	page, err := os.ReadFile(o.Page)
	if err != nil {
		return err
	}
	all := []string{"## The baselines\n\n" + baseline, "## Every history\n"}
	for _, s := range stories {
		all = append(all, s.text)
	}
	full, err := fill(string(page), map[string]string{"histories": strings.Join(all, "\n")})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(o.Full), 0o750)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(o.Full, []byte(full), 0o600) //nolint:gosec // G703: the caller's own path
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

// baselineReport returns a table of the baselines and their histories. A baseline that is
// not caught is an error: the simulation would then prove nothing about the product
// either.
func baselineReport(all []baselines.Baseline, worlds int) (text string, stories []story, err error) {
	var b strings.Builder
	b.WriteString("| baseline | what it does | breaks | after worlds |\n|---|---|---|---:|\n")
	for _, baseline := range all {
		f := searchBaseline(baseline, oracle.ChargedOnce, worlds).Worst
		if f == nil {
			return "", nil, fmt.Errorf("baseline %q: no order was charged twice in %d worlds", baseline.Name, worlds)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d |\n", baseline.Name, baseline.Does, f.Violation.Invariant, f.After)
		stories = append(stories, story{baseline.Name, fmt.Sprintf("### %s\n\nA baseline: %s.\n\n%s\n\n%s\n",
			baseline.Name, baseline.Does, f.History.Markdown(), f.Violation)})
	}
	return b.String(), stories, nil
}

// bugReport returns a table of the planted bugs that the simulation finds, and their
// histories, as make break prints them.
func bugReport(ctx context.Context, all []guards.Guard) (text string, stories []story, err error) {
	var b strings.Builder
	for _, g := range all {
		if !g.Catcher.IsSimulation() {
			continue
		}
		//nolint:gosec // G204: our own arguments
		out, err := exec.CommandContext(ctx, "go", "run", "./guards/break", g.Name).Output()
		if err != nil {
			return "", nil, fmt.Errorf("go -C scripts/lab run ./guards/break %s: %w\n%s", g.Name, err, out)
		}
		after := ""
		if found := regexp.MustCompile(`found after (\d+)`).FindSubmatch(out); found != nil {
			after = string(found[1])
		}
		stories = append(stories, story{g.Name, fmt.Sprintf("### %s\n\nA planted bug. %s\n\n```\n%s```\n",
			g.Name, g.Summary, historyOf(string(out)))})
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", g.Name, g.Summary, g.CaughtBy(), after, g.Needs)
	}
	return fmt.Sprintf("%d of the %d patches in `scripts/lab/guards/patches`, after so many schedules or "+
		"worlds:\n\n| bug | what it removes | breaks | after | needs |\n|---|---|---|---:|---|\n%s",
		len(stories), len(all), b.String()), stories, nil
}

// historyOf returns the history in the output of make break.
func historyOf(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if strings.ContainsAny(line, "┌│├└") || strings.Contains(line, " broken for order ") {
			b.WriteString(line)
		}
	}
	return b.String()
}
