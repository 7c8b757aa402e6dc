// Package chart draws bars as SVG, for a light and a dark page, makes tables, and writes
// pages that have both.
package chart

import (
	"fmt"
	"strings"
)

// Panel is one figure of everything that is compared.
type Panel struct {
	Title  string
	Color  string    // readable on white and on black
	Values []float64 // one for each name; a longest bar of less than Least is not drawn to the end
	Least  float64
	Label  func(float64) string
}

// The colors of a panel.
const (
	Red  = "#d13c3c"
	Blue = "#4c8be0"
)

const (
	perRow     = 3 // panels
	namesWidth = 170
	panelWidth = 245
	barWidth   = 170 // of the longest bar of a panel
	lineHeight = 17
	panelTop   = 34 // of its first line
)

// head makes the text follow the light or dark theme of the page.
const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d">
<style>
text { fill: #1f2328; font: 12px "Liberation Sans", Arial, Helvetica, sans-serif; }
.title { font-size: 14px; }
.name { text-anchor: end; }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3; } }
</style>
`

// Bars draws the panels, with a bar for each name.
func Bars(names []string, panels []Panel) string {
	var b strings.Builder
	rows, height := (len(panels)+perRow-1)/perRow, panelTop+lineHeight*len(names)
	fmt.Fprintf(&b, head, namesWidth+perRow*panelWidth, rows*height)
	for i, p := range panels {
		left, top := namesWidth+i%perRow*panelWidth, i/perRow*height
		fmt.Fprintf(&b, "<text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n", left, top+lineHeight+4, p.Title)
		most := p.Least
		for _, v := range p.Values {
			most = max(most, v)
		}
		for n, v := range p.Values {
			y := top + panelTop + lineHeight*n
			if i%perRow == 0 {
				fmt.Fprintf(&b, "<text class=\"name\" x=\"%d\" y=\"%d\">%s</text>\n", left-8, y+9, names[n])
			}
			long := barWidth * v / most
			fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"11\" fill=\"%s\"/>",
				left, y, long, p.Color)
			fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", float64(left)+long+4, y+9, p.Label(v))
		}
	}
	return b.String() + "</svg>\n"
}
