package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// scenario is a setup and what its simulation showed.
type scenario struct {
	Name string
	setup

	curve  bool // a point of the chart
	report report
}

// steps is how a deployment grows, each step with those before it.
func steps() (all []scenario) {
	var s setup
	add := func(name string, change func()) {
		change()
		all = append(all, scenario{Name: name, setup: s})
	}
	add("as deployed", func() { _ = kong.ApplyDefaults(&s) })
	add("Stripe raised", func() { s.Stripe, s.Concurrency = unlimited, 95 })
	add("warm table", func() { s.Warm, s.Concurrency = 40_000, 0 })
	add("quotas raised", func() { s.Warm, s.Quota, s.Account, s.Pollers = 80_000, unlimited, unlimited, 114 })
	add("64 shards", func() { s.Warm, s.Shards, s.Pollers = 250_000, 64, 456 })
	add("256 shards", func() { s.Warm, s.Shards, s.Pollers, s.For = 800_000, 256, 2000, 15*time.Minute })
	add("240,000 in flight", func() { s.InFlight = 240_000 })
	return all
}

// scenarios returns each step, later ones at high rates, and then what else may happen.
func scenarios() (all []scenario) {
	grown := steps()
	for n, step := range grown {
		for _, rate := range []int{25, 1000, 10_000, 100_000}[min(n/2, 2):] {
			step.Rate, step.curve = rate, true
			all = append(all, step)
		}
	}
	add := func(name string, step, rate int, change func(*setup)) {
		s := grown[step].setup
		s.Rate = rate
		change(&s)
		all = append(all, scenario{Name: name, setup: s})
	}
	add("as deployed, maximum_concurrency 3", 0, 1000, func(s *setup) { s.Concurrency = 3 })
	add("as deployed, no maximum_concurrency", 0, 1000, func(s *setup) { s.Concurrency = 0 })
	add("new table, no maximum_concurrency", 1, 1000, func(s *setup) { s.Concurrency = 0 })
	add("the same for an hour", 1, 1000, func(s *setup) { s.Concurrency, s.For = 0, time.Hour })
	add("warm table: a burst", 2, 5000, func(*setup) {})
	add("the same with 90 pollers", 2, 5000, func(s *setup) { s.Pollers = 90 })
	add("16 shards, 2,000 pollers", 3, 10_000, func(s *setup) { s.Pollers = 2000 })
	add("one SKU, maximum_concurrency 36", 2, 1000, func(s *setup) { s.HotSKU, s.Concurrency = true, 36 })
	add("one SKU, no maximum_concurrency", 2, 1000, func(s *setup) { s.HotSKU = true })
	return all
}

// The sizes of the chart, in pixels. Both axes are logarithmic, from 10 to 100,000.
const (
	decade     = 100
	chartLeft  = 70
	chartRight = chartLeft + 4*decade
	chartTop   = 30
	chartEnd   = chartTop + 4*decade
)

// chartHead makes the text follow the light or dark theme of the page.
const chartHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 620 460">
<style>
text { fill: #1f2328; font: 12px "Liberation Sans", Arial, Helvetica, sans-serif; }
.y { text-anchor: end; }
.x { text-anchor: middle; }
polyline { fill: none; stroke-width: 2; }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3; } }
</style>
<text x="70" y="18">settled orders a second, of 25, 1,000, 10,000 and 100,000 sent a second</text>
`

// chart draws a line for each step, from what the simulation settled.
func chart(all []scenario) string {
	var b strings.Builder
	b.WriteString(chartHead)
	line := func(color, points string, x, y float64, class, text string) {
		fmt.Fprintf(&b, "<polyline stroke=\"%s\" points=\"%s\"/>", color, strings.TrimSpace(points))
		fmt.Fprintf(&b, "<text class=\"%s\" x=\"%.0f\" y=\"%.1f\">%s</text>\n", class, x, y, text)
	}
	at := func(v float64) float64 { return decade * (math.Log10(v) - 1) }
	for _, v := range []float64{10, 100, 1000, 10_000, 100_000} {
		x, y := chartLeft+at(v), chartEnd-at(v)
		line("#8c959f40", fmt.Sprintf("%d,%g %d,%g", chartLeft, y, chartRight, y), chartLeft-8, y+4, "y", digits(v))
		line("#8c959f40", fmt.Sprintf("%g,%d %g,%d", x, chartTop, x, chartEnd), x, chartEnd+16, "x", digits(v))
	}
	colors := []string{"#d13c3c", "#c77700", "#8f8a00", "#2f9e44", "#1098ad", "#4c8be0", "#a45ee5"}
	name := float64(chartEnd)
	for n, step := range steps() {
		points, y := "", 0.0
		for _, s := range all {
			if s.curve && s.Name == step.Name {
				x := chartLeft + at(float64(s.Rate))
				y = chartEnd - at(min(s.report.rate(), float64(s.Rate))) // more: it works off what waited
				points += fmt.Sprintf("%.1f,%.1f ", x, y)
			}
		}
		name = min(y+4, name-16) // names of near lines move up
		line(colors[n], points, chartRight+8, name, "name", step.Name)
	}
	return b.String() + "</svg>\n"
}
