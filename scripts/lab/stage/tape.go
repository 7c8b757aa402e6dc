package stage

import (
	"math/rand/v2"
	"slices"
)

// Kind is what a choice is about.
type Kind int

// The kinds of choices.
const (
	Deviation Kind = iota // 0 is the default option, every other one is a deviation
	Detail                // of the deviation before it: costs nothing more
	Variety               // as a deviation, but a random world has all its options equally often
)

// Choose returns one of n options, 0 to n-1. Everything that a run does not determine is
// decided by its Choose function.
type Choose func(k Kind, n int) int

// Tape is a recorded series of choices. Beyond its end, and where it has an option that
// does not exist, the default option counts. So every byte string is a valid schedule.
type Tape []byte

// Deviations returns the number of choices that are not the default one.
func (t Tape) Deviations() (n int) {
	for _, option := range t {
		if option != 0 {
			n++
		}
	}
	return n
}

// Chooser returns a Choose function that plays the tape once.
func (t Tape) Chooser() Choose {
	i := 0
	return func(_ Kind, n int) int {
		i++
		if i > len(t) || int(t[i-1]) >= n {
			return 0
		}
		return int(t[i-1])
	}
}

// Trimmed returns the tape without the default choices at its end.
func (t Tape) Trimmed() Tape {
	for len(t) > 0 && t[len(t)-1] == 0 {
		t = t[:len(t)-1]
	}
	return t
}

// Explore calls run for every tape with at most the given number of deviations, and
// returns the number of calls. left is how many more deviations a continuation of the
// tape may have. Tapes with fewer deviations come first, except that the last two levels
// alternate, to save memory. A run must be deterministic. If it ends early, no tape has a
// deviation after that point.
func Explore(most int, run func(t Tape, left int, choose Choose)) (runs int) {
	var next []Tape
	var visit func(t Tape, left int)
	visit = func(t Tape, left int) {
		runs++
		for b, kind := range branches(t, play(t, left, run)) {
			switch {
			case kind == Detail:
				visit(slices.Clone(b), left)
			case left == 1:
				visit(b, 0)
			case left > 1:
				next = append(next, slices.Clone(b))
			}
		}
	}
	for level, left := []Tape{nil}, most; len(level) > 0; left-- {
		next = nil
		for _, t := range level {
			visit(t, left)
		}
		level = next
	}
	return runs
}

// width is the number of options of a choice.
type width struct {
	kind Kind
	n    byte
}

// play runs a tape and returns the width of each choice that may have another option.
func play(t Tape, left int, run func(Tape, int, Choose)) (widths []width) {
	choose, at := t.Chooser(), 0
	run(t, left, func(k Kind, n int) int {
		if left > 0 || k == Detail {
			widths = append(widths, make([]width, at-len(widths))...)
			widths = append(widths, width{k, byte(n)}) //nolint:gosec // G115: a choice has fewer than 256 options
		}
		at++
		return choose(k, n)
	})
	return widths
}

// branches yields the tapes with one more choice that is not 0, after the end of t. Each
// overwrites the previous one.
func branches(t Tape, widths []width) func(yield func(Tape, Kind) bool) {
	return func(yield func(Tape, Kind) bool) {
		b := append(slices.Clone(t), make(Tape, max(0, len(widths)-len(t)))...)
		for i := len(t); i < len(widths); i++ {
			for option := 1; option < int(widths[i].n); option++ {
				b[i] = byte(option)
				if !yield(b[:i+1], widths[i].kind) {
					return
				}
			}
			b[i] = 0
		}
	}
}

// mostChoices is how many choices of a random world may be deviations.
const mostChoices = 300

// Random returns random choices: up to twelve deviations, rare or frequent.
func Random(r *rand.Rand, often ...float64) Choose {
	likely := often[r.IntN(len(often))]
	left, choices := 1+r.IntN(12), 0
	return func(k Kind, n int) int {
		if k != Deviation {
			return r.IntN(n)
		}
		choices++
		if n < 2 || left == 0 || choices > mostChoices || r.Float64() >= likely {
			return 0
		}
		left--
		return 1 + r.IntN(n-1)
	}
}

// Shrink returns a simpler tape that still satisfies bad: one with fewer deviations or
// fewer choices.
func Shrink(t Tape, bad func(Tape) bool) Tape {
	for again := true; again; {
		again = false
		for _, simpler := range simplifications(t) {
			if bad(simpler) {
				t, again = simpler.Trimmed(), true
				break
			}
		}
	}
	return t
}

// simplifications returns the tapes that lack the second half, a deviation or a choice of
// t. Some lack two deviations, because the second may only undo the first.
func simplifications(t Tape) (all []Tape) {
	all = append(all, t[:len(t)/2].Trimmed())
	for i, option := range t {
		if option != 0 {
			simple := slices.Clone(t)
			simple[i] = 0
			all = append(all, simple)
		}
	}
	for i, a := range t {
		for j := i + 1; a != 0 && j < len(t); j++ {
			if t[j] != 0 {
				simple := slices.Clone(t)
				simple[i], simple[j] = 0, 0
				all = append(all, simple)
			}
		}
	}
	for i := range t {
		all = append(all, slices.Delete(slices.Clone(t), i, i+1))
	}
	return slices.DeleteFunc(all, func(o Tape) bool { return slices.Equal(o, t) })
}
