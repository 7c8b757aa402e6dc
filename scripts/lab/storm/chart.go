package main

import (
	"fmt"
	"slices"
	"strings"

	"orderonce/scripts/lab/storm/run"
)

// The sizes of the chart, in pixels.
const (
	perRow     = 3 // panels
	namesWidth = 170
	panelWidth = 245
	barWidth   = 170 // of the longest bar of a panel
	lineHeight = 17
	panelTop   = 34 // of its first line
)

// chartHead makes the text follow the light or dark theme of the page.
const chartHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d">
<style>
text { fill: #1f2328; font: 12px "Liberation Sans", Arial, Helvetica, sans-serif; }
.title { font-size: 14px; }
.name { text-anchor: end; }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3; } }
</style>
`

// chart draws a panel for each column, with a bar for each handler: figures per 100
// orders.
func chart(outcomes []run.Outcome) string {
	var b strings.Builder
	rows, height := (len(columns())+perRow-1)/perRow, panelTop+lineHeight*len(outcomes)
	fmt.Fprintf(&b, chartHead, namesWidth+perRow*panelWidth, rows*height)
	for i, c := range columns() {
		left, top := namesWidth+i%perRow*panelWidth, i/perRow*height
		fmt.Fprintf(&b, "<text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n", left, top+lineHeight+4, c)
		most := 1.0
		for _, o := range outcomes {
			most = max(most, per(o, c))
		}
		for n, o := range outcomes {
			y, v := top+panelTop+lineHeight*n, per(o, c)
			if i%perRow == 0 {
				fmt.Fprintf(&b, "<text class=\"name\" x=\"%d\" y=\"%d\">%s</text>\n", left-8, y+9, o.Handler.Name)
			}
			long := barWidth * v / most
			fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"11\" fill=\"%s\"/>",
				left, y, long, shade(c))
			fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", float64(left)+long+4, y+9, perHundred(v))
		}
	}
	return b.String() + "</svg>\n"
}

// per returns a figure per 100 orders.
func per(o run.Outcome, f run.Figure) float64 {
	return 100 * float64(o.Figures[f]) / float64(max(o.Figures[run.Orders], 1))
}

// shade is red for errors and blue for the rest. Both are readable on white and on black.
func shade(f run.Figure) string {
	if slices.Contains(run.Errors(), f) {
		return "#d13c3c"
	}
	return "#4c8be0"
}

// perHundred formats a figure. Only an exact zero is "0".
func perHundred(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.1:
		return "< 0.1"
	case v < 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
