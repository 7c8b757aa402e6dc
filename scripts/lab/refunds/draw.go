package refunds

import (
	"math/rand/v2"

	"orderonce/scripts/lab/simulation/schedule"
)

// chooser decides what happens, and records it.
type chooser struct {
	next   schedule.Choose // of a deviation: 0 is the usual
	detail schedule.Choose // of its details: 0 is the simplest
	calm   bool            // nothing unusual happens any more
	tape   schedule.Tape
}

// deviate returns one of n options, 0 being the usual one.
func (c *chooser) deviate(n int) int { return c.record(n, c.next) }

// pick returns one of n details, all equally likely.
func (c *chooser) pick(n int) int { return c.record(n, c.detail) }

func (c *chooser) record(n int, choose schedule.Choose) int {
	if c.calm || n < 2 {
		return 0
	}
	i := choose(n)
	c.tape = append(c.tape, byte(i))
	return i
}

// mostChoices is how many calls of a random world may be deviations.
const mostChoices = 300

// drawn returns the case and the choices of a seed.
func drawn(seed uint64, class Class) (Case, *chooser) {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // G404: it must be repeatable
	c := drawCase(r, class)
	often := []float64{0.03, 0.1, 0.2, 0.4, 0.6}[r.IntN(5)]
	left, choices := 1+r.IntN(12), 0
	return c, &chooser{detail: r.IntN, next: func(n int) int {
		choices++
		if left == 0 || choices > mostChoices || r.Float64() >= often {
			return 0
		}
		left--
		return 1 + r.IntN(n-1)
	}}
}

// played returns a chooser that plays a tape.
func played(t schedule.Tape) *chooser {
	play := t.Chooser()
	return &chooser{next: play, detail: play}
}
