package main

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// target is a bound of a figure on a developer's machine.
type target struct {
	figure, unit string
	digits       int
	measured     float64
	most, least  float64 // at most one of them; both 0: no target
}

func (t target) missed() bool {
	return t.most > 0 && t.measured > t.most || t.measured < t.least
}

// String returns the bound, or "" if there is none.
func (t target) String() string {
	switch {
	case t.most > 0:
		return fmt.Sprintf("at most %g %s", t.most, t.unit)
	case t.least > 0:
		return fmt.Sprintf("at least %g %s", t.least, t.unit)
	}
	return ""
}

func targets(f figures) []target {
	const mebi = 1 << 20
	return []target{
		{figure: "process start to first response", unit: "ms", digits: 1, measured: f.FirstResponseMS, most: 20},
		{figure: "fresh orders, one instance", unit: "/s", measured: f.Fresh.PerSecond, least: 800},
		{figure: "CPU of a fresh order", unit: "ms", digits: 2, measured: f.Fresh.CPUMS},
		{figure: "duplicates, one instance", unit: "/s", measured: f.Duplicates.PerSecond},
		{figure: "CPU of a duplicate", unit: "ms", digits: 2, measured: f.Duplicates.CPUMS},
		{figure: "peak memory (RSS)", unit: "MiB", digits: 1, measured: float64(f.PeakRSSBytes) / mebi, most: 30},
		{figure: "zip", unit: "MB", digits: 2, measured: float64(f.ZipBytes) / 1e6, most: 4.5},
	}
}

// show prints the table and how it was measured.
func show(w io.Writer, p plan, f figures, took time.Duration) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 3, Align: text.AlignRight}})
	t.AppendHeader(table.Row{"figure", "target", "measured", ""})
	missed := 0
	for _, a := range targets(f) {
		verdict := ""
		if a.missed() {
			missed++
			verdict = "missed"
		}
		measured := fmt.Sprintf("%.*f %s", a.digits, a.measured, a.unit)
		if a.measured == 0 {
			measured = "not available"
		}
		t.AppendRow(table.Row{a.figure, a, measured, verdict})
	}
	t.Render()
	fmt.Fprintf(w, `
Medians of %d rounds: %d cold starts, %d fresh orders in batches of %d, %d duplicates; %.0f s on
%s/%s, %d processors, %s. A fresh order made %.2f calls to DynamoDB and Stripe, a duplicate %.2f.
The canned back ends respond at once and share the processors with the function. Memory is the peak
after all orders; the zip contains the measured binary.
`, p.Rounds, p.Rounds*p.ColdStarts, p.orders(), batchSize, p.Rounds*p.Duplicates*batchSize, took.Seconds(),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), f.CallsPerOrder, f.CallsDuplicate)
	if missed > 0 {
		fmt.Fprintf(w,
			"%d targets missed. On a busy machine this means little: measure again on a quiet one.\n", missed)
	}
}
