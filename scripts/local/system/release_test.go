package system_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// buildRelease2 compiles a later release of the function, which writes fingerprints of a
// second version and still accepts the first. The source differs in one function.
func buildRelease2(t *testing.T) (binary string) {
	t.Helper()
	const file = "../../../domain/order/fingerprint.go"
	const before = "return []Fingerprint{fingerprintV1(d)}"
	const after = `return []Fingerprint{"v2:" + fingerprintV1(d)[3:], fingerprintV1(d)}`
	source, err := os.ReadFile(file)
	must(t, err)
	if strings.Count(string(source), before) != 1 {
		t.Fatalf("%s does not hold %q once", file, before)
	}
	dir := t.TempDir()
	path, err := filepath.Abs(file)
	must(t, err)
	patched := filepath.Join(dir, "fingerprint.go")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: patched}})
	must(t, err)
	for name, text := range map[string]string{
		patched:                            strings.Replace(string(source), before, after, 1),
		filepath.Join(dir, "overlay.json"): string(overlay),
	} {
		must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	binary = filepath.Join(dir, "bootstrap")
	release2 := lambdatest.Program{
		Package: "orderonce/functions/order",
		Overlay: filepath.Join(dir, "overlay.json"),
	}
	must(t, release2.Build(t.Context(), binary))
	return binary
}

// TestANewFingerprintVersionParksNoOrderUnderWay rolls a release with a second
// fingerprint version out, and back, while an order is between Prepare and Bind: both
// versions must send Stripe the same parameters under the order's idempotency key.
func TestANewFingerprintVersionParksNoOrderUnderWay(t *testing.T) {
	t.Parallel()
	kit := systemtest.New(t)
	release1 := kit.Binary
	release2 := buildRelease2(t)
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
			if got := books.Records["under-way"].Fingerprint; !strings.HasPrefix(string(got), c.wantVersion) {
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
