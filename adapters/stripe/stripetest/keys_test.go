package stripetest_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe/stripetest"
)

// A fault determines the response, and independently whether money moves. A key replays
// its first response, also a 500, once the execution begins
// (docs.stripe.com/api/idempotent_requests: "regardless of whether it succeeds or
// fails"), and stores none from before it ("or the request conflicts with another request
// that's executing concurrently"; docs.stripe.com/error-low-level, 429 and 401).
func TestAKeyReplaysItsFirstResponse(t *testing.T) {
	t.Parallel()
	for kind, want := range map[stripetest.FaultKind]struct {
		first   string
		charges int
		again   string // the response to the same key later
	}{
		"":                                 {succeeded, 1, succeeded + " replayed"},
		stripetest.LoseRequest:             {"0 lost", 0, succeeded},
		stripetest.Unauthorized:            {"401 invalid_request_error", 0, succeeded},
		stripetest.Forbidden:               {forbidden, 0, succeeded},
		stripetest.RateLimited:             {"429 invalid_request_error rate_limit", 0, succeeded},
		stripetest.LockTimeout:             {lockTimeout, 0, succeeded},
		stripetest.KeyInUse:                {keyInUse, 0, succeeded},
		stripetest.Unavailable:             {"503 api_error", 0, succeeded},
		stripetest.ServerErrorBeforeEffect: {"500 api_error", 0, "500 api_error replayed"},
		stripetest.ServerErrorAfterEffect:  {"500 api_error", 1, "500 api_error replayed"},
		stripetest.Decline:                 {genericDecline, 0, genericDecline + " replayed"},
		stripetest.Latency:                 {succeeded, 1, succeeded + " replayed"},
		stripetest.SlowSuccess:             {succeeded, 1, succeeded + " replayed"},
		stripetest.LoseResponse:            {succeeded + " lost", 1, succeeded + " replayed"},
		stripetest.Garbage:                 {succeeded, 1, succeeded + " replayed"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Rules{})
			id := w.create("pm_card_visa")
			if kind != "" {
				w.Fail(stripetest.Fault{Kind: kind, On: stripetest.Confirm, OrderID: "ORD1"})
			}
			first := w.confirm(id, "k")
			if got := summary(first); got != want.first {
				t.Errorf("confirm: got %q, want %q", got, want.first)
			}
			if got := w.Charges("ORD1"); len(got) != want.charges {
				t.Errorf("got charges %v, want %d", got, want.charges)
			}
			if garbled := !json.Valid(first.Body()); garbled != (first.Garbled || first.Status == 0) {
				t.Errorf("body: %s", first.Body())
			}
			w.now = w.now.Add(24*time.Hour - 1)
			again := w.confirm(id, "k")
			if got := summary(again); got != want.again {
				t.Errorf("the same key later: got %q, want %q", got, want.again)
			}
			if first.Garbled = false; !again.Replayed() {
				return
			}
			if diff := cmp.Diff(string(first.Body()), string(again.Body())); diff != "" || again.Original != first.RequestID {
				t.Errorf("replay of %s, not of %s, or another body:\n%s", again.Original, first.RequestID, diff)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	testScenarios(t, map[string]scenario{
		// docs.stripe.com/error-low-level: "A request that returns a 400 sends back the
		// same 400".
		"a key replays a 400 of an execution, even if its cause is gone": {charges: 1, exchanges: func(w *world) []exchange {
			id := w.pay("pm_usBankAccount_processing")
			first := w.confirm(id, "k")
			must(w.t, w.Settle(w.now, id, true))
			return []exchange{
				{first, unexpectedState + " processing"},
				{w.confirm(id, "k"), unexpectedState + " processing replayed"},
			}
		}},
		"a GET ignores keys": {charges: 1, exchanges: func(w *world) []exchange {
			id := w.create("pm_card_visa")
			read := request("GET", root+"/"+id, "k", "")
			return []exchange{
				{w.Do(w.now, read), confirmable}, {w.confirm(id, ""), succeeded}, {w.Do(w.now, read), succeeded},
			}
		}},
		"a key does not store a failed validation": {exchanges: func(w *world) []exchange {
			return []exchange{{w.post(root, "k", "amount=0&currency=usd"), notAnInteger}, {w.createUnder("k"), confirmable}}
		}},
		// docs.stripe.com/api/errors: type idempotency_error covers endpoint and parameters.
		"a key is for one request only": {charges: 1, exchanges: func(w *world) []exchange {
			id, other := w.create("pm_card_visa"), w.create("pm_card_visa")
			return []exchange{
				{w.confirm(id, "k"), succeeded},
				{w.confirm(id, "k", "payment_method=pm_card_visa"), "400 idempotency_error"},
				{w.confirm(other, "k"), "400 idempotency_error"},
				{w.createUnder("k"), "400 idempotency_error"},
				{w.confirm(id, "k"), succeeded + " replayed"},
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
				{w.createUnder(strings.Repeat("k", 256)), invalidRequest},
				{w.createUnder(strings.Repeat("k", 255)), confirmable},
			}
		}},
		// docs.stripe.com/error-codes: idempotency_key_in_use; docs.stripe.com/rate-limits:
		// object lock timeouts.
		"a call holds its key and its intent until its response": {charges: 1, exchanges: func(w *world) (exchanges []exchange) {
			id := w.create("pm_card_visa")
			ticket, _ := w.Begin(w.now, request("POST", root+"/"+id+"/confirm", "k", "off_session=true"))
			for range 2 { // before the effect, and two days later between the effect and the response
				exchanges = append(exchanges, exchange{w.confirm(id, "k"), keyInUse}, exchange{w.confirm(id, "other"), lockTimeout})
				w.Effect(w.now, ticket)
				w.Effect(w.now, ticket)
				w.now = w.now.Add(48 * time.Hour)
			}
			w.now = w.now.Add(-96 * time.Hour)
			return append(exchanges,
				exchange{w.read(id), succeeded},
				exchange{w.End(w.now, ticket), succeeded},
				exchange{w.confirm(id, "k"), succeeded + " replayed"},
				exchange{w.confirm(id, "other"), unexpectedState + " succeeded"},
			)
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
		w := newWorld(t, stripetest.Rules{KeyLife: c.life})
		w.createUnder("k")
		w.now = w.now.Add(c.wait)
		w.createUnder("k")
		if got := len(w.Intents()); got != c.want {
			t.Errorf("%s: got %d intents, want %d", name, got, c.want)
		}
	}
}

func TestFaultsMatch(t *testing.T) {
	t.Parallel()
	testScenarios(t, map[string]scenario{
		"a fault is for its endpoint and order only, Times times": {exchanges: func(w *world) []exchange {
			id := w.create("pm_card_visa")
			w.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Read, OrderID: "ORD2", Times: -1})
			w.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Read, OrderID: "ORD1", Times: 2})
			return []exchange{
				{w.createUnder(""), confirmable},
				{w.read(id), "503 api_error"},
				{w.read(id), "503 api_error"},
				{w.read(id), confirmable},
			}
		}},
		"Heal removes a fault that happens every time": {exchanges: func(w *world) (exchanges []exchange) {
			w.Fail(stripetest.Fault{Kind: stripetest.Unavailable, Times: -1})
			for range 3 {
				exchanges = append(exchanges, exchange{w.get(root, ""), "503 api_error"})
			}
			w.Heal()
			return append(exchanges, exchange{w.get(root, ""), "200"})
		}},
		"a fault of the execution waits for one, a replayed response can be lost": {
			charges: 1, exchanges: func(w *world) []exchange {
				id := w.create("pm_card_visa")
				w.confirm(id, "k")
				w.Fail(stripetest.Fault{Kind: stripetest.ServerErrorBeforeEffect})
				w.Fail(stripetest.Fault{Kind: stripetest.LoseResponse})
				return []exchange{
					{w.confirm(id, "k"), succeeded + " replayed lost"},
					{w.confirm(id, "k"), succeeded + " replayed"},
					{w.read(id), "500 api_error"},
				}
			},
		},
		// The second call is replayed and has no execution. The next one must not have its
		// fault instead.
		"a fault of one call is removed with the call": {
			charges: 1, exchanges: func(w *world) []exchange {
				id := w.create("pm_card_visa")
				numbered := func(number int, path, key, form string) stripetest.Response {
					r := request("POST", path, key, form)
					r.Number = number
					return w.Do(w.now, r)
				}
				confirm := func(number int) stripetest.Response {
					return numbered(number, root+"/"+id+"/confirm", "k", "off_session=true")
				}
				w.Fail(stripetest.Fault{Number: 2, Kind: stripetest.ServerErrorBeforeEffect, Times: -1})
				return []exchange{
					{confirm(1), succeeded},
					{confirm(2), succeeded + " replayed"},
					{numbered(2, root, "", creation("pm_card_visa")), confirmable},
				}
			},
		},
	})
}
