package browser_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"orderonce/scripts/local/console/attack"
)

// The buttons that appear while a guard is missing.
const (
	putBack = `button[data-guard=""]`
	repeat  = `:has(> ` + putBack + `) > button[data-attack]` // the attack that needs the guard
)

// saysWhy compares what the page says about the first order that was charged twice.
func (p page) saysWhy(t *testing.T) {
	t.Helper()
	red := p.redLights(t)
	for _, want := range []string{"I1: ", "pi_000001", "pi_000002", "before money moves"} {
		if !strings.Contains(red, want) {
			t.Errorf("the lights say %q, want the invariant, both charges and the missing step: %q", red, want)
		}
	}
	if n := p.count(t, "twice"); n != 1 {
		t.Errorf("the page counts %d orders that were charged twice, want 1", n)
	}
	p.press(t, `[data-light="I1"] button`)
	p.await(t, `document.querySelector('dialog[data-timeline][open] [data-entry]')`)
	p.keys(t, kb.Escape)
}

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
			if guard.Name == "bind" {
				p.saysWhy(t)
			}
			p.putGuardBack(t)
			p.awaitLine(t, p.attack(t, "post").Order, paid())
		})
	}
}
