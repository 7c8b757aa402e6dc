package main

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"
	"time"
)

// show prints the figures, some of them beside a target for a developer's machine, and
// how they were measured. If two binaries were measured, the second is that of the base.
func show(w io.Writer, p plan, base string, measured []figures, took time.Duration) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(figure, format string, most, least float64, of func(figures) []float64) {
		now := of(measured[0])
		value := median(now)
		_, _ = fmt.Fprintf(t, "%s\t"+format+"\t", figure, value)
		if len(measured) > 1 {
			before := of(measured[1])
			_, _ = fmt.Fprintf(t, format+"\t%+.1f %%\t", median(before), change(now, before))
		}
		if most > 0 {
			_, _ = fmt.Fprintf(t, "at most "+format, most)
		} else if least > 0 {
			_, _ = fmt.Fprintf(t, "at least "+format, least)
		}
		if most > 0 && value > most || value < least {
			_, _ = fmt.Fprint(t, "\tmissed") // on a busy machine this means little
		}
		_, _ = fmt.Fprintln(t)
	}
	if len(measured) > 1 {
		_, _ = fmt.Fprintf(t, "\tnow\t%s\tchange\n", base)
	}
	row("process start to first response", "%.1f ms", 20, 0,
		func(f figures) []float64 { return f.FirstResponseMS })
	row("fresh orders, one instance", "%.0f /s", 0, 800, func(f figures) []float64 { return f.Fresh.PerSecond })
	row("CPU of a fresh order", "%.3f ms", 0, 0, func(f figures) []float64 { return f.Fresh.CPUMS })
	row("duplicates, one instance", "%.0f /s", 0, 0, func(f figures) []float64 { return f.Duplicates.PerSecond })
	row("CPU of a duplicate", "%.3f ms", 0, 0, func(f figures) []float64 { return f.Duplicates.CPUMS })
	row("peak memory (RSS)", "%.1f MiB", 30, 0, func(f figures) []float64 { return scaled(f.PeakRSS, 1<<20) })
	row("zip", "%.2f MB", 4.5, 0, func(f figures) []float64 { return scaled(f.ZipSize, 1e6) })
	_ = t.Flush()
	_, _ = fmt.Fprintf(w, `
Medians of %d rounds: %d cold starts, %d fresh orders in batches of %d, %d duplicates; %.0f s on
%s/%s, %d processors, %s. A fresh order made %.2f calls to DynamoDB and Stripe, a duplicate %.2f.
The canned back ends respond at once and share the processors with the function. Memory is the peak
after all orders; the zip contains the measured binary.
`, p.Rounds, p.Rounds*p.ColdStarts, p.Rounds*p.Batches*batchSize, batchSize, p.Rounds*p.Duplicates*batchSize,
		took.Seconds(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(),
		measured[0].Fresh.Calls, measured[0].Duplicates.Calls)
}

func scaled(all []float64, unit float64) (out []float64) {
	for _, n := range all {
		out = append(out, n/unit)
	}
	return out
}
