package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/scripts/lab/chart"
	"orderonce/scripts/lab/progress"
)

// figuresHead starts what is generated of the page. People write what is before it.
const figuresHead = "\n## The order function beside others\n"

// more is what the page has and the terminal does not.
type more struct {
	usage   []usage
	bursts  []burst
	batches []grown
	rows    []grown
}

// measureMore measures the other functions, bursts and growth. It takes minutes, most of
// them to fill a table.
func (m *measurement) measureMore(
	ctx context.Context, root, folder string, order function,
) (all more, err error) {
	engine, err := dynamodbtest.Find(os.Getenv, root)
	if err != nil {
		return all, err
	}
	if all.batches, err = m.batches(ctx, order, 10, 100, 1000, 10_000); err != nil {
		return all, err
	}
	w, err := startWhole(ctx, root, folder, engine,
		"order", "refund", "webhook", "intake", "reconcile", "publish", "receipt")
	if err != nil {
		return all, err
	}
	all.usage, err = w.use(ctx)
	if err == nil {
		all.bursts, err = w.bursts(ctx)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return all, err
	}
	if w, err = startWhole(ctx, root, folder, engine, "order"); err != nil {
		return all, err
	}
	small, err := startWhole(ctx, root, folder, dynamodbtest.Location{Endpoint: w.Engine.Endpoint}, "order")
	if err != nil {
		return all, errors.Join(err, w.Close())
	}
	report := progress.Every(10*time.Second, os.Stderr, time.Now)
	all.rows, err = w.rows(ctx, m.backends, small, report, 1000, 10_000, 100_000, 1_000_000)
	return all, errors.Join(err, small.Close(), w.Close())
}

// drawn draws the medians of the first settings that have them.
func (m *measurement) drawn() string {
	var names []string
	for _, s := range m.all[0] {
		names = append(names, s.Name)
	}
	panel := func(set int, title string, of func(*subject) []float64) chart.Panel {
		label := func(v float64) string {
			if v >= 100 {
				return fmt.Sprintf("%.0f", v)
			}
			return fmt.Sprintf("%.3g", v)
		}
		p := chart.Panel{Title: title, Color: chart.Blue, Label: label}
		for _, s := range m.all[set] {
			p.Values = append(p.Values, median(of(s)))
		}
		return p
	}
	const instant, tls, far = 0, 1, 2
	return chart.Bars(names, []chart.Panel{
		panel(instant, "CPU of a fresh order, ms", func(s *subject) []float64 { return s.Fresh.CPUMS }),
		panel(instant, "CPU of a duplicate, ms", func(s *subject) []float64 { return s.Duplicate.CPUMS }),
		panel(instant, "fresh orders a second", func(s *subject) []float64 { return s.Fresh.PerSecond }),
		panel(tls, "start to first response, TLS, ms", func(s *subject) []float64 { return s.FirstMS }),
		panel(far, "an order, 5 and 20 ms away, ms", func(s *subject) []float64 { return s.Fresh.SingleMS }),
		panel(instant, "RSS, MiB", func(s *subject) []float64 { return []float64{s.PeakRSS / (1 << 20)} }),
	})
}

// generated returns the page from its figures on.
func (m *measurement) generated(extra more, rounds int, took time.Duration) string {
	var b strings.Builder
	for i, set := range m.settings {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n%s\n", strings.ToUpper(set.Name[:1])+set.Name[1:],
			figuresOf(set, m.all[i]).RenderMarkdown(), ratiosOf(set, m.all[i]).RenderMarkdown())
	}
	b.WriteString("\n## Calls and zips\n\n| | calls for a fresh order | for a duplicate | zip, MB |\n" +
		"|---|---:|---:|---:|\n")
	for _, s := range m.all[0] {
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.2f |\n", s.Name, s.Fresh.Calls, s.Duplicate.Calls, s.ZipSize/1e6)
	}
	fmt.Fprintf(&b, "\n## What the guarantee costs\n\n%s\n", m.costs().RenderMarkdown())
	b.WriteString("\n## The other functions\n\n" + usageOf(extra.usage).RenderMarkdown() + "\n")
	b.WriteString("\n## Many at once\n\n| | seconds | charges |\n|---|---:|---:|\n")
	for _, x := range extra.bursts {
		fmt.Fprintf(&b, "| %s | %.1f | %d |\n", x.What, x.Seconds, x.Charges)
	}
	b.WriteString("\n## Larger batches, larger tables\n\n| | CPU of an order, ms | for 1 of the smallest | " +
		"RSS, MiB |\n|---|---:|---:|---:|\n")
	for _, all := range [][]grown{extra.batches, extra.rows} {
		for _, g := range all {
			rss := ""
			if g.RSS > 0 {
				rss = fmt.Sprintf("%.0f", g.RSS)
			}
			fmt.Fprintf(&b, "| %s | %.3f | %.2f | %s |\n", g.What, g.CPUMS, g.Ratio, rss)
		}
	}
	for _, note := range m.notes {
		fmt.Fprintf(&b, "\n%s\n", note)
	}
	fmt.Fprintf(&b, "\n## How to repeat it\n\n    make bench-page\n\nMedians of %d rounds, ± half of the "+
		"middle half; %.0f s on %s, on %s.\n", rounds, took.Seconds(), machine(), time.Now().Format(time.DateOnly))
	return b.String()
}

