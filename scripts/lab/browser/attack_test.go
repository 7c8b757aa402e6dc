package browser_test

import (
	"slices"
	"testing"
	"time"
)

// paid is the line of an order that was charged once and settled.
func paid() line { return line{"status": "paid", "message": "acknowledged", "charges": "1"} }

func TestInABrowserThePageAgreesWithTableAndLedgerAfterEachAttack(t *testing.T) {
	t.Parallel()
	p := openPage(t)
	defer p.search(t)
	p.slowSteps(t, false)
	unpressed := read[[]string](t, p.tab, "[...document.querySelectorAll('[data-attack]')].map(b => b.dataset.attack)")
	for _, tt := range []struct {
		name    string
		charges int  // that the attack adds
		want    line // of the order that it is about; nil if there is none: then an order is posted
	}{
		{"post", 1, paid()},
		{"again", 1, nil},
		{"twice", 1, paid()},
		{"ten", 10, paid()},
		{"conflict", 1, line{"status": "paid", "charges": "1"}},
		{"malformed", 0, line{"status": "", "message": "parked", "charges": "0"}},
		{"redrive", 1, nil},
		{"declined", 0, line{"status": "canceled", "message": "acknowledged", "charges": "0"}},
		{"action", 0, line{"status": "action_required", "message": "acknowledged", "charges": "0"}},
		{"authenticate", 1, paid()},
		{"days", 0, line{"status": "pending", "message": "acknowledged", "charges": "0"}},
		{"clear", 1, paid()},
		{"kill-now", 1, paid()},
		{"kill-after-yes", 1, paid()},
		{"freeze", 1, paid()},
		{"lose-stripe-before", 1, paid()},
		{"lose-stripe-after", 1, paid()},
		{"lose-dynamodb-before", 1, paid()},
		{"lose-dynamodb-after", 1, paid()},
		{"stripe-down", 3, paid()},
		{"throttle", 5, paid()},
		{"lose-bind-25h", 1, paid()},
		{"lose-finish", 1, paid()},
		{"kill-25h", 1, paid()},
		{"kill-after-finish", 1, paid()},
		{"again-kill", 1, paid()},
		{"malformed-unparked", 0, line{"status": "", "message": "parked", "charges": "0"}},
		{"rollout", 1, nil},
		{"jump-25h", 1, nil},
		{"jump-20d", 1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			unpressed = slices.DeleteFunc(unpressed, func(name string) bool { return name == tt.name })
			want := p.count(t, "charges") + tt.charges
			done := p.attack(t, tt.name)
			if tt.want == nil { // the system works as before
				done, tt.want = p.attack(t, "post"), paid()
			}
			p.awaitLine(t, done.Order, tt.want)
			p.awaitQuiet(t)
			p.compare(t)
			if got := p.count(t, "charges"); got != want {
				t.Errorf("the page counts %d charges, want %d", got, want)
			}
		})
	}
	p.load(t)
	p.compare(t)              // a visitor who comes later sees what happened
	p.pause(t, 3*time.Second) // an order is audited when it was at rest for 2 s
	if red := p.redLights(t); red != "" {
		t.Errorf("broken: %s", red)
	}
	if len(unpressed) > 0 {
		t.Errorf("not pressed: %q", unpressed)
	}
}
