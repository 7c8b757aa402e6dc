package main

import (
	"fmt"
	"slices"

	"orderonce/scripts/lab/chart"
	"orderonce/scripts/lab/storm/run"
)

// drawn draws a panel for each column, with a bar for each handler: figures per 100
// orders. Errors are red.
func drawn(outcomes []run.Outcome) string {
	var names []string
	for _, o := range outcomes {
		names = append(names, o.Handler.Name)
	}
	var panels []chart.Panel
	for _, c := range columns() {
		p := chart.Panel{Title: string(c), Color: chart.Blue, Least: 1, Label: perHundred}
		if slices.Contains(run.Errors(), c) {
			p.Color = chart.Red
		}
		for _, o := range outcomes {
			p.Values = append(p.Values, 100*float64(o.Figures[c])/float64(max(o.Figures[run.Orders], 1)))
		}
		panels = append(panels, p)
	}
	return chart.Bars(names, panels)
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
