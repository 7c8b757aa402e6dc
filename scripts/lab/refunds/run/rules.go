package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"orderonce/scripts/lab/guards"
	"orderonce/scripts/lab/refunds"
)

// row is a line of the table.
type row struct {
	Name, Does string
	CaughtBy   string // of a rule
	Reports    reports
}

// withoutRules runs the worlds without each rule of the protocol that a patch removes, in
// a process of its own.
func withoutRules(ctx context.Context, progress io.Writer, o options) (all []row, err error) {
	root, err := guards.Root(ctx)
	if err != nil {
		return nil, err
	}
	planted, err := guards.All(root)
	if err != nil {
		return nil, err
	}
	for _, g := range planted {
		if !strings.Contains(g.Name, "refund-") {
			continue
		}
		r := row{Name: g.Name, Does: g.Summary, CaughtBy: g.CaughtBy()}
		if inWorlds(g) {
			_, _ = fmt.Fprintln(progress, "without", g.Name)
			if r.Reports, err = without(ctx, root, g, o); err != nil {
				return nil, err
			}
		}
		all = append(all, r)
	}
	return all, nil
}

// inWorlds reports whether the worlds run the code that a patch changes.
func inWorlds(g guards.Guard) bool {
	for _, f := range g.Files() {
		if strings.HasPrefix(f.Path, "adapters/") {
			return false
		}
	}
	return true
}

// without runs the worlds without a rule.
func without(ctx context.Context, root string, g guards.Guard, o options) (counts reports, err error) {
	dir, err := os.MkdirTemp("", "orderonce-refunds-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if removeErr := os.RemoveAll(dir); err == nil {
			err = removeErr
		}
	}()
	overlay, err := g.Remove(ctx, root, dir)
	if err != nil {
		return nil, err
	}
	//nolint:gosec // G204: the arguments are our own
	cmd := exec.CommandContext(ctx, "go", "run", "-overlay", overlay, "./refunds/run", "--count",
		"--worlds", strconv.Itoa(o.Worlds), "--seed", strconv.FormatUint(o.Seed, 10))
	cmd.Dir, cmd.Stderr = filepath.Join(root, "scripts", "lab"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run the worlds without %s: %w", g.Name, err)
	}
	if err := json.Unmarshal(out, &counts); err != nil {
		return nil, fmt.Errorf("counts without %s: %w", g.Name, err)
	}
	return counts, nil
}

// table returns a table of broken worlds, and of what catches a missing rule.
func table(first string, all []row) string {
	var b strings.Builder
	const head = "| %s | what it is | kind | worst | keyless | aged | caught by |\n|---|---|---:|---:|---:|---:|---|\n"
	fmt.Fprintf(&b, head, first)
	for _, r := range all {
		fmt.Fprintf(&b, "| %s | %s |", r.Name, r.Does)
		for _, class := range refunds.Classes() {
			fmt.Fprintf(&b, " %s |", cell(r.Reports, class))
		}
		fmt.Fprintf(&b, " %s |\n", r.CaughtBy)
	}
	return b.String()
}

// cell returns the broken worlds of a class: made twice + others.
func cell(r reports, class refunds.Class) string {
	if r == nil {
		return ""
	}
	others := 0
	for invariant, n := range r[class].Broken {
		if invariant != refunds.MadeOnce {
			others += n
		}
	}
	text := strconv.Itoa(r[class].Broken[refunds.MadeOnce])
	if others > 0 {
		text += " + " + strconv.Itoa(others)
	}
	return text
}
