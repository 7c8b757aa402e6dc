package system_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestANewFingerprintVersionParksNoOrderUnderWay rolls a release with a second
// fingerprint version out, and back, while an order is between Prepare and Bind: both
// versions must send Stripe the same parameters under the order's idempotency key.
func TestANewFingerprintVersionParksNoOrderUnderWay(t *testing.T) {
	t.Parallel()
	kit := systemtest.New(t)
	release1 := kit.Binary
	// The second release writes fingerprints of a second version and accepts the first.
	release2 := kit.BuildPatched(t, "../../../domain/order/fingerprint.go",
		"return []Fingerprint{fingerprintV1(d)}",
		`return []Fingerprint{"v2:" + fingerprintV1(d)[3:], fingerprintV1(d)}`)
	for claim, c := range map[string]struct {
		first, then, last string
		wantVersion       string
	}{
		"rolled out: the second release goes on with the first one's order": {release1, release2, release2, "v1:"},
		"rolled back and out again: the first release waits":                {release2, release1, release2, "v2:"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			var running atomic.Pointer[system.System]
			var replaced atomic.Bool
			o := quick(system.Options{AfterStripe: func(call stripetest.Call) {
				s := running.Load()
				if call.Endpoint != stripetest.Create || s == nil || !replaced.CompareAndSwap(false, true) {
					return
				}
				if err := s.Function.Replace(c.then); err != nil {
					t.Error(err)
				}
				s.Function.Kill(nil)
			}})
			s := world{systemtest.Kit{Engine: kit.Engine, Binary: c.first}}.start(t, o)
			running.Store(s.System)
			s.post(body("under-way"))
			if c.last != c.then {
				s.waitForReason(order.ReasonUnknownVersion)
				must(t, s.Function.Replace(c.last))
			}
			s.drain()
			books, err := s.Collect(t.Context(), s.posted, s.log) // no audit: it computes the first version alone
			must(t, err)
			if len(books.Parked) != 0 {
				t.Errorf("parked %+v, want nothing parked", books.Parked)
			}
			s.settlesOnce(books, "under-way")
			if got := books.Orders["under-way"].Fingerprint; !strings.HasPrefix(string(got), c.wantVersion) {
				t.Errorf("got fingerprint %s, want version %s", got, c.wantVersion)
			}
			if intents := s.Stripe.Count(stripetest.Create); intents != 2 || !replaced.Load() {
				t.Errorf("prepared %d times, want twice: before and after the kill", intents)
			}
			s.Stripe.Machine(func(m *stripetest.Machine) {
				if n := len(m.Intents()); n != 1 {
					t.Errorf("Stripe made %d intents, want one", n)
				}
			})
		})
	}
}
