package baselines_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/lab/baselines"
)

// outcome is how a history ended, the better ones first.
type outcome int

const (
	ok           outcome = iota
	stuck                // not deleted after five deliveries
	conflictLost         // a conflicting duplicate was deleted and not charged
	lost                 // the message is deleted, and the row does not say that the order is paid
	twice                // charged twice
)

func (o outcome) String() string { return []string{"ok", "stuck", "conflict lost", "lost", "twice"}[o] }

func (h *harness) outcome() outcome {
	h.Helper()
	switch {
	case h.charges() > 1:
		return twice
	case h.deleted["other"]:
		return conflictLost
	case !h.deleted["m1"]:
		return stuck
	case h.charges() == 0 || h.status() != baselines.Paid:
		return lost
	}
	return ok
}

// keyExpired is a little more than the 24 h for which Stripe keeps an idempotency key.
const keyExpired = 25 * time.Hour

// history is what happens to an order. If it is stepped, it runs once for each step of
// the first delivery. expire deletes expired items in half of the runs. The worst outcome
// counts.
type history struct {
	name    string
	stepped bool
	run     func(h *harness, step int, expire func())
}

func histories() []history {
	return []history{
		{name: "redelivered", run: func(h *harness, _ int, _ func()) { h.deliverAgain(time.Minute, "m1") }},
		{name: "resent", run: func(h *harness, _ int, _ func()) { h.deliverAgain(time.Minute, "m2") }},
		{name: "concurrent", stepped: true, run: func(h *harness, step int, _ func()) {
			h.before = h.atStep(step, func() { _ = h.deliver(paidBy("m1")) })
			_ = h.deliverUntilDeleted(paidBy("m1"))
		}},
		{name: "paused", stepped: true, run: func(h *harness, step int, expire func()) {
			h.before = h.atStep(step, func() {
				h.now = h.now.Add(visibility)
				_ = h.deliverUntilDeleted(paidBy("m1"))
				h.now = h.now.Add(keyExpired)
				expire()
			})
			_ = h.deliverUntilDeleted(paidBy("m1"))
		}},
		{name: "crash", stepped: true, run: func(h *harness, step int, _ func()) {
			h.after = h.atStep(step, func() { h.now = h.now.Add(visibility); panic(crash{}) })
			_ = h.deliverUntilDeleted(paidBy("m1"))
		}},
		{name: "crash, 25 h", stepped: true, run: func(h *harness, step int, expire func()) {
			h.after = h.atStep(step, func() { h.now = h.now.Add(keyExpired); expire(); panic(crash{}) })
			_ = h.deliverUntilDeleted(paidBy("m1"))
		}},
		{name: "redrive, 4 d", run: func(h *harness, _ int, expire func()) {
			_ = h.deliverUntilDeleted(paidBy("m1"))
			h.now = h.now.Add(4 * keyExpired)
			expire()
			_ = h.deliverUntilDeleted(paidBy("m2"))
		}},
		{name: "timeout", run: failing(stripetest.LoseResponse, 3)}, // stripe-go sends three times
		{name: "500, charged", run: failing(stripetest.ServerErrorAfterEffect, 1)},
		{name: "500", run: failing(stripetest.ServerErrorBeforeEffect, 1)},
		{name: "conflict", run: func(h *harness, _ int, _ func()) {
			_ = h.deliver(paidBy("m1"))
			h.now = h.now.Add(2 * time.Hour)
			_ = h.deliverUntilDeleted(message("other", 2, "pm_card_visa"))
		}},
	}
}

func (h *harness) deliverAgain(gap time.Duration, id string) {
	_ = h.deliver(paidBy("m1"))
	if h.now = h.now.Add(gap); h.FIFO && gap < 5*time.Minute {
		return // what is sent again, the queue drops
	}
	_ = h.deliverUntilDeleted(paidBy(id))
}

func failing(kind stripetest.FaultKind, times int) func(*harness, int, func()) {
	return func(h *harness, _ int, _ func()) {
		h.stripe.Fail(stripetest.Fault{Kind: kind, On: stripetest.Create, Times: times})
		_ = h.deliverUntilDeleted(paidBy("m1"))
	}
}

func (hi history) worst(t *testing.T, b baselines.Baseline) (worst outcome) {
	t.Helper()
	for step := 0; ; step++ {
		for _, expires := range []bool{false, true} {
			h := newHarness(t, b)
			hi.run(h, step, func() {
				if expires {
					h.table.Expire(h.now)
				}
			})
			if hi.stepped && (h.before != nil || h.after != nil) {
				return worst // the first delivery has no such step
			}
			worst = max(worst, h.outcome())
		}
		if !hi.stepped {
			return worst
		}
	}
}

