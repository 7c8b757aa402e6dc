package baselines_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/lab/baselines"
)

func TestEveryDesignSaysWhatItIs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, d := range baselines.All() {
		for _, text := range []string{d.Name, d.Pattern, d.Claim, d.Source, d.Enough} {
			if text == "" {
				t.Errorf("%q leaves something out", d.Name)
			}
		}
		if seen[d.Name] || d.Handle == nil {
			t.Errorf("%q is there twice, or does nothing", d.Name)
		}
		seen[d.Name] = true
	}
}

func TestADeclineIsRecordedAndNotTriedAgain(t *testing.T) {
	t.Parallel()
	for _, d := range baselines.All() {
		for method, want := range map[string]baselines.Status{
			"pm_card_chargeDeclined":         baselines.Failed,
			"pm_card_authenticationRequired": baselines.Failed, // nobody declined it: they do not look
			"pm_usBankAccount_processing":    baselines.Pending,
			"pm_card_visa":                   baselines.Paid,
		} {
			w := newWorld(t, d)
			if err := w.deliver(message("m1", 1, method)); err != nil || w.status() != want {
				t.Errorf("%s, %s: got %q and %v, want %q", d.Name, method, w.status(), err, want)
			}
		}
	}
}

func TestABodyThatIsNoOrderComesBack(t *testing.T) {
	t.Parallel()
	for _, d := range baselines.All() {
		w := newWorld(t, d)
		if err := w.deliver(baselines.Message{ID: "m1", Body: "order 66"}); err == nil || w.steps > 0 {
			t.Errorf("%s: got %v after %d calls, want an error and no call", d.Name, err, w.steps)
		}
	}
}

func TestCheckThenAct(t *testing.T) {
	t.Parallel()
	t.Run("a duplicate that comes after the row is skipped, also a year later", func(t *testing.T) {
		t.Parallel()
		w := named(t, "check-then-act")
		_ = w.deliver(pays("m1"))
		w.now = w.now.Add(365 * 24 * time.Hour)
		w.table.Expire(w.now)
		_ = w.deliver(pays("m2"))
		w.wantCharges(1)
	})
	t.Run("two deliveries that both find no row charge twice", func(t *testing.T) {
		t.Parallel()
		w := named(t, "check-then-act")
		w.before = w.once(1, func() { _ = w.deliver(pays("m1")) })
		_ = w.deliver(pays("m1"))
		w.wantCharges(2)
	})
}

func TestMessageIDBeforeWork(t *testing.T) {
	t.Parallel()
	t.Run("a duplicate at the same moment is skipped", func(t *testing.T) {
		t.Parallel()
		w := named(t, "message-id-before")
		w.before = w.once(1, func() { _ = w.deliver(pays("m1")) })
		_ = w.deliver(pays("m1"))
		w.wantCharges(1)
	})
	t.Run("work that fails once is never done", func(t *testing.T) {
		t.Parallel()
		w := named(t, "message-id-before")
		w.stripe.Fail(stripetest.Fault{Kind: stripetest.RateLimited})
		first, second := w.deliver(pays("m1")), w.deliver(pays("m1"))
		if first == nil || second != nil {
			t.Errorf("got %v, then %v, want an error, then none", first, second)
		}
		w.wantCharges(0)
	})
	t.Run("a redrive has another message id and charges again", func(t *testing.T) {
		t.Parallel()
		w := named(t, "message-id-before")
		_, _ = w.deliver(pays("m1")), w.deliver(pays("m2"))
		w.wantCharges(2)
	})
}

func TestMessageIDAfterWork(t *testing.T) {
	t.Parallel()
	t.Run("work that fails once is done at the next delivery", func(t *testing.T) {
		t.Parallel()
		w := named(t, "message-id-after")
		w.stripe.Fail(stripetest.Fault{Kind: stripetest.RateLimited})
		_, _, _ = w.deliver(pays("m1")), w.deliver(pays("m1")), w.deliver(pays("m1"))
		w.wantCharges(1)
	})
	t.Run("a death between the work and the put charges twice", func(t *testing.T) {
		t.Parallel()
		w := named(t, "message-id-after")
		w.after = w.once(2, func() { panic(dead{}) })
		_, _ = w.deliver(pays("m1")), w.deliver(pays("m1"))
		w.wantCharges(2)
	})
}

func TestShortLock(t *testing.T) {
	t.Parallel()
	w := named(t, "short-lock")
	_, _ = w.deliver(pays("m1")), w.deliver(pays("m1"))
	if len(w.warnings) != 1 {
		t.Errorf("got warnings %q, want one for the duplicate", w.warnings)
	}
	w.wantCharges(2)
}

