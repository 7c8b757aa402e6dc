package browser_test

import (
	"testing"

	"orderonce/scripts/local/console/watch"
)

// paid is the line of an order that was charged once and settled.
func paid() line { return line{"status": "paid", "message": "acknowledged", "charges": "1"} }

func TestInABrowserOneClickChargesTheFirstOrder(t *testing.T) {
	t.Parallel()
	p := openPage(t)
	defer p.search(t)
	id := p.attack(t, "post").Order
	p.awaitLine(t, id, paid())
	p.compare(t)
	p.load(t)
	p.awaitLine(t, id, paid()) // a visitor who comes later sees what happened
}

func TestInABrowserThePageAgreesWithTableAndLedgerAfterEachAttack(t *testing.T) {
	t.Parallel()
	p := openPage(t)
	defer p.search(t)
	p.slowSteps(t, false)
	for _, tt := range []struct {
		name string
		want line // of the order that the attack is about; nil if there is none
	}{
		{"post", paid()},
		{"again", nil},
		{"twice", paid()},
		{"ten", paid()},
		{"conflict", line{"status": "paid", "charges": "1"}},
		{"malformed", line{"status": "", "message": "parked", "charges": "0"}},
		{"redrive", nil},
		{"declined", line{"status": "declined", "message": "acknowledged", "charges": "0"}},
		{"action", line{"status": "action_required", "message": "acknowledged", "charges": "0"}},
		{"authenticate", paid()},
		{"kill-now", paid()},
		{"kill-after-yes", paid()},
		{"freeze", paid()},
		{"lose-stripe-before", paid()},
		{"lose-stripe-after", paid()},
		{"lose-dynamodb-before", paid()},
		{"lose-dynamodb-after", paid()},
		{"stripe-down", paid()},
		{"throttle", paid()},
		{"rollout", nil},
		{"jump-25h", nil},
		{"jump-20d", nil},
	} {
		t.Run(tt.name, func(t *testing.T) { //nolint:paralleltest // one after the other, in one system
			done := p.attack(t, tt.name)
			if tt.want == nil { // the system works as before
				done, tt.want = p.attack(t, "post"), paid()
			}
			p.awaitLine(t, done.Order, tt.want)
			p.awaitQuiet(t)
			p.compare(t)
			if red := p.redLights(t); red != "" {
				t.Errorf("broken: %s", red)
			}
		})
	}
}

// TestInABrowserAKillRightAfterStripesYesIsVisibleFromTheCrashToTheRecovery watches the
// order that the simulation calls the hardest: charged, and no row says so.
func TestInABrowserAKillRightAfterStripesYesIsVisibleFromTheCrashToTheRecovery(t *testing.T) {
	t.Parallel()
	p := openPage(t)
	defer p.search(t)
	id := p.attack(t, "kill-after-yes").Order
	p.await(t, `document.querySelector('[data-instance][data-state="killed"]')`)
	p.awaitLine(t, id, line{"message": "in_flight", "charges": "1", "deliveries": "1"}) // its lease is waited for
	p.awaitLine(t, id, line{"status": "paid", "message": "acknowledged", "charges": "1", "deliveries": "2"})
	p.compare(t)
	var deaths, confirms int
	for _, e := range p.timeline(t, id).Entries {
		switch {
		case e.Kind == watch.Death:
			deaths++
		case e.Step == watch.Confirm && e.To == watch.Stripe:
			confirms++
		}
	}
	if deaths != 1 || confirms != 1 {
		t.Errorf("the timeline has %d deaths and %d confirms, want one of each", deaths, confirms)
	}
	if n := p.count(t, "kills"); n != 1 {
		t.Errorf("the page counts %d kills, want 1", n)
	}
}
