package stripetest_test

import (
	"encoding/json"
	"testing"
	"time"

	"orderonce/adapters/stripe/stripetest"
)

// A fault determines the response, and independently whether money moves.
func TestFaultsAtConfirm(t *testing.T) {
	t.Parallel()
	for kind, want := range map[stripetest.FaultKind]struct {
		res     string
		charges int
	}{
		stripetest.LoseRequest:             {"0 lost", 0},
		stripetest.Unauthorized:            {"401 invalid_request_error", 0},
		stripetest.Forbidden:               {"403 invalid_request_error", 0},
		stripetest.RateLimited:             {"429 invalid_request_error rate_limit", 0},
		stripetest.LockTimeout:             {"429 invalid_request_error lock_timeout", 0},
		stripetest.KeyInUse:                {"409 invalid_request_error idempotency_key_in_use", 0},
		stripetest.Unavailable:             {"503 api_error", 0},
		stripetest.ServerErrorBeforeEffect: {"500 api_error", 0},
		stripetest.ServerErrorAfterEffect:  {"500 api_error", 1},
		stripetest.Decline:                 {genericDecline, 0},
		stripetest.Latency:                 {"200 succeeded", 1},
		stripetest.SlowSuccess:             {"200 succeeded", 1},
		stripetest.LoseResponse:            {"200 succeeded lost", 1},
		stripetest.Garbage:                 {"200 succeeded", 1},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Rules{})
			id := w.create("pm_card_visa")
			w.Fail(stripetest.Fault{Kind: kind, On: stripetest.Confirm, OrderID: "ORD1"})
			res := w.confirm(id, "k")
			if got := summary(res); got != want.res {
				t.Errorf("confirm: got %q, want %q", got, want.res)
			}
			if got := w.Charges("ORD1"); len(got) != want.charges {
				t.Errorf("got charges %v, want %d", got, want.charges)
			}
			if garbled := !json.Valid(res.Body()); garbled != (res.Garbled || res.Status == 0) {
				t.Errorf("body: %s", res.Body())
			}
		})
	}
}

func TestFaultsMatch(t *testing.T) {
	t.Parallel()

	t.Run("a fault is for its endpoint and order only, Times times", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		id := w.create("pm_card_visa")
		w.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Read, OrderID: "ORD2", Times: -1})
		w.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Read, OrderID: "ORD1", Times: 2})
		if got, want := summary(w.post(root, "", creation("pm_card_visa"))),
			"200 requires_confirmation"; got != want {
			t.Errorf("another endpoint: got %q, want %q", got, want)
		}
		for _, want := range []string{"503 api_error", "503 api_error", "200 requires_confirmation"} {
			if got := summary(w.get(root + "/" + id)); got != want {
				t.Errorf("read: got %q, want %q", got, want)
			}
		}
	})

	t.Run("Heal removes a fault that happens every time", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		w.Fail(stripetest.Fault{Kind: stripetest.RateLimited, Times: -1})
		for range 3 {
			if got, want := summary(w.get(root)), "429 invalid_request_error rate_limit"; got != want {
				t.Errorf("armed: got %q, want %q", got, want)
			}
		}
		w.Heal()
		if got, want := summary(w.get(root)), "200"; got != want {
			t.Errorf("healed: got %q, want %q", got, want)
		}
	})

	t.Run("a fault of the execution waits for one, a replayed response can be lost", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		id := w.create("pm_card_visa")
		w.confirm(id, "k")
		w.Fail(stripetest.Fault{Kind: stripetest.ServerErrorBeforeEffect})
		w.Fail(stripetest.Fault{Kind: stripetest.LoseResponse})
		if got, want := summary(w.confirm(id, "k")), "200 succeeded replayed lost"; got != want {
			t.Errorf("replay: got %q, want %q", got, want)
		}
		if got, want := summary(w.confirm(id, "k")), "200 succeeded replayed"; got != want {
			t.Errorf("replay again: got %q, want %q", got, want)
		}
		if got, want := summary(w.get(root+"/"+id)), "500 api_error"; got != want {
			t.Errorf("execution: got %q, want %q", got, want)
		}
	})

	t.Run("a fault of one call is for its stage, and is removed with the call", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		id := w.create("pm_card_visa")
		numbered := func(number int, path, key, form string) stripetest.Response {
			r := request("POST", path, key, form)
			r.Number = number
			return w.Do(w.now, r)
		}
		w.Fail(stripetest.Fault{Number: 2, Kind: stripetest.ServerErrorBeforeEffect, Times: -1})
		w.Fail(stripetest.Fault{Number: 3, Kind: stripetest.ServerErrorBeforeEffect, Times: -1})
		if got, want := summary(numbered(1, root+"/"+id+"/confirm", "k", "off_session=true")),
			"200 succeeded"; got != want {
			t.Errorf("a call before it: got %q, want %q", got, want)
		}
		if got, want := summary(numbered(2, root+"/"+id+"/confirm", "k", "off_session=true")),
			"200 succeeded replayed"; got != want {
			t.Errorf("its call, replayed: got %q, want %q", got, want)
		}
		if got, want := summary(w.post(root, "", creation("pm_card_visa"))),
			"200 requires_confirmation"; got != want {
			t.Errorf("a call without a number: got %q, want %q", got, want)
		}
		if got, want := summary(numbered(3, root, "", creation("pm_card_visa"))), "500 api_error"; got != want {
			t.Errorf("its call, executed: got %q, want %q", got, want)
		}
		healed := w.clone()
		healed.Heal()
		if w.state() != healed.state() {
			t.Error("a fault is left")
		}
	})

	t.Run("Delays returns the delay before the effect or after it", func(t *testing.T) {
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
	})
}