// Prices of us-east-1 in dollars, on 2026-11-28, as docs/guides/deploy.md has them.
const (
	writeUnit    = 0.625 / 1e6
	gigabyteTime = 0.0000133334 // a second, arm64
	memory       = 0.25         // GB
)

// costs compares an order with that of the plain handler: calls, time, and dollars of a
// million orders. A call to Stripe takes 0.7 s, and ten orders share a batch. The write
// units of orderonce are those of docs/reference/row.md: two of the index, four of a
// transaction.
func (m *measurement) costs() table.Writer { //nolint:ireturn // as figuresOf
	t := chart.Table(
		"", "calls to DynamoDB, to Stripe", "write units", "an order, ms", "CPU ms",
		"writes, dollars a million", "Lambda, dollars a million", "a duplicate, ms", "dollars a million duplicates",
	)
	const stripeSeconds = 0.7
	far := m.all[len(m.all)-1]
	for i, set := range m.settings {
		if set.Name == distant {
			far = m.all[i]
		}
	}
	for i, s := range m.all[0] {
		writes, known := map[string]float64{"orderonce": 8, "plain": 2, "powertools": 3}[s.Name]
		if !known {
			continue
		}
		slower := stripeSeconds - far[i].setting.Stripe.Seconds()
		batch := median(far[i].Fresh.BatchMS)/1000 + s.Fresh.StripeCalls*slower
		duplicate := median(far[i].Duplicate.BatchMS) / 1000
		lambda := func(seconds float64) float64 { return 1e6 / batchSize * seconds * memory * gigabyteTime }
		t.AppendRow(table.Row{
			s.Name, fmt.Sprintf("%.0f, %.0f", s.Fresh.Calls-s.Fresh.StripeCalls, s.Fresh.StripeCalls), writes,
			fmt.Sprintf("%.1f", median(far[i].Fresh.SingleMS)), fmt.Sprintf("%.2f", median(s.Fresh.CPUMS)),
			fmt.Sprintf("%.2f", 1e6*writes*writeUnit), fmt.Sprintf("%.2f", lambda(batch)),
			fmt.Sprintf("%.1f", median(far[i].Duplicate.SingleMS)),
			fmt.Sprintf("%.2f", 1e6*writeUnit+lambda(duplicate)),
		})
	}
	return t
}

// usageOf returns the table of the other functions. A figure above its budget is marked.
func usageOf(all []usage) table.Writer { //nolint:ireturn // as figuresOf
	t := chart.Table(
		"function", "calls", "first response, ms", "CPU of a call, ms", "budget", "RSS, MiB", "budget ",
		"a person waits, ms", "p99",
	)
	within := func(v, most float64) string {
		if v > most {
			return fmt.Sprintf("%.1f, over", v)
		}
		return fmt.Sprintf("%.1f", v)
	}
	for _, u := range all {
		waits, slowest := "", ""
		if u.AnswerMS > 0 {
			waits, slowest = fmt.Sprintf("%.1f", u.AnswerMS), fmt.Sprintf("%.1f", u.SlowestAnswerMS)
		}
		t.AppendRow(table.Row{
			u.Name, u.Calls, fmt.Sprintf("%.0f", u.FirstMS), within(u.CPUMS, u.MostCPUMS), u.MostCPUMS,
			within(u.RSS, u.MostRSS), u.MostRSS, waits, slowest,
		})
	}
	return t
}
