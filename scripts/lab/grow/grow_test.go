package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// simulated returns every scenario with its report, and checks that no order was lost.
func simulated(t *testing.T, all []scenario) []scenario {
	t.Helper()
	for n := range all {
		x := newSystem(all[n].setup, 1)
		all[n].report = x.run()
		held := x.sent() - x.taken
		for _, slot := range append(x.calendar[:], x.returned) {
			for _, j := range slot {
				held += j.orders
			}
		}
		if held != x.sent()-x.settled || x.inFlight > x.InFlight {
			t.Errorf("%s at %d: %d orders are not settled, and the queue has %d, %d in flight",
				all[n].Name, all[n].Rate, x.sent()-x.settled, held, x.inFlight)
		}
	}
	return all
}

func TestThePageShowsTheSimulation(t *testing.T) {
	t.Parallel()
	all := simulated(t, scenarios())
	for _, s := range all {
		got, want := s.report.rate(), s.arithmetic()
		switch {
		case s.Name == "the same for an hour" && got < 1.4*want:
			t.Errorf("%s: settled %.0f a second, want more than a new table: it doubles", s.Name, got)
		case s.curve && (got < 0.95*want || got > 1.1*want): // more: it works off what waited
			t.Errorf("%s at %d: settled %.0f a second, want %.0f within 5 percent", s.Name, s.Rate, got, want)
		}
	}
	page, err := os.ReadFile("../../../docs/guides/grow.md")
	if err != nil || !strings.Contains(string(page), figures(all).RenderMarkdown()) {
		t.Errorf("docs/guides/grow.md (%v) has another table; write it anew with make grow-page", err)
	}
	picture, err := os.ReadFile("../../../docs/grow.svg")
	if err != nil || string(picture) != chart(all) {
		t.Errorf("docs/grow.svg (%v) is another chart; write it anew with make grow-page", err)
	}
}

// A little more than a wall lets through is refused by it, and the rest is settled. Far
// more wastes it, because an order that is begun again writes again.
func TestAWallLetsThroughWhatTheArithmeticSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wall   string
		step   int
		change func(*setup)
		want   float64
	}{
		{"shards", 3, func(s *setup) { s.Pollers = 116 }, 8000},
		{"shards", 4, func(s *setup) { s.Pollers = 462 }, 32_000},
		{"table", 1, func(s *setup) { s.Concurrency = 98 }, 4000.0 / 6},
		{"SKU", 2, func(s *setup) { s.Concurrency, s.HotSKU = 37, true }, 250},
		{"Stripe", 0, func(s *setup) { s.Concurrency = 4 }, 25},
		{"shards", 3, func(s *setup) { s.Pollers = 2000 }, 8000 * 2.0 / 3},
	} {
		s := steps()[c.step]
		s.Rate, s.For = max(10_000, int(1.25*c.want)), 4*time.Minute
		c.change(&s.setup)
		r := simulated(t, []scenario{s})[0].report
		if got := r.rate(); got < 0.95*c.want || got > 1.05*c.want || !strings.Contains(strings.Join(r.walls, ", "), c.wall) {
			t.Errorf("%s: settled %.0f a second and reached %q, want %.0f within 5 percent", c.wall, got, r.walls, c.want)
		}
	}
}

// row.md shows the writes as the code makes them, held by a test of the adapter.
func TestTheUnitsAreThoseOfTheWrites(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/row.md")
	for title, want := range map[string]int{
		"Begin, of a new order": entryUnits, "Begin, of an order whose lease has expired": moveUnits,
		"Bind": 0, "Finish, in a transaction with its event": entryUnits,
	} {
		_, write, found := strings.Cut(string(page), "\n### "+title+"\n")
		write, _, _ = strings.Cut(write, "\nIF ")
		got := 0
		if strings.Contains(write, "openShard") {
			got = 1 // the entry comes or goes
		} else if strings.Contains(write, "dueAt") {
			got = 2 // it goes, and comes under another key
		}
		if got != want || !found {
			t.Errorf("%s (%v): got %d writes of the index, want %d", title, err, got, want)
		}
	}
}
