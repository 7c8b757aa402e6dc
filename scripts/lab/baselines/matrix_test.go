package baselines_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/lab/baselines"
)

// verdict is how a history ended, the better ones first.
type verdict int

const (
	ok     verdict = iota
	stuck          // five deliveries, and the message is still not acknowledged
	silent         // another order under the same id was acknowledged and not charged
	lost           // the message is gone, and the row does not say that the order is paid
	twice          // charged twice
)

func (v verdict) String() string { return []string{".", "stuck", "silent", "lost", "twice"}[v] }

func (w *world) verdict() verdict {
	w.Helper()
	switch {
	case w.charges() > 1:
		return twice
	case len(w.acked) == 0 || !w.acked["m1"]:
		return stuck
	case w.charges() == 0 || w.status() != baselines.Paid:
		return lost
	}
	return ok
}

// day is a day and a little more.
const day = 25 * time.Hour

// history is what happens to an order. Where its step matters, it is run for each step of the first delivery, and where items
// may have expired, with those deleted and still there; the worst counts.
type history struct {
	name    string
	stepped bool
	run     func(w *world, step int, expire func())
}

func histories() []history {
	return []history{
		{name: "again", run: func(w *world, _ int, _ func()) { w.later(time.Minute, "m1") }},
		{name: "resent", run: func(w *world, _ int, _ func()) { w.later(time.Minute, "m2") }},
		{name: "at once", stepped: true, run: func(w *world, step int, _ func()) {
			w.before = w.once(step, func() { _ = w.deliver(pays("m1")) })
			_ = w.settle(pays("m1"))
		}},
		{name: "frozen", stepped: true, run: func(w *world, step int, expire func()) {
			w.before = w.once(step, func() {
				w.now = w.now.Add(visibility)
				_ = w.settle(pays("m1"))
				w.now = w.now.Add(day)
				expire()
			})
			_ = w.settle(pays("m1"))
		}},
		{name: "dies", stepped: true, run: func(w *world, step int, _ func()) {
			w.after = w.once(step, func() { w.now = w.now.Add(visibility); panic(dead{}) })
			_ = w.settle(pays("m1"))
		}},
		{name: "dies 25h", stepped: true, run: func(w *world, step int, expire func()) {
			w.after = w.once(step, func() { w.now = w.now.Add(day); expire(); panic(dead{}) })
			_ = w.settle(pays("m1"))
		}},
		{name: "4 days", run: func(w *world, _ int, expire func()) {
			_ = w.settle(pays("m1"))
			w.now = w.now.Add(4 * day)
			expire()
			_ = w.settle(pays("m2"))
		}},
		{name: "no reply", run: fails(stripetest.LoseResponse, 3)}, // the SDK asks three times
		{name: "500 done", run: fails(stripetest.ServerErrorAfterEffect, 1)},
		{name: "500", run: fails(stripetest.ServerErrorBeforeEffect, 1)},
	}
}

func (w *world) later(gap time.Duration, id string) {
	_ = w.deliver(pays("m1"))
	w.now = w.now.Add(gap)
	_ = w.settle(pays(id))
}

func fails(kind stripetest.FaultKind, times int) func(*world, int, func()) {
	return func(w *world, _ int, _ func()) {
		w.stripe.Fail(stripetest.Fault{Kind: kind, On: stripetest.Create, Times: times})
		_ = w.settle(pays("m1"))
	}
}

func (h history) worst(t *testing.T, d baselines.Design) (worst verdict) {
	t.Helper()
	for step := 0; ; step++ {
		for _, deletes := range []bool{false, true} {
			w := newWorld(t, d)
			h.run(w, step, func() {
				if deletes {
					w.table.Expire(w.now)
				}
			})
			if h.stepped && (w.before != nil || w.after != nil) {
				return worst // there was no such step
			}
			worst = max(worst, w.verdict())
		}
		if !h.stepped {
			return worst
		}
	}
}

// otherContent is what becomes of another order under the same id, minutes or hours later.
func otherContent(t *testing.T, d baselines.Design) (worst verdict) {
	t.Helper()
	for _, gap := range []time.Duration{time.Minute, 2 * time.Hour} {
		w := newWorld(t, d)
		_ = w.deliver(pays("m1"))
		w.now = w.now.Add(gap)
		_ = w.settle(message("m2", 2, "pm_card_visa"))
		switch {
		case w.charges() > 1:
			worst = max(worst, twice)
		case w.acked["m2"]:
			worst = max(worst, silent)
		}
	}
	return worst
}

// The package's own comment holds the table, so it is either true or red.
func TestTheTableIsTrue(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	line := func(cells ...string) {
		text := fmt.Sprintf("%-23s", cells[0])
		for _, c := range cells[1:] {
			text += fmt.Sprintf("%-9s", c)
		}
		want.WriteString("//\t" + strings.TrimRight(text, " ") + "\n")
	}
	head := []string{""}
	for _, h := range histories() {
		head = append(head, h.name)
	}
	line(append(head, "other")...)
	for _, d := range baselines.All() {
		cells := []string{d.Name}
		for _, h := range histories() {
			cells = append(cells, h.worst(t, d).String())
		}
		line(append(cells, otherContent(t, d).String())...)
	}
	source, err := os.ReadFile("designs.go")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for l := range strings.Lines(string(source)) {
		if strings.HasPrefix(l, "//\t") {
			got.WriteString(l)
		}
	}
	if diff := cmp.Diff(got.String(), want.String()); diff != "" {
		t.Errorf("(-in the comment +computed)\n%s\n%s", diff, want.String())
	}
}