func TestTheTableInTheReadmeIsTrue(t *testing.T) {
	all := histories()
	var want strings.Builder
	want.WriteString("| |")
	for _, h := range all {
		fmt.Fprintf(&want, " %s |", h.name)
	}
	want.WriteString("\n|---|" + strings.Repeat("---|", len(all)) + "\n")
	for _, b := range baselines.All() {
		fmt.Fprintf(&want, "| %s |", b.Name)
		for _, h := range all {
			fmt.Fprintf(&want, " %s |", h.worst(t, b))
		}
		want.WriteString("\n")
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(string(readme), "## Outcomes\n\n")
	got, _, _ = strings.Cut(got, "\n\n")
	if diff := cmp.Diff(got+"\n", want.String()); diff != "" {
		t.Errorf("README.md: (-got +want)\n%s\n%s", diff, want.String())
	}
}

func TestADeclineIsRecordedAndNotRetried(t *testing.T) {
	for _, b := range baselines.All() {
		for method, want := range map[string]baselines.Status{
			"pm_card_chargeDeclined":         baselines.Failed,
			"pm_card_authenticationRequired": baselines.Failed, // not declined; no baseline looks at the code
			"pm_usBankAccount_processing":    baselines.Pending,
			"pm_card_visa":                   baselines.Paid,
		} {
			h := newHarness(t, b)
			if err := h.deliver(message("m1", 1, method)); err != nil || h.status() != want {
				t.Errorf("%s, %s: got %q and %v, want %q", b.Name, method, h.status(), err, want)
			}
		}
		h := newHarness(t, b)
		if err := h.deliver(baselines.Message{ID: "m1", Body: "order 66"}); err == nil || h.steps > 0 {
			t.Errorf("%s, no order: got %v after %d calls, want an error and no call", b.Name, err, h.steps)
		}
	}
}

func TestTheSDKRetriesUnderOneKey(t *testing.T) {
	for lost, want := range map[int]int{2: 1, 3: 2} {
		h := harnessOf(t, "check-then-act")
		h.stripe.Fail(stripetest.Fault{Kind: stripetest.LoseResponse, Times: lost})
		if err := h.deliverUntilDeleted(paidBy("m1")); err != nil || h.charges() != want || h.keys != want {
			t.Errorf("%d lost responses: got %d charges, %d keys, %v, want %d of each", lost, h.charges(), h.keys, err, want)
		}
	}
}

func TestAFailedExecutionIsRedrivenForFourteenDays(t *testing.T) {
	for days, want := range map[int]outcome{13: ok, 15: stuck} {
		h := harnessOf(t, "step-functions")
		h.stripe.Fail(stripetest.Fault{Kind: stripetest.RateLimited, On: stripetest.Create, Times: 9})
		_ = h.deliver(paidBy("m1"))
		h.stripe.Heal()
		h.now = h.now.Add(time.Duration(days) * 24 * time.Hour)
		if _ = h.deliverUntilDeleted(paidBy("m1")); h.outcome() != want {
			t.Errorf("redriven after %d days: got %s, want %s", days, h.outcome(), want)
		}
	}
}

func TestTheJournalKnowsAChargeThatEnded(t *testing.T) {
	h := harnessOf(t, "step-functions")
	recorded := 4 // the call that writes what the task charge returned
	h.after = h.atStep(recorded, func() { h.now = h.now.Add(keyExpired); panic(crash{}) })
	if _ = h.deliverUntilDeleted(paidBy("m1")); h.after != nil || h.outcome() != ok {
		t.Errorf("crashed after the task charge: got %s, want %s", h.outcome(), ok)
	}
}

func TestTheBindReadsTheIntentAfterAnError(t *testing.T) {
	for _, kind := range []stripetest.FaultKind{stripetest.RateLimited, stripetest.ServerErrorBeforeEffect, stripetest.LoseResponse} {
		h := harnessOf(t, "stripe-key + bind")
		h.stripe.Fail(stripetest.Fault{Kind: kind, On: stripetest.Confirm, Times: 3})
		if _ = h.deliverUntilDeleted(paidBy("m1")); h.outcome() != ok {
			t.Errorf("%s of a confirm: got %s and the row %q, want %s", kind, h.outcome(), h.status(), ok)
		}
	}
}

func TestASettledRowIsFinal(t *testing.T) {
	h := harnessOf(t, "stripe-key + bind")
	_ = h.deliver(paidBy("m1"))
	before := h.steps
	if err := h.deliver(paidBy("m2")); err != nil || h.steps != before+1 {
		t.Errorf("got error %v after %d calls, want none after one read", err, h.steps-before)
	}
	h = harnessOf(t, "stripe-key + bind")
	late := h.steps + 4 // the write of the status, after read, create, bind and confirm
	h.before = h.atStep(late, func() {
		settled := h.table["order#"+orderID]
		settled.Status = baselines.Failed
		h.table[settled.ID] = settled
	})
	if err := h.deliver(paidBy("m1")); err != nil || h.before != nil || h.status() != baselines.Failed {
		t.Errorf("got %q and error %v, want the status of who was first", h.status(), err)
	}
}
