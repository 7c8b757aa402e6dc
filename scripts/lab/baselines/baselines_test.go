package baselines_test

import (
	"testing"

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
