package browser_test

import (
	"fmt"
	"strings"
	"testing"

	"orderonce/scripts/local/console/attack"
)

// The buttons that appear while a guard is missing.
const (
	putBack = `button[data-guard=""]`
	repeat  = `:has(> ` + putBack + `) > button[data-attack]` // the attack that needs the guard
)

// putGuardBack deploys the function with every guard, and waits until the banner with its
// button is gone: the page then moves the focus, and scrolls the attacks.
func (p page) putGuardBack(t *testing.T) {
	t.Helper()
	p.change(t, putBack)
	p.await(t, `document.getElementById("broken").hidden`)
}

func TestInABrowserAnOrderTurnsRedWithoutEachGuard(t *testing.T) {
	t.Parallel()
	p := openPage(t)
	defer p.search(t)
	p.slowSteps(t, false)
	for _, guard := range attack.Guards() {
		t.Run(guard.Name, func(t *testing.T) {
			before := p.count(t, "orders") // their names are numbered
			p.change(t, fmt.Sprintf("button[data-guard=%q]", guard.Name))
			p.change(t, repeat)
			p.await(t, fmt.Sprintf(`[...document.querySelectorAll('[data-order][data-look="broken"]')]
				.some(line => line.dataset.order.replace("LIVE-", "") > %d)`, before))
			if red := p.redLights(t); !strings.Contains(red, guard.Invariant+": ") {
				t.Errorf("the lights say %q, want %s", red, guard.Invariant)
			}
			p.compare(t)
			p.putGuardBack(t)
			p.awaitLine(t, p.attack(t, "post").Order, paid())
		})
	}
}
