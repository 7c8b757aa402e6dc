package main

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// The statuses of gremlins.
const (
	killed     = "KILLED"
	lived      = "LIVED"
	timedOut   = "TIMED OUT"
	notCovered = "NOT COVERED"
	notViable  = "NOT VIABLE" // it does not compile
)

// mutant is one change of the code and its status.
type mutant struct {
	place

	status string
	line   int
}

// result is the result of one package.
type result struct {
	pkg                                 string
	killed, lived, timedOut, notCovered int
	listed                              int // of those that lived
	survivors                           []mutant
	problems                            []string
}

// judge counts the mutants of a package and compares them with the known survivors.
func judge(pkg string, mutants []mutant, known []survivor) result {
	r := result{pkg: pkg}
	found, controls := map[place]map[string]int{}, controls(pkg)
	for _, m := range mutants {
		if want, isControl := controls[m.place]; isControl {
			delete(controls, m.place)
			if m.status != want {
				r.problems = append(r.problems, fmt.Sprintf("control mutant of %s is %s, want %s: its tests fail for "+
					"another reason, or other tests were run; the figures are invalid", pkg, m.status, want))
			}
			continue
		}
		r.count(m, listed(known, m.place))
		if found[m.place] == nil {
			found[m.place] = map[string]int{}
		}
		found[m.place][m.status]++
	}
	if len(controls) > 0 {
		r.problems = append(r.problems, fmt.Sprintf("no control mutant of %s: nothing was tested", pkg))
	}
	for _, s := range known {
		if path.Dir(s.File) != pkg {
			continue
		}
		switch at := found[s.place]; {
		case len(at) == 0:
			r.problems = append(r.problems,
				fmt.Sprintf("listed survivor not found; remove it from the list:\n%s", s.place))
		case at[lived] == 0:
			r.problems = append(r.problems,
				fmt.Sprintf("listed survivor is killed; remove it from the list:\n%s", s.place))
		}
	}
	return r
}

func (r *result) count(m mutant, listed bool) {
	switch m.status {
	case killed:
		r.killed++
	case lived:
		r.lived++
	case timedOut:
		r.timedOut++
	case notCovered:
		r.notCovered++
	}
	switch {
	case m.status != lived:
	case listed:
		r.listed++
	default:
		r.survivors = append(r.survivors, m)
	}
}

// efficacy returns the percentage of killed mutants among those that were killed or
// lived, without the listed ones, as gremlins counts. A mutant that timed out has an
// endless loop, waits for something that never comes, or had a busy machine: it counts
// neither way.
func (r result) efficacy() float64 {
	return percent(r.killed, r.killed+r.lived-r.listed)
}

// coverage returns the percentage of the mutants that a test reaches.
func (r result) coverage() float64 {
	tested := r.killed + r.lived + r.timedOut
	return percent(tested, tested+r.notCovered)
}

func percent(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// show prints the unlisted survivors in the format of the list, and a row for each
// package.
func show(out io.Writer, results []result) error {
	var b strings.Builder
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{
		"package", "killed", "lived", "timed out", "listed", "not covered", "efficacy", "mutator coverage",
	})
	for _, r := range results {
		for _, m := range r.survivors {
			fmt.Fprintf(&b, "%s, line %d of\n%s%s\n\n", m.status, m.line, m.place, because)
		}
		t.AppendRow(table.Row{
			r.pkg, r.killed, r.lived, r.timedOut, r.listed, r.notCovered,
			fmt.Sprintf("%.1f %%", r.efficacy()), fmt.Sprintf("%.1f %%", r.coverage()),
		})
	}
	_, err := fmt.Fprintf(out, "%s%s\n", b.String(), t.Render())
	return err
}

// verdict returns nil if every package has the wanted efficacy and no problem.
func verdict(results []result, want float64) error {
	var all []error
	for _, r := range results {
		for _, p := range r.problems {
			all = append(all, errors.New(p))
		}
		if got := r.efficacy(); got < want {
			all = append(all, fmt.Errorf("%s: efficacy %.1f %%, want at least %g %%", r.pkg, got, want))
		}
	}
	return errors.Join(all...)
}
