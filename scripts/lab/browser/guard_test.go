package browser_test

import (
	"strings"
	"testing"
)

// withoutBind charges an order, kills the function before it can say so, and lets Stripe
// forget its idempotency keys.
const withoutBind = "kill-25h"

func TestInABrowserWithoutBindAnOrderIsChargedTwiceAndThePageSaysWhy(t *testing.T) {
	t.Parallel()
	p := openPage(t)
	defer p.search(t)
	p.slowSteps(t, false)
	p.change(t, `button[data-guard="bind"]`)
	id := p.attack(t, withoutBind).Order
	p.awaitLine(t, id, line{"charges": "2"})
	p.awaitQuiet(t)
	p.compare(t)
	if n := p.count(t, "twice"); n != 1 {
		t.Errorf("the page counts %d orders that were charged twice, want 1", n)
	}
	red := p.redLights(t)
	for _, want := range []string{"I1: ", id, "pi_000001", "pi_000002"} {
		if !strings.Contains(red, want) {
			t.Errorf("the lights say %q, want the invariant and both charges of %s: %q", red, id, want)
		}
	}

	p.change(t, `button[data-guard=""]`)
	p.awaitLine(t, p.attack(t, withoutBind).Order, paid())
	p.compare(t)
	if n := p.count(t, "twice"); n != 1 {
		t.Errorf("the page counts %d orders that were charged twice after bind was put back, want still 1", n)
	}
}
