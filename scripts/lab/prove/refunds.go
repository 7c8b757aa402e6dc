package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"orderonce/scripts/lab/guards"
	search "orderonce/scripts/lab/refunds"
	"orderonce/scripts/lab/stage"
)

type refunds struct {
	Worlds int    `default:"10000" help:"How many random worlds of each class to run."`
	Seed   uint64 `default:"1"     help:"The first world's seed."`
	Faults int    `default:"2"     help:"How many faults the searched schedules have at most."`
	Rules  bool   `help:"Also run the worlds without each rule of the protocol: minutes."`
	Page   string `help:"Write this page; implies --rules."`
	Count  bool   `help:"Print the counts of the product as JSON, and nothing else."`
	Replay string `help:"Print the history of one world, such as worst/42."`
}

// row is a protocol, or the product without a rule.
type row struct {
	Name, Does string
	CaughtBy   string // of a rule
	Reports    reports
}

// reports are the figures of each class; nil if no world runs the code of a rule.
type reports map[search.Class]search.Report

// Run runs the worlds of every class, and searches the small cases.
func (o *refunds) Run(ctx context.Context, s screen) error {
	if o.Replay != "" {
		return o.replay(ctx, s)
	}
	start := time.Now()
	product := o.search(ctx, nil)
	if o.Count {
		return json.NewEncoder(s.out).Encode(product)
	}
	protocols := []row{{Name: "the product", Does: "nothing is removed", Reports: product}}
	for _, b := range search.Baselines() {
		protocols = append(protocols, row{Name: b.Name, Does: b.Does, Reports: o.search(ctx, b.Consume)})
	}
	reports := search.SearchEvery(ctx, o.Faults)
	took := time.Since(start)
	var rules []row
	var err error
	if o.Rules || o.Page != "" {
		if rules, err = o.withoutRules(ctx, s); err != nil {
			return err
		}
	}
	parts, found := o.parts(reports, protocols, rules)
	_, _ = fmt.Fprintf(s.out, "%s\n%s\n%s%.0f s\n",
		parts["schedules"], parts["worlds"], parts["rules"], took.Seconds())
	if o.Page != "" {
		err = rewrite(o.Page, parts)
	}
	if err == nil && found != nil {
		err = s.verdict(found, "")
	}
	if err != nil {
		return err
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

// withoutRules runs the worlds without each rule of the protocol that a patch removes.
func (o *refunds) withoutRules(ctx context.Context, s screen) (all []row, err error) {
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
		inAdapter := slices.ContainsFunc(g.Files(), func(f guards.File) bool {
			return strings.HasPrefix(f.Path, "adapters/")
		})
		if !inAdapter { // which the worlds do not run
			_, _ = fmt.Fprintln(s.progress, "without", g.Name)
			if r.Reports, err = o.without(ctx, root, g); err != nil {
				return nil, err
			}
		}
		all = append(all, r)
	}
	return all, nil
}

// without runs the worlds without a rule, in a process of its own.
func (o *refunds) without(ctx context.Context, root string, g guards.Guard) (counts reports, err error) {
	err = g.Without(root, func(overlay string) error {
		//nolint:gosec // G204: the arguments are our own
		cmd := exec.CommandContext(ctx, "go", "run", "-overlay", overlay, "./prove", "refunds", "--count",
			"--worlds", strconv.Itoa(o.Worlds), "--seed", strconv.FormatUint(o.Seed, 10))
		cmd.Dir, cmd.Stderr = filepath.Join(root, "scripts", "lab"), os.Stderr
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(out, &counts)
		}
		if err != nil {
			return fmt.Errorf("run the worlds without %s: %w", g.Name, err)
		}
		return nil
	})
	return counts, err
}

// parts returns the generated parts of docs/reference/refund-proof.md, and the first
// finding of the complete searches or nil.
func (o *refunds) parts(searched []stage.Report, protocols, rules []row) (map[string]string, *stage.Finding) {
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
			o.Worlds, o.Seed, table("protocol", protocols), strings.Join(unknown, ", "), strings.Join(excused, ", ")),
		"rules": table("without", rules),
	}, found
}

func table(first string, all []row) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	const head = "| %s | what it is | kind | worst | keyless | aged | caught by |\n" +
		"|---|---|---:|---:|---:|---:|---|\n"
	fmt.Fprintf(&b, head, first)
	for _, r := range all {
		fmt.Fprintf(&b, "| %s | %s |", r.Name, r.Does)
		for _, class := range search.Classes() {
			fmt.Fprintf(&b, " %s |", cell(r.Reports, class))
		}
		fmt.Fprintf(&b, " %s |\n", r.CaughtBy)
	}
	return b.String()
}

// cell returns the broken worlds of a class: made twice + others.
func cell(r reports, class search.Class) string {
	if r == nil {
		return ""
	}
	others := 0
	for invariant, n := range r[class].Broken {
		if invariant != search.MadeOnce {
			others += n
		}
	}
	text := strconv.Itoa(r[class].Broken[search.MadeOnce])
	if others > 0 {
		text += " + " + strconv.Itoa(others)
	}
	return text
}
