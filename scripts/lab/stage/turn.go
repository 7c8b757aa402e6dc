package stage

import "fmt"

// Turn returns whether the i-th check of many has its turn: "17/3" gives it to one of
// three, "18/3" and "19/3" to the others, and "" to all. CI counts by the commit.
func Turn(text string) (func(i int) bool, error) {
	turn, turns := 0, 1
	if text != "" {
		if n, err := fmt.Sscanf(text, "%d/%d", &turn, &turns); n != 2 || turn < 0 || turns < 1 {
			return nil, fmt.Errorf("turn %q: want such as 17/3: %w", text, err)
		}
	}
	return func(i int) bool { return i%turns == turn%turns }, nil
}
