package prove

import "slices"

// Choose picks one of n ways to go on, 0 to n-1. Way 0 is the usual one; every other one is a deviation. Whoever chooses
// owns all that is not determined: a search goes through every choice, a random world draws them.
type Choose func(n int) int

// Explore calls run once for every series of choices that has at most so many deviations, those with fewer first, and
// tells it how many there are. The same run has to choose in the same way each time. It returns how often it called.
func Explore(most int, run func(deviations int, choose Choose)) (runs int) {
	wave := [][]int{nil}
	for deviations := range most + 1 {
		var next [][]int
		for _, tape := range wave {
			widths := play(tape, func(c Choose) { run(deviations, c) })
			runs++
			if deviations < most {
				next = append(next, branches(tape, widths)...)
			}
		}
		wave = next
	}
	return runs
}

// play runs with the choices of tape and then the usual ones, and returns how many ways each choice had.
func play(tape []int, run func(Choose)) (widths []int) {
	run(func(n int) int {
		i := len(widths)
		widths = append(widths, n)
		if i < len(tape) {
			return tape[i]
		}
		return 0
	})
	return widths
}

// branches are the tapes with one deviation more, behind the end of this one.
func branches(tape, widths []int) (all [][]int) {
	for i := len(tape); i < len(widths); i++ {
		usual := append(slices.Clone(tape), make([]int, i-len(tape))...)
		for way := 1; way < widths[i]; way++ {
			all = append(all, append(slices.Clone(usual), way))
		}
	}
	return all
}
