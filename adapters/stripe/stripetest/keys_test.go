package stripetest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
)

// docs.stripe.com/api/idempotent_requests: "saving the resulting status code and body of
// the first request made for any given idempotency key, regardless of whether it succeeds
// or fails. Subsequent requests with the same key return the same result".
func TestKeysReplayTheFirstResponse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method string
		fault  stripetest.FaultKind
		want   string
	}{
		"a success":               {"pm_card_visa", "", "200 succeeded"},
		"a decline":               {"pm_card_chargeDeclined", "", genericDecline},
		"a 500 without an effect": {"pm_card_visa", stripetest.ServerErrorBeforeEffect, "500 api_error"},
		"a 500 with an effect":    {"pm_card_visa", stripetest.ServerErrorAfterEffect, "500 api_error"},
		"a lost response":         {"pm_card_visa", stripetest.LoseResponse, "200 succeeded"},
	} {
		t.Run("a key replays its first response: "+name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Rules{})
			id := w.create(c.method)
			if c.fault != "" {
				w.Fail(stripetest.Fault{Kind: c.fault, On: stripetest.Confirm})
			}
			first := w.confirm(id, "k")
			first.Lost = false
			charged := len(w.Ledger())
			w.now = w.now.Add(24*time.Hour - 1)
			again := w.confirm(id, "k")
			if got := summary(first); got != c.want {
				t.Errorf("first: got %q, want %q", got, c.want)
			}
			if got, want := summary(again), c.want+" replayed"; got != want {
				t.Errorf("again: got %q, want %q", got, want)
			}
			if diff := cmp.Diff(string(first.Body()), string(again.Body())); diff != "" {
				t.Errorf("bodies differ:\n%s", diff)
			}
			if again.Original != first.RequestID || again.RequestID == first.RequestID {
				t.Errorf("got request %s of original %s, want a new request of original %s",
					again.RequestID, again.Original, first.RequestID)
			}
			if got := len(w.Ledger()); got != charged {
				t.Errorf("got %d charges after the replay, want %d", got, charged)
			}
		})
	}
	testScenarios(t, map[string]scenario{
		// docs.stripe.com/error-low-level: "as long as an API method began execution,
		// Stripe's API servers will cache the results of the request regardless of what
		// they were. A request that returns a 400 sends back the same 400".
		"a key replays a 400 of an execution, even if its cause is gone": {charges: 1, exchanges: func(w *world) []exchange {
			id := w.create("pm_usBankAccount_processing")
			w.confirm(id, "")
			first := w.confirm(id, "k")
			must(w.t, w.Settle(w.now, id, true))
			return []exchange{
				{first, unexpectedState + " processing"},
				{w.confirm(id, "k"), unexpectedState + " processing replayed"},
			}
		}},
		"a replayed creation creates no second intent": {exchanges: func(w *world) []exchange {
			exchanges := []exchange{{w.createUnder("k"), confirmable}, {w.createUnder("k"), confirmable + " replayed"}}
			if got := len(w.Intents()); got != 1 {
				w.t.Errorf("got %d intents, want 1", got)
			}
			return exchanges
		}},
		"a GET ignores keys": {charges: 1, exchanges: func(w *world) []exchange {
			id := w.create("pm_card_visa")
			read := request("GET", root+"/"+id, "k", "")
			return []exchange{
				{w.Do(w.now, read), confirmable}, {w.confirm(id, ""), "200 succeeded"}, {w.Do(w.now, read), "200 succeeded"},
			}
		}},
		// docs.stripe.com/api/idempotent_requests: "If incoming parameters fail validation,
		// or the request conflicts with another request that's executing concurrently, we
		// don't save the idempotent result".
		"a key does not store a failed validation": {exchanges: func(w *world) []exchange {
			return []exchange{
				{w.post(root, "k", "amount=0&currency=usd"), "400 invalid_request_error parameter_invalid_integer"},
				{w.createUnder("k"), confirmable},
			}
		}},
		// The same page: "The idempotency layer compares incoming parameters to those of
		// the original request and errors if they're not the same";
		// docs.stripe.com/api/errors: type idempotency_error covers endpoint and
		// parameters.
		"a key is for one request only": {charges: 1, exchanges: func(w *world) []exchange {
			id, other := w.create("pm_card_visa"), w.create("pm_card_visa")
			const parameters = "off_session=false&return_url=https://example.com"
			return []exchange{
				{w.confirm(id, "k"), "200 succeeded"},
				{w.post(root+"/"+id+"/confirm", "k", parameters), "400 idempotency_error"},
				{w.confirm(other, "k"), "400 idempotency_error"},
				{w.createUnder("k"), "400 idempotency_error"},
				{w.confirm(id, "k"), "200 succeeded replayed"},
			}
		}},
		"PruneKeys removes expired keys, ForgetKeys all but those in use": {exchanges: func(w *world) []exchange {
			w.createUnder("old")
			w.now = w.now.Add(12 * time.Hour)
			w.createUnder("young")
			w.PruneKeys(w.now.Add(12 * time.Hour))
			pruned := []exchange{{w.createUnder("young"), confirmable + " replayed"}, {w.createUnder("old"), confirmable}}
			w.Begin(w.now, request("POST", root, "running", creation("pm_card_visa")))
			w.ForgetKeys()
			return append(pruned, exchange{w.createUnder("young"), confirmable}, exchange{w.createUnder("running"), keyInUse})
		}},
		"a key of more than 255 characters is refused": {exchanges: func(w *world) []exchange {
			return []exchange{
				{w.createUnder(strings.Repeat("k", 256)), "400 invalid_request_error"},
				{w.createUnder(strings.Repeat("k", 255)), confirmable},
			}
		}},
	})
}

