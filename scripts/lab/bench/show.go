package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"orderonce/scripts/lab/chart"
)

type column struct {
	name, format string
	of           func(*subject) []float64
}

func columns(s setting) []column {
	all := []column{
		{"fresh orders/s", "%.0f", func(s *subject) []float64 { return s.Fresh.PerSecond }},
		{"CPU ms/order", "%.3f", func(s *subject) []float64 { return s.Fresh.CPUMS }},
		{"duplicates/s", "%.0f", func(s *subject) []float64 { return s.Duplicate.PerSecond }},
		{"CPU ms/duplicate", "%.3f", func(s *subject) []float64 { return s.Duplicate.CPUMS }},
		{"RSS MiB", "%.1f", func(s *subject) []float64 { return []float64{s.PeakRSS / (1 << 20)} }},
	}
	if s.Singles > 0 {
		all = []column{
			{"an order, ms", "%.1f", func(s *subject) []float64 { return s.Fresh.SingleMS }},
			{"p99", "%.1f", func(s *subject) []float64 { return percentile(s.Fresh.SingleMS, 99) }},
			{"a batch of ten", "%.1f", func(s *subject) []float64 { return s.Fresh.BatchMS }},
			{"p99 ", "%.1f", func(s *subject) []float64 { return percentile(s.Fresh.BatchMS, 99) }},
			{"a duplicate, ms", "%.1f", func(s *subject) []float64 { return s.Duplicate.SingleMS }},
			{"orders/s", "%.0f", func(s *subject) []float64 { return s.Fresh.PerSecond }},
		}
	}
	if s.ColdStarts > 0 {
		all = append([]column{
			{"ready, ms", "%.1f", func(s *subject) []float64 { return s.InitMS }},
			{"first response, ms", "%.1f", func(s *subject) []float64 { return s.FirstMS }},
		}, all...)
	}
	return all
}

// tableOf returns a table whose columns are a name and these.
func tableOf(first string, columns []column) table.Writer { //nolint:ireturn // as figuresOf
	header := table.Row{first}
	for _, c := range columns {
		header = append(header, c.name)
	}
	return chart.Table(header...)
}

// figuresOf returns the medians in one setting, with half of the range that has the
// middle half of the samples.
//
//nolint:ireturn // the library has no concrete type
func figuresOf(set setting, subjects []*subject) table.Writer {
	all := columns(set)
	t := tableOf("", all)
	for _, s := range subjects {
		row := table.Row{s.Name}
		for _, c := range all {
			samples := c.of(s)
			cell := fmt.Sprintf(c.format, median(samples))
			if len(samples) > 1 {
				spread := percentile(samples, 75)[0] - percentile(samples, 25)[0]
				cell += fmt.Sprintf(" ± "+c.format, spread/2)
			}
			row = append(row, cell)
		}
		t.AppendRow(row)
	}
	return t
}

// ratiosOf returns what each function has of a figure for 1 of orderonce's: the median of
// the ratios of each round.
func ratiosOf(set setting, subjects []*subject) table.Writer { //nolint:ireturn // as figuresOf
	all := slices.DeleteFunc(columns(set), func(c column) bool { return c.name == "p99" || c.name == "p99 " })
	t := tableOf("for 1 of orderonce", all)
	for _, s := range subjects[1:] {
		row := table.Row{s.Name}
		for _, c := range all {
			row = append(row, fmt.Sprintf("%.2f", ratio(c.of(s), c.of(subjects[0]))))
		}
		t.AppendRow(row)
	}
	return t
}

func show(w io.Writer, m *measurement, rounds int, took time.Duration) {
	for i, set := range m.settings {
		fmt.Fprintf(w, "\n%s\n", set.Name)
		for _, t := range []table.Writer{figuresOf(set, m.all[i]), ratiosOf(set, m.all[i])} {
			t.SetOutputMirror(w)
			t.Render()
		}
	}
	fmt.Fprintln(w)
	for _, s := range m.all[0] {
		fmt.Fprintf(w, "%s: %.2f calls for a fresh order, %.2f for a duplicate; zip %.2f MB\n",
			s.Name, s.Fresh.Calls, s.Duplicate.Calls, s.ZipSize/1e6)
	}
	for _, note := range m.notes {
		fmt.Fprintln(w, note)
	}
	fmt.Fprintf(w, "Medians of %d rounds, ± half of the middle half; %.0f s on %s.\n",
		rounds, took.Seconds(), machine())
}

func machine() string {
	return fmt.Sprintf("%s/%s, %d processors, %s",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}

func median(all []float64) float64 { return percentile(all, 50)[0] }

// percentile returns a percentile of the samples, as their only one; 0 without samples.
func percentile(all []float64, p int) []float64 {
	if len(all) == 0 {
		return []float64{0}
	}
	return []float64{slices.Sorted(slices.Values(all))[min(len(all)*p/100, len(all)-1)]}
}

// ratio returns the median of the ratios of samples that were taken in turns.
func ratio(of, to []float64) float64 {
	var ratios []float64
	for i := range min(len(of), len(to)) {
		ratios = append(ratios, of[i]/to[i])
	}
	return median(ratios)
}