func TestStripeKeyOnly(t *testing.T) {
	t.Parallel()
	for gap, want := range map[time.Duration]int{23 * time.Hour: 1, day: 2} {
		w := named(t, "stripe-key")
		_ = w.deliver(pays("m1"))
		w.now = w.now.Add(gap)
		_ = w.deliver(pays("m1"))
		w.wantCharges(want)
	}
	t.Run("a stored 500 after the charge answers for a day, and then the charge is made again", func(t *testing.T) {
		t.Parallel()
		w := named(t, "stripe-key")
		w.stripe.Fail(stripetest.Fault{Kind: stripetest.ServerErrorAfterEffect})
		if err := w.settle(pays("m1")); err == nil {
			t.Error("got no error, want the stored one at each delivery")
		}
		w.wantCharges(1)
		w.now = w.now.Add(day)
		_ = w.deliver(pays("m1"))
		w.wantCharges(2)
	})
}

func TestIdempotencyRecord(t *testing.T) {
	t.Parallel()
	t.Run("a twin waits, and the answer is replayed afterwards", func(t *testing.T) {
		t.Parallel()
		w := named(t, "idempotency-record")
		var twin error
		w.before = w.once(1, func() { twin = w.deliver(pays("m1")) })
		first, steps := w.deliver(pays("m1")), w.steps
		if again := w.deliver(pays("m1")); first != nil || again != nil || twin == nil || w.steps != steps+1 {
			t.Errorf("got %v, %v and %v for the twin, in %d steps", first, again, twin, w.steps-steps)
		}
		w.wantCharges(1)
	})
	t.Run("a time-out frees the record", func(t *testing.T) {
		t.Parallel()
		w := named(t, "idempotency-record")
		w.after = w.once(0, func() { panic(dead{}) })
		_ = w.deliver(pays("m1"))
		if err := w.deliver(pays("m1")); err == nil {
			t.Error("a record in progress is free before its worker's deadline")
		}
		w.now = w.now.Add(visibility)
		if err := w.deliver(pays("m1")); err != nil {
			t.Error(err)
		}
		w.wantCharges(1)
	})
	t.Run("a death between charge and record charges twice once Stripe's key is gone", func(t *testing.T) {
		t.Parallel()
		for _, name := range []string{"idempotency-record", "idempotency-record-24h"} {
			w := named(t, name)
			w.after = w.once(1, func() { panic(dead{}) })
			_ = w.deliver(pays("m1"))
			w.now = w.now.Add(day)
			_ = w.deliver(pays("m1"))
			w.wantCharges(2)
		}
	})
	t.Run("the error of one who was given up deletes the record that another one holds", func(t *testing.T) {
		t.Parallel()
		w := named(t, "idempotency-record")
		w.before = w.once(1, func() {
			w.now = w.now.Add(2 * time.Minute) // the first one's deadline is over, and it is not dead
			w.after = w.once(w.steps, func() { panic(dead{}) })
			_ = w.deliver(pays("m1")) // another one holds the record, for a minute
			w.stripe.Fail(stripetest.Fault{Kind: stripetest.LoseRequest, Times: 3})
		})
		_ = w.deliver(pays("m1"))
		if held, err := w.table.Get(t.Context(), "process#"+orderID); len(held) > 0 || err != nil {
			t.Errorf("got %v, %v, want the record gone", held, err)
		}
		if err := w.deliver(pays("m1")); err != nil {
			t.Errorf("got %v, want a third one to walk in", err)
		}
	})
	t.Run("the work is done again when the record's life is over", func(t *testing.T) {
		t.Parallel()
		for name, calls := range map[string]int{"idempotency-record": 4, "idempotency-record-24h": 1} {
			w := named(t, name)
			_ = w.deliver(pays("m1"))
			w.now, w.steps = w.now.Add(2*time.Hour), 0
			if err := w.deliver(pays("m1")); err != nil || w.steps != calls {
				t.Errorf("%s: got %d calls and %v, want %d", name, w.steps, err, calls)
			}
			w.wantCharges(1) // by Stripe's key
		}
	})
	t.Run("other content is acknowledged without a payload check, and refused with it", func(t *testing.T) {
		t.Parallel()
		for name, refused := range map[string]bool{"idempotency-record": false, "idempotency-record-24h": true} {
			w := named(t, name)
			_ = w.deliver(pays("m1"))
			if err := w.deliver(message("m2", 2, "pm_card_visa")); (err != nil) != refused {
				t.Errorf("%s: got %v, want it refused: %t", name, err, refused)
			}
			w.wantCharges(1)
		}
	})
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	t.Run("Stripe's key catches what the table lets through", func(t *testing.T) {
		t.Parallel()
		w := named(t, "patterns")
		w.before = w.once(1, func() { _ = w.deliver(pays("m1")) })
		if err := w.deliver(pays("m1")); err != nil {
			t.Error(err)
		}
		w.wantCharges(1)
	})
	t.Run("a redrive after all layers have expired charges again", func(t *testing.T) {
		t.Parallel()
		w := named(t, "patterns")
		_ = w.deliver(pays("m1"))
		w.now = w.now.Add(4 * day)
		_ = w.deliver(pays("m2"))
		w.wantCharges(1) // DynamoDB may delete days late, and the row is read as if it lived
		w.table.Expire(w.now)
		_ = w.deliver(pays("m2"))
		w.wantCharges(2)
	})
}