// docs.stripe.com/api/idempotent_requests: keys can be removed "after they're at least 24
// hours old. We generate a new request if a key is reused after the original is pruned".
func TestKeysExpire(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		life, wait time.Duration
		want       int
	}{
		"kept for a day":                    {0, 24*time.Hour - 1, 1},
		"a new request after a day":         {0, 24 * time.Hour, 2},
		"kept for KeyLife":                  {time.Minute, time.Minute - 1, 1},
		"a new request after KeyLife":       {time.Minute, time.Minute, 2},
		"a new request if no key is stored": {-1, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Rules{KeyLife: c.life})
			w.createUnder("k")
			w.now = w.now.Add(c.wait)
			w.createUnder("k")
			if got := len(w.Intents()); got != c.want {
				t.Errorf("got %d intents, want %d", got, c.want)
			}
		})
	}
}

// docs.stripe.com/error-codes: idempotency_key_in_use; docs.stripe.com/rate-limits:
// object lock timeouts.
func TestConcurrentRequests(t *testing.T) {
	t.Parallel()
	testScenarios(t, map[string]scenario{
		"a call holds its key and its intent until its response": {charges: 1, exchanges: func(w *world) (exchanges []exchange) {
			id := w.create("pm_card_visa")
			ticket, _ := w.Begin(w.now, request("POST", root+"/"+id+"/confirm", "k", "off_session=true"))
			for range 2 { // before the effect, and two days later between the effect and the response
				rival := w.confirm(id, "other")
				if rival.ShouldRetry != "true" {
					w.t.Errorf("Stripe-Should-Retry of a lock timeout: got %q, want true", rival.ShouldRetry)
				}
				exchanges = append(exchanges,
					exchange{w.confirm(id, "k"), keyInUse}, exchange{rival, "429 invalid_request_error lock_timeout"})
				w.Effect(w.now, ticket)
				w.Effect(w.now, ticket)
				w.now = w.now.Add(48 * time.Hour)
			}
			w.now = w.now.Add(-96 * time.Hour)
			return append(exchanges,
				exchange{w.read(id), "200 succeeded"},
				exchange{w.End(w.now, ticket), "200 succeeded"},
				exchange{w.confirm(id, "k"), "200 succeeded replayed"},
				exchange{w.confirm(id, "other"), unexpectedState + " succeeded"},
			)
		}},
	})
}
