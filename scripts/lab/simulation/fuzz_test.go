package simulation_test

import (
	"testing"

	"orderonce/scripts/lab/simulation"
)

// FuzzWorld lets coverage guide the choices: the first bytes draw the world, the others
// are its schedule.
func FuzzWorld(f *testing.F) {
	for seed := range byte(8) {
		f.Add([]byte{seed, 0, 0, 0, 3, 0, 0, 0, 0, 0, 1})
	}
	lab := simulation.NewLab()
	f.Fuzz(func(t *testing.T, schedule []byte) {
		w := lab.FromBytes(schedule)
		if broken := w.Run(); broken != nil {
			c, tape := simulation.Bytes(schedule)
			t.Fatalf("%s", lab.Shortest(c, tape, *broken))
		}
	})
}