func TestLookup(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		gap  time.Duration
		want int
	}{
		{"look-up", time.Second, 1},
		{"look-up-late", time.Second, 2},
		{"look-up-late", 2 * time.Hour, 1},
		{"look-up-stripe-key", time.Second, 1},
		{"look-up-stripe-key", 365 * day, 1},
	} {
		w := named(t, c.name)
		w.after = w.once(1, func() { panic(dead{}) })
		_ = w.deliver(pays("m1"))
		w.now = w.now.Add(c.gap)
		if err := w.deliver(pays("m1")); err != nil || w.status() != baselines.Paid {
			t.Errorf("%s, a charge without a record %s ago: got %q, %v", c.name, c.gap, w.status(), err)
		}
		w.wantCharges(c.want)
	}
	t.Run("two deliveries that both find nothing charge twice, unless they have a key", func(t *testing.T) {
		t.Parallel()
		for name, want := range map[string]int{"look-up": 2, "look-up-stripe-key": 1} {
			w := named(t, name)
			w.before = w.once(1, func() { _ = w.deliver(pays("m1")) })
			_ = w.deliver(pays("m1"))
			w.wantCharges(want)
		}
	})
	t.Run("a charge on a later page, and a decline, are found", func(t *testing.T) {
		t.Parallel()
		w := named(t, "look-up")
		_ = w.deliver(message("m1", 1, "pm_card_chargeDeclined"))
		for range 120 {
			w.stripe.Do(w.now, purchase())
		}
		if err := w.deliver(pays("m1")); err != nil || w.status() != baselines.Failed {
			t.Errorf("got %q, %v, want the decline to be found", w.status(), err)
		}
		w.wantCharges(0)
	})
}

func TestTheSDKAsksAgainUnderOneKey(t *testing.T) {
	t.Parallel()
	for times, want := range map[int]int{2: 1, 3: 2} {
		w := named(t, "check-then-act")
		w.stripe.Fail(stripetest.Fault{Kind: stripetest.LoseResponse, Times: times})
		if err := w.settle(pays("m1")); err != nil {
			t.Error(err)
		}
		w.wantCharges(want)
		if w.keys != want {
			t.Errorf("got %d keys, want one for each delivery", w.keys)
		}
	}
}

func TestTheSameHistoryTwiceIsTheSame(t *testing.T) {
	t.Parallel()
	for _, d := range baselines.All() {
		run := func() []stripetest.Charge {
			w := newWorld(t, d)
			w.before = w.once(1, func() { _ = w.deliver(pays("m1")) })
			_ = w.settle(pays("m1"))
			return w.stripe.Ledger()
		}
		if diff := cmp.Diff(run(), run()); diff != "" {
			t.Errorf("%s: %s", d.Name, diff)
		}
	}
}

// A storm reaches Stripe through sockets, with a clock that runs.
func TestTheSameHoldsOverHTTP(t *testing.T) {
	t.Parallel()
	for _, d := range baselines.All() {
		server, err := stripetest.Serve(stripetest.Options{Rules: stripetest.Rules{ListLag: d.ListLag}})
		must(t, err)
		w := newWorld(t, d)
		w.client = baselines.NewStripe(baselines.StripeOptions{Key: "sk_test_pretend", BaseURL: server.URL, Timeout: time.Minute})
		over, memory := 0, newWorld(t, d)
		for range 3 {
			_, _ = w.deliver(pays("m1")), memory.deliver(pays("m1"))
		}
		server.Machine(func(m *stripetest.Machine) { over = len(m.Charges(orderID)) })
		if over != memory.charges() {
			t.Errorf("%s: got %d charges over HTTP, and %d in memory", d.Name, over, memory.charges())
		}
		must(t, server.Close())
	}
}

func TestAnOrderThatNobodyHasHeardOfHasNoStatus(t *testing.T) {
	t.Parallel()
	if got, err := baselines.StatusOf(t.Context(), new(baselines.Map), orderID); got != "" || err != nil {
		t.Errorf("got %q, %v, want none", got, err)
	}
}
