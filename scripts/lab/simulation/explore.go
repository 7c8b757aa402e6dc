package simulation

import "slices"

// Choose picks one of n ways to go on, 0 to n-1. Way 0 is the usual one; every other one
// is a deviation. Whoever chooses owns all that is not determined: a search goes through
// every choice, a random world draws them.
type Choose func(n int) int

// Tape is a series of choices; behind its end everything is as usual. What is no way any
// more counts as the usual one, so that every tape plays: a schedule is a byte string.
type Tape []byte

// Deviations counts the choices that are not the usual one.
func (t Tape) Deviations() (n int) {
	for _, way := range t {
		if way != 0 {
			n++
		}
	}
	return n
}

// Chooser plays the tape.
func (t Tape) Chooser() Choose {
	i := 0
	return func(n int) int {
		i++
		if i > len(t) || int(t[i-1]) >= n {
			return 0
		}
		return int(t[i-1])
	}
}

// trimmed is the tape without the usual choices at its end.
func (t Tape) trimmed() Tape {
	for len(t) > 0 && t[len(t)-1] == 0 {
		t = t[:len(t)-1]
	}
	return t
}

// Explore calls run once for every tape with at most so many deviations, those with fewer
// first but for the last two numbers, which alternate to save memory. The same run has to
// choose in the same way each time. A run that gives up early has no deviations behind
// that point. It returns how often it called.
func Explore(most int, run func(t Tape, choose Choose)) (runs int) {
	wave := []Tape{nil}
	for left := most; len(wave) > 0; left-- {
		var next []Tape
		for _, t := range wave {
			runs++
			widths := play(t, run)
			if left == 0 {
				continue
			}
			for b := range branches(t, widths) {
				if left == 1 {
					runs++
					play(b, run)
				} else {
					next = append(next, slices.Clone(b))
				}
			}
		}
		wave = next
	}
	return runs
}

// play runs with a tape, and returns how many ways each choice had.
func play(t Tape, run func(Tape, Choose)) (widths []byte) {
	choose := t.Chooser()
	run(t, func(n int) int {
		widths = append(widths, byte(n)) //nolint:gosec // G115: there are never so many ways
		return choose(n)
	})
	return widths
}

// branches are the tapes with one deviation more, behind the end of this one. The next
// one overwrites the last.
func branches(t Tape, widths []byte) func(yield func(Tape) bool) {
	return func(yield func(Tape) bool) {
		b := append(slices.Clone(t), make(Tape, max(0, len(widths)-len(t)))...)
		for i := len(t); i < len(widths); i++ {
			for way := 1; way < int(widths[i]); way++ {
				b[i] = byte(way)
				if !yield(b[:i+1]) {
					return
				}
			}
			b[i] = 0
		}
	}
}

// Shrink returns a simpler tape for which bad still holds: with fewer deviations, then
// with fewer steps.
func Shrink(t Tape, bad func(Tape) bool) Tape {
	for again := true; again; {
		again = false
		for _, smaller := range simpler(t) {
			if bad(smaller) {
				t, again = smaller.trimmed(), true
				break
			}
		}
	}
	return t
}

// simpler are tapes that lack one thing of this one: its second half, a deviation, or a
// step; and two deviations at once, because what one begins another may have to end.
func simpler(t Tape) (all []Tape) {
	all = append(all, t[:len(t)/2].trimmed())
	for i, way := range t {
		if way != 0 {
			usual := slices.Clone(t)
			usual[i] = 0
			all = append(all, usual)
		}
	}
	for i, a := range t {
		for j := i + 1; a != 0 && j < len(t); j++ {
			if t[j] != 0 {
				usual := slices.Clone(t)
				usual[i], usual[j] = 0, 0
				all = append(all, usual)
			}
		}
	}
	for i := range t {
		all = append(all, slices.Delete(slices.Clone(t), i, i+1))
	}
	return slices.DeleteFunc(all, func(o Tape) bool { return slices.Equal(o, t) })
}
