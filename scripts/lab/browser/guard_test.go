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

func TestInABrowserWithoutBindAnOrderIsChargedTwiceAndThePageSaysWhy(t *testing.T) {
	t.Parallel()
	p := openPage(t)
	defer p.search(t)
	p.slowSteps(t, false)
	p.change(t, `button[data-guard="bind"]`)
	id := p.change(t, repeat).Order
	p.awaitLine(t, id, line{"status": "paid", "charges": "2"}) // the table alone does not show it
	p.compare(t)
	if n := p.count(t, "twice"); n != 1 {
		t.Errorf("the page counts %d orders that were charged twice, want 1", n)
	}
	red := p.redLights(t)
	for _, want := range []string{"I1: ", id, "pi_000001", "pi_000002", "before money moves"} {
		if !strings.Contains(red, want) {
			t.Errorf("the lights say %q, want the invariant, both charges of %s and the missing step: %q", red, id, want)
		}
	}
	p.press(t, `[data-light="I1"] button`)
	p.await(t, fmt.Sprintf(`document.querySelector('dialog[data-timeline=%q][open] [data-entry]')`, id))
	p.keys(t, kb.Escape)
	again := read[string](t, p.tab, fmt.Sprintf("document.querySelector('%s').dataset.attack", repeat))
	p.putGuardBack(t)
	p.awaitLine(t, p.attack(t, again).Order, paid())
	p.compare(t)
	if n := p.count(t, "twice"); n != 1 {
		t.Errorf("the page counts %d orders that were charged twice after bind was put back, want still 1", n)
	}
}

// putGuardBack deploys the function with every guard, and waits until the banner with its
// button is gone: the page then moves the focus, and scrolls the attacks.
func (p page) putGuardBack(t *testing.T) {
	t.Helper()
	p.change(t, putBack)
	p.await(t, `document.getElementById("broken").hidden`)
}

//nolint:paralleltest,tparallel // its subtests use one system, one after the other
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
