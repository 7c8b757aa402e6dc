package baselines_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/lab/baselines"
)

func TestEveryBaselineSaysWhatItDoesAndWhereItFails(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, b := range baselines.All() {
		if b.Name == "" || b.Does == "" || b.Fails == "" || b.Handle == nil {
			t.Errorf("%+v: want every field set", b)
		}
		if names[b.Name] {
			t.Errorf("two baselines are called %q", b.Name)
		}
		names[b.Name] = true
	}
}

func TestADeclineIsRecordedAndNotRetried(t *testing.T) {
	t.Parallel()
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
	}
}

func TestAMalformedBodyIsRedeliveredWithoutACall(t *testing.T) {
	t.Parallel()
	for _, b := range baselines.All() {
		h := newHarness(t, b)
		if err := h.deliver(baselines.Message{ID: "m1", Body: "order 66"}); err == nil || h.steps > 0 {
			t.Errorf("%s: got %v after %d calls, want an error and no call", b.Name, err, h.steps)
		}
	}
}

// concurrently delivers m1 while its first delivery is between its first two calls.
func concurrently(h *harness) {
	h.before = h.atStep(1, func() { _ = h.deliver(paidBy("m1")) })
	_ = h.deliver(paidBy("m1"))
}

func TestShortLockWarnsOfADuplicate(t *testing.T) {
	t.Parallel()
	h := harnessOf(t, "short-lock")
	_, _ = h.deliver(paidBy("m1")), h.deliver(paidBy("m1"))
	if diff := cmp.Diff(h.warnings, []string{"message m1 is already being processed"}); diff != "" {
		t.Errorf("warnings: (-got +want)\n%s", diff)
	}
}

func TestIdempotencyRecord(t *testing.T) {
	t.Parallel()
	t.Run("a concurrent delivery is redelivered, and a later one is a duplicate", func(t *testing.T) {
		t.Parallel()
		h := harnessOf(t, "idempotency-record-24h")
		var second error
		h.before = h.atStep(1, func() { second = h.deliver(paidBy("m1")) })
		first, steps := h.deliver(paidBy("m1")), h.steps
		third := h.deliver(paidBy("m1"))
		if first != nil || second == nil || third != nil || h.steps != steps+1 {
			t.Errorf("got %v, %v, %v, and %d calls for the third; want nil, an error, nil, and 1 call",
				first, second, third, h.steps-steps)
		}
	})
	t.Run("the record of a timed-out attempt is free after its deadline", func(t *testing.T) {
		t.Parallel()
		h := harnessOf(t, "idempotency-record-24h")
		h.after = h.atStep(0, func() { panic(crash{}) })
		_ = h.deliver(paidBy("m1"))
		if err := h.deliver(paidBy("m1")); err == nil {
			t.Error("got no error before the deadline, want the record in progress")
		}
		h.now = h.now.Add(visibility)
		if err := h.deliver(paidBy("m1")); err != nil {
			t.Errorf("got %v after the deadline, want nil", err)
		}
	})
	t.Run("an attempt that fails after its deadline deletes the record of another attempt", func(t *testing.T) {
		t.Parallel()
		h := harnessOf(t, "idempotency-record-24h")
		h.before = h.atStep(1, func() {
			h.now = h.now.Add(2 * time.Minute) // past the deadline of the first attempt, which still runs
			h.after = h.atStep(h.steps, func() { panic(crash{}) })
			_ = h.deliver(paidBy("m1")) // the second attempt takes the record for a minute
			h.stripe.Fail(stripetest.Fault{Kind: stripetest.LoseRequest, Times: 3})
		})
		_ = h.deliver(paidBy("m1"))
		if got, err := h.table.Get(t.Context(), "process#"+orderID); len(got) > 0 || err != nil {
			t.Errorf("got %v, %v, want no record", got, err)
		}
	})
	t.Run("a conflicting duplicate is redelivered", func(t *testing.T) {
		t.Parallel()
		h := harnessOf(t, "idempotency-record-24h")
		_ = h.deliver(paidBy("m1"))
		if err := h.deliver(message("m2", 2, "pm_card_visa")); err == nil {
			t.Error("got no error, want a payload mismatch")
		}
	})
}

func TestLookUpFindsADeclineOnALaterPage(t *testing.T) {
	t.Parallel()
	h := harnessOf(t, "look-up")
	_ = h.deliver(message("m1", 1, "pm_card_chargeDeclined"))
	for range 120 {
		h.stripe.Do(h.now, otherPurchase())
	}
	if err := h.deliver(paidBy("m1")); err != nil || h.status() != baselines.Failed || h.charges() > 0 {
		t.Errorf("got %q, %d charges, %v, want the decline", h.status(), h.charges(), err)
	}
}

func TestTheSDKRetriesUnderOneKey(t *testing.T) {
	t.Parallel()
	for lost, want := range map[int]int{2: 1, 3: 2} {
		h := harnessOf(t, "check-then-act")
		h.stripe.Fail(stripetest.Fault{Kind: stripetest.LoseResponse, Times: lost})
		if err := h.deliverUntilDeleted(paidBy("m1")); err != nil {
			t.Error(err)
		}
		if h.charges() != want || h.keys != want {
			t.Errorf("%d lost responses: got %d charges, %d keys, want %d of each", lost, h.charges(), h.keys, want)
		}
	}
}

func TestAHistoryIsDeterministic(t *testing.T) {
	t.Parallel()
	for _, b := range baselines.All() {
		run := func() []stripetest.Charge {
			h := newHarness(t, b)
			concurrently(h)
			_ = h.deliverUntilDeleted(paidBy("m1"))
			return h.stripe.Ledger()
		}
		if diff := cmp.Diff(run(), run()); diff != "" {
			t.Errorf("%s: two runs differ:\n%s", b.Name, diff)
		}
	}
}
