package main

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"
	"time"
)

// show prints the figures, four of them beside a target for a developer's machine, and
// how they were measured.
func show(w io.Writer, p plan, f figures, took time.Duration) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(figure, format string, measured, most, least float64) {
		target, verdict := "", ""
		if most > 0 {
			target = fmt.Sprintf("at most "+format, most)
		} else if least > 0 {
			target = fmt.Sprintf("at least "+format, least)
		}
		if most > 0 && measured > most || measured < least {
			verdict = "missed" // on a busy machine this means little
		}
		_, _ = fmt.Fprintf(t, "%s\t"+format+"\t%s\t%s\n", figure, measured, target, verdict)
	}
	row("process start to first response", "%.1f ms", f.FirstResponseMS, 20, 0)
	row("fresh orders, one instance", "%.0f /s", f.Fresh.PerSecond, 0, 800)
	row("CPU of a fresh order", "%.2f ms", f.Fresh.CPUMS, 0, 0)
	row("duplicates, one instance", "%.0f /s", f.Duplicates.PerSecond, 0, 0)
	row("CPU of a duplicate", "%.2f ms", f.Duplicates.CPUMS, 0, 0)
	row("peak memory (RSS)", "%.1f MiB", float64(f.PeakRSSBytes)/(1<<20), 30, 0)
	row("zip", "%.2f MB", float64(f.ZipBytes)/1e6, 4.5, 0)
	_ = t.Flush()
	_, _ = fmt.Fprintf(w, `
Medians of %d rounds: %d cold starts, %d fresh orders in batches of %d, %d duplicates; %.0f s on
%s/%s, %d processors, %s. A fresh order made %.2f calls to DynamoDB and Stripe, a duplicate %.2f.
The canned back ends respond at once and share the processors with the function. Memory is the peak
after all orders; the zip contains the measured binary.
`, p.Rounds, p.Rounds*p.ColdStarts, p.Rounds*p.Batches*batchSize, batchSize, p.Rounds*p.Duplicates*batchSize,
		took.Seconds(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(),
		f.CallsPerOrder, f.CallsDuplicate)
}
