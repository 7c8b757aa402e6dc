package simulation_test

import (
	"testing"

	"orderonce/scripts/lab/simulation"
	"orderonce/scripts/lab/simulation/world"
)

// FuzzWorld lets coverage guide the choices.
func FuzzWorld(f *testing.F) {
	for seed := range byte(8) {
		f.Add([]byte{seed, 0, 0, 0, 3, 0, 0, 0, 0, 0, 1})
	}
	lab := world.NewLab()
	f.Fuzz(func(t *testing.T, schedule []byte) {
		c, tape := simulation.Bytes(schedule)
		if broken := lab.NewWorld(c, tape.Chooser()).Run(); broken != nil {
			t.Fatalf("%s", simulation.Shortest(c, tape, *broken))
		}
	})
}
