// Package schedule searches sequences of choices. A run asks a Choose function which of n
// options is next. Option 0 is always the usual one; every other option is a deviation.
// The package explores all schedules with few deviations, and shrinks a schedule that has
// a property to a simpler one that still has it.
//
// It refuses to know what the options are: it imports only the standard library.
package schedule

import "slices"

// Choose returns one of n options, 0 to n-1. Everything that a run does not determine is
// decided by its Choose function.
type Choose func(n int) int

// Tape is a recorded series of choices. Beyond its end, and where it has an option that
// does not exist, the usual option counts. So every byte string is a valid schedule.
type Tape []byte

// Deviations returns the number of choices that are not the usual one.
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
	return func(n int) int {
		i++
		if i > len(t) || int(t[i-1]) >= n {
			return 0
		}
		return int(t[i-1])
	}
}

// Trimmed returns the tape without the usual choices at its end.
func (t Tape) Trimmed() Tape {
	for len(t) > 0 && t[len(t)-1] == 0 {
		t = t[:len(t)-1]
	}
	return t
}

// Explore calls run for every tape with at most the given number of deviations, and
// returns the number of calls. Tapes with fewer deviations come first, except that the
// last two levels alternate, to save memory. A run must be deterministic. If it ends
// early, no tape has a deviation after that point.
func Explore(most int, run func(t Tape, choose Choose)) (runs int) {
	level := []Tape{nil}
	for left := most; len(level) > 0; left-- {
		var next []Tape
		for _, t := range level {
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
		level = next
	}
	return runs
}

// play runs a tape and returns the number of options of each choice.
func play(t Tape, run func(Tape, Choose)) (widths []byte) {
	choose := t.Chooser()
	run(t, func(n int) int {
		widths = append(widths, byte(n)) //nolint:gosec // G115: a choice has fewer than 256 options
		return choose(n)
	})
	return widths
}

// branches yields the tapes with one more deviation, after the end of t. Each overwrites
// the previous one.
func branches(t Tape, widths []byte) func(yield func(Tape) bool) {
	return func(yield func(Tape) bool) {
		b := append(slices.Clone(t), make(Tape, max(0, len(widths)-len(t)))...)
		for i := len(t); i < len(widths); i++ {
			for option := 1; option < int(widths[i]); option++ {
				b[i] = byte(option)
				if !yield(b[:i+1]) {
					return
				}
			}
			b[i] = 0
		}
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
