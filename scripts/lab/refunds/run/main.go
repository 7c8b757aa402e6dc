// Command run is `make prove-refunds`, which `make prove` runs too. It runs random worlds
// with the product's refunds and with the usual code, and prints how many break an
// invariant, with the shortest history of one. With --rules it also runs them without
// each rule of the protocol, and with --page it writes docs/reference/refund-proof.md.
// With --replay it prints one world again.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"orderonce/scripts/lab/prove"
	"orderonce/scripts/lab/refunds"
	"orderonce/scripts/lab/stage"
)

type options struct {
	Worlds int    `default:"10000" help:"How many random worlds of each class to run."`
	Seed   uint64 `default:"1"     help:"The first world's seed."`
	Faults int    `default:"2"     help:"How many faults the searched schedules have at most."`
	Rules  bool   `help:"Also run the worlds without each rule of the protocol: minutes."`
	Page   string `help:"Write this page; implies --rules."`
	Count  bool   `help:"Print the counts of the product as JSON, and nothing else."`
	Replay string `help:"Print the history of one world, such as worst/42."`
}

func main() {
	prove.Main(new(options), "prove-refunds",
		"Search random worlds with faults for one in which a refund is made twice, lost or called wrongly.")
}

// Prove runs the worlds of every class, and searches the small cases.
func (o *options) Prove(ctx context.Context, out, errOut io.Writer) error {
	if o.Replay != "" {
		return replay(ctx, out, o.Replay)
	}
	start := time.Now()
	product := search(ctx, *o, nil)
	if o.Count {
		return json.NewEncoder(out).Encode(product)
	}
	all := []row{{Name: "the product", Does: "nothing is removed", Reports: product}}
	for _, b := range refunds.Baselines() {
		all = append(all, row{Name: b.Name, Does: b.Does, Reports: search(ctx, *o, b.Consume)})
	}
	reports := refunds.SearchEvery(ctx, o.Faults)
	took := time.Since(start)
	var rules []row
	if o.Rules || o.Page != "" {
		var err error
		if rules, err = withoutRules(ctx, errOut, *o); err != nil {
			return err
		}
	}
	searched, found := searchedText(reports)
	_, err := fmt.Fprintf(out, "%s\n%s\n%.0f s\n",
		searched, table("protocol", slices.Concat(all, rules)), took.Seconds())
	if err == nil && o.Page != "" {
		err = writePage(*o, searched, all, rules)
	}
	if err == nil && found != nil {
		err = prove.Verdict(out, found, "")
	}
	if err != nil {
		return err
	}
	return verdict(out, product)
}

// searchedText returns a table of the complete searches, and the first finding or nil.
func searchedText(all []stage.Report) (text string, found *stage.Finding) {
	var b strings.Builder
	b.WriteString("| case | schedules | broken |\n|---|---:|---|\n")
	total := 0
	for i, c := range refunds.Every() {
		r, broken := all[i], ""
		if total += r.Schedules; r.Found != nil {
			found, broken = cmp.Or(found, r.Found), r.Found.Violation.String()
		}
		fmt.Fprintf(&b, "| %s | %d | %s |\n", c.Name, r.Schedules, broken)
	}
	fmt.Fprintf(&b, "| all | %d | |\n", total)
	return b.String(), found
}

// reports are the figures of each class.
type reports map[refunds.Class]refunds.Report

// search runs the worlds of every class.
func search(ctx context.Context, o options, consume refunds.Consumer) reports {
	all := reports{}
	for _, class := range refunds.Classes() {
		s := refunds.Search{Class: class, Seed: o.Seed, Worlds: o.Worlds, Consume: consume}
		if consume != nil {
			s.Only = refunds.MadeOnce
		}
		all[class] = s.Run(ctx)
	}
	return all
}

func verdict(out io.Writer, product reports) error {
	for _, class := range refunds.Classes() {
		if f := product[class].Best; f != nil {
			return prove.Verdict(out, f, fmt.Sprintf("./refunds/run --replay %s/%d", class, f.Seed))
		}
	}
	return prove.Verdict(out, nil, "")
}

func replay(ctx context.Context, out io.Writer, name string) error {
	class, number, _ := strings.Cut(name, "/")
	seed, err := strconv.ParseUint(number, 10, 64)
	if err != nil || !slices.Contains(refunds.Classes(), refunds.Class(class)) {
		return fmt.Errorf("replay %q: want a class and a seed, such as worst/42", name)
	}
	history, found := refunds.Search{Class: refunds.Class(class)}.Replay(ctx, seed)
	if found == nil {
		return prove.Replayed(out, history, nil, "")
	}
	return prove.Replayed(out, history, found, "")
}
