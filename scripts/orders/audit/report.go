package audit

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"html/template"
	"io"
	"iter"
	"strings"
	"time"
)

// Describe formats what was compared and counted, for a person.
func (s Summary) Describe(j Job) string {
	var b strings.Builder
	fmt.Fprintf(&b, "from %s to %s\n", stamp(j.Window.From), stamp(j.Window.To))
	fmt.Fprintf(&b, "%9d PaymentIntents; calls: %d; of other scopes: %d\n",
		s.Payments.Items, s.Payments.Calls, s.Payments.Skipped)
	fmt.Fprintf(&b, "%9d rows; calls: %d; of another time or mode: %d\n",
		s.Rows.Items, s.Rows.Calls, s.Rows.Skipped)
	fmt.Fprintf(&b, "%9d orders: %d match, %d in progress, %d differ\n",
		s.Orders, s.Matched, s.InProgress, s.Differing)
	if s.Strays > 0 {
		fmt.Fprintf(&b, "%9d unbound PaymentIntents that hold no money: nothing confirms them\n", s.Strays)
	}
	for _, c := range Classes() {
		if n := s.Findings[c]; n > 0 {
			fmt.Fprintf(&b, "%9d %-18s %s\n", n, c, c.Remedy())
		}
	}
	return b.String()
}

// String returns the finding in one line.
func (f Finding) String() string { return fmt.Sprintf("%-18s %s  %s", f.Class, f.OrderID, f.Detail) }

// WriteCSV writes the findings with a header.
func WriteCSV(w io.Writer, findings iter.Seq2[Finding, error]) error {
	c := csv.NewWriter(w)
	if err := c.Write([]string{"order_id", "class", "payment_intent", "detail", "remedy"}); err != nil {
		return err
	}
	for f, err := range findings {
		if err != nil {
			return err
		}
		record := []string{string(f.OrderID), string(f.Class), string(f.Intent), f.Detail, f.Class.Remedy()}
		if err := c.Write(record); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

//go:embed report.html
var page string

// shownHTML bounds the size of a page that a browser has to show. The CSV file has all.
const shownHTML = 1000

// bar is one bar of the chart. Its width is in percent.
type bar struct {
	Class  Class
	Count  int
	Y      int
	Width  float64
	Repair bool
}

// WriteHTML writes a page with a chart and the first thousand findings. It needs neither
// scripts nor other files.
func WriteHTML(w io.Writer, j Job, s Summary, findings iter.Seq2[Finding, error]) error {
	t, err := template.New("report").Parse(page)
	if err != nil {
		return err
	}
	var shown []Finding
	for f, err := range findings {
		if err != nil {
			return err
		}
		if len(shown) == shownHTML {
			break
		}
		shown = append(shown, f)
	}
	most, total := 1, 0
	for _, n := range s.Findings {
		most, total = max(most, n), total+n
	}
	var bars []bar
	for _, c := range Classes() {
		if n := s.Findings[c]; n > 0 {
			width := max(60*float64(n)/float64(most), 0.5)
			bars = append(bars, bar{c, n, 24 * len(bars), width, c.Repairable()})
		}
	}
	return t.Execute(w, map[string]any{
		"Job": j, "Summary": s, "Text": s.Describe(j), "Bars": bars, "Height": 24 * len(bars),
		"Findings": shown, "Hidden": total - len(shown),
	})
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
