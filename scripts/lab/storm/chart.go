package main

import (
	"bytes"
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"orderonce/scripts/lab/storm/run"
)

// perRow is the number of panels in a row.
const perRow = 3

// chart draws a panel for each column, with a bar for each handler: figures per 100
// orders.
func chart(outcomes []run.Outcome) ([]byte, error) {
	var rows [][]*plot.Plot
	for i, c := range columns() {
		p, err := panel(c, outcomes)
		if err != nil {
			return nil, err
		}
		if i%perRow == 0 {
			rows = append(rows, nil)
			p.NominalY(names(outcomes)...)
			p.Y.Tick.Label.Font, p.Y.Padding = sans(9), vg.Points(22) // a reader's font may be wider
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], p)
	}
	height := vg.Points(float64(len(rows)) * (60 + 17*float64(len(outcomes))))
	canvas := vgsvg.New(vg.Points(900), height)
	tiles := draw.Tiles{
		Rows: len(rows), Cols: perRow,
		PadX: vg.Points(8), PadY: vg.Points(16), PadTop: vg.Points(4), PadRight: vg.Points(4),
	}
	for r, line := range plot.Align(rows, tiles, draw.New(canvas)) {
		for c, tile := range line {
			rows[r][c].Draw(tile)
		}
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return nil, fmt.Errorf("draw the chart: %w", err)
	}
	return readable(svg.Bytes()), nil
}

// panel draws one column.
func panel(c column, outcomes []run.Outcome) (*plot.Plot, error) {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	p.Title.Text = c.name
	p.Title.TextStyle.Font, p.Title.Padding = sans(11), vg.Points(8)
	p.HideAxes()
	values := make(plotter.Values, len(outcomes))
	labels := plotter.XYLabels{}
	for i, o := range outcomes {
		at := len(outcomes) - 1 - i // the first one is on top
		values[at] = 100 * float64(c.of(o)) / float64(max(o.Count.Orders, 1))
		labels.XYs = append(labels.XYs, plotter.XY{X: values[at], Y: float64(at)})
		labels.Labels = append(labels.Labels, perHundred(values[at]))
	}
	bars, err := plotter.NewBarChart(values, vg.Points(9))
	if err != nil {
		return nil, err
	}
	bars.Horizontal, bars.LineStyle.Width, bars.Color = true, 0, shade(c)
	figures, err := plotter.NewLabels(labels)
	if err != nil {
		return nil, err
	}
	figures.Offset = vg.Point{X: vg.Points(3), Y: vg.Points(-3)}
	for i := range figures.TextStyle {
		figures.TextStyle[i].Font = sans(9)
	}
	p.Add(bars, figures)
	p.X.Max = max(p.X.Max, 1)
	return p, nil
}

// shade is red for errors and blue for the rest. Both are readable on white and on black.
func shade(c column) color.Color {
	if c.bad {
		return color.RGBA{R: 0xd1, G: 0x3c, B: 0x3c, A: 0xff}
	}
	return color.RGBA{R: 0x4c, G: 0x8b, B: 0xe0, A: 0xff}
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

func names(outcomes []run.Outcome) []string {
	all := make([]string, len(outcomes))
	for i, o := range outcomes {
		all[len(all)-1-i] = o.Handler.Name
	}
	return all
}

func sans(size float64) font.Font {
	return font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, vg.Points(size))
}

// readable makes the text follow the light or dark theme of the page, which the plot
// library cannot.
func readable(svg []byte) []byte {
	const style = `<style>
text { fill: #1f2328 !important; font-family: "Liberation Sans", Arial, Helvetica, sans-serif !important; }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 !important; } }
</style>
`
	head, rest, _ := strings.Cut(string(svg), `xlink">`+"\n")
	return []byte(head + `xlink">` + "\n" + style + rest)
}
