package controls_test

import (
	"testing"

	"orderonce/scripts/designs"
	"orderonce/scripts/prove"
	"orderonce/scripts/prove/controls"
)

// A search that cannot find what is wrong with these says nothing about the product.
func TestEveryDesignThatPeopleCopyIsCaught(t *testing.T) {
	t.Parallel()
	for _, d := range designs.All() {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			r := controls.Find(d, prove.ChargedOnce, 20_000)
			if r.Worst == nil {
				t.Fatalf("%d worlds, and no order was charged twice", r.Drawn)
			}
			t.Logf("%s", r.Worst)
		})
	}
}
