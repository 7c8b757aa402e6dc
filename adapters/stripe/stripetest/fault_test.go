package stripetest_test

import (
	"encoding/json"
	"testing"
	"time"

	"orderonce/adapters/stripe/stripetest"
)

// A fault determines the response, and independently whether money moves. A key stores no
// response from before the execution: docs.stripe.com/api/idempotent_requests ("or the
// request conflicts with another request that's executing concurrently") and
// docs.stripe.com/error-low-level (429 and 401).
func TestFaultsAtConfirm(t *testing.T) {
	t.Parallel()
	const succeeded = "200 succeeded"
	for kind, want := range map[stripetest.FaultKind]struct {
		first   string
		charges int
		again   string // the response to the same key later
	}{
		stripetest.LoseRequest:             {"0 lost", 0, succeeded},
		stripetest.Unauthorized:            {"401 invalid_request_error", 0, succeeded},
		stripetest.Forbidden:               {"403 invalid_request_error", 0, succeeded},
		stripetest.RateLimited:             {"429 invalid_request_error rate_limit", 0, succeeded},
		stripetest.LockTimeout:             {"429 invalid_request_error lock_timeout", 0, succeeded},
		stripetest.KeyInUse:                {"409 invalid_request_error idempotency_key_in_use", 0, succeeded},
		stripetest.Unavailable:             {"503 api_error", 0, succeeded},
		stripetest.ServerErrorBeforeEffect: {"500 api_error", 0, "500 api_error replayed"},
		stripetest.ServerErrorAfterEffect:  {"500 api_error", 1, "500 api_error replayed"},
		stripetest.Decline:                 {genericDecline, 0, genericDecline + " replayed"},
		stripetest.Latency:                 {succeeded, 1, succeeded + " replayed"},
		stripetest.SlowSuccess:             {succeeded, 1, succeeded + " replayed"},
		stripetest.LoseResponse:            {"200 succeeded lost", 1, succeeded + " replayed"},
		stripetest.Garbage:                 {succeeded, 1, succeeded + " replayed"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Rules{})
			id := w.create("pm_card_visa")
			w.Fail(stripetest.Fault{Kind: kind, On: stripetest.Confirm, OrderID: "ORD1"})
			res := w.confirm(id, "k")
			if got := summary(res); got != want.first {
				t.Errorf("confirm: got %q, want %q", got, want.first)
			}
			if got := w.Charges("ORD1"); len(got) != want.charges {
				t.Errorf("got charges %v, want %d", got, want.charges)
			}
			if got := summary(w.confirm(id, "k")); got != want.again {
				t.Errorf("the same key later: got %q, want %q", got, want.again)
			}
			if garbled := !json.Valid(res.Body()); garbled != (res.Garbled || res.Status == 0) {
				t.Errorf("body: %s", res.Body())
			}
		})
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
			w.Fail(stripetest.Fault{Kind: stripetest.RateLimited, Times: -1})
			for range 3 {
				exchanges = append(exchanges, exchange{w.get(root), "429 invalid_request_error rate_limit"})
			}
			w.Heal()
			return append(exchanges, exchange{w.get(root), "200"})
		}},
		"a fault of the execution waits for one, a replayed response can be lost": {
			charges: 1, exchanges: func(w *world) []exchange {
				id := w.create("pm_card_visa")
				w.confirm(id, "k")
				w.Fail(stripetest.Fault{Kind: stripetest.ServerErrorBeforeEffect})
				w.Fail(stripetest.Fault{Kind: stripetest.LoseResponse})
				return []exchange{
					{w.confirm(id, "k"), "200 succeeded replayed lost"},
					{w.confirm(id, "k"), "200 succeeded replayed"},
					{w.read(id), "500 api_error"},
				}
			},
		},
		"a fault of one call is for its stage, and is removed with the call": {
			charges: 1, exchanges: func(w *world) []exchange {
				id := w.create("pm_card_visa")
				numbered := func(number int, path, key, form string) stripetest.Response {
					r := request("POST", path, key, form)
					r.Number = number
					return w.Do(w.now, r)
				}
				w.Fail(stripetest.Fault{Number: 2, Kind: stripetest.ServerErrorBeforeEffect, Times: -1})
				w.Fail(stripetest.Fault{Number: 3, Kind: stripetest.ServerErrorBeforeEffect, Times: -1})
				exchanges := []exchange{
					{numbered(1, root+"/"+id+"/confirm", "k", "off_session=true"), "200 succeeded"},
					{numbered(2, root+"/"+id+"/confirm", "k", "off_session=true"), "200 succeeded replayed"},
					{w.createUnder(""), confirmable}, // it has no number
					{numbered(3, root, "", creation("pm_card_visa")), "500 api_error"},
				}
				healed := w.clone()
				healed.Heal()
				if w.state() != healed.state() {
					w.t.Error("got a remaining fault, want none")
				}
				return exchanges
			},
		},
	})
}

func TestDelaysAreBeforeTheEffectOrAfterIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	w.Fail(stripetest.Fault{Kind: stripetest.Latency, Delay: time.Second})
	w.Fail(stripetest.Fault{Kind: stripetest.SlowSuccess, Delay: time.Minute})
	for _, want := range [][2]time.Duration{{time.Second, 0}, {0, time.Minute}, {0, 0}} {
		ticket, _ := w.Begin(w.now, request("POST", root, "", creation("pm_card_visa")))
		before, after := w.Delays(ticket)
		if got := [2]time.Duration{before, after}; got != want {
			t.Errorf("delays: got %v, want %v", got, want)
		}
		w.End(w.now, ticket)
	}
}
