package stripetest_test

import (
	"encoding/json"
	"testing"
	"time"

	"orderonce/adapters/stripe/stripetest"
)

// A fault decides what the client sees and, separately, whether the money moved.
func TestFaultsAtConfirm(t *testing.T) {
	t.Parallel()
	for kind, want := range map[stripetest.FaultKind]struct {
		answer  string
		charges int
	}{
		stripetest.LoseAnswerBeforeEffect:  {"0 lost", 0},
		stripetest.Unauthorized:            {"401 invalid_request_error", 0},
		stripetest.Forbidden:               {"403 invalid_request_error", 0},
		stripetest.RateLimited:             {"429 invalid_request_error rate_limit", 0},
		stripetest.LockTimeout:             {"429 invalid_request_error lock_timeout", 0},
		stripetest.KeyInUse:                {"409 invalid_request_error idempotency_key_in_use", 0},
		stripetest.Unavailable:             {"503 api_error", 0},
		stripetest.ServerErrorBeforeEffect: {"500 api_error", 0},
		stripetest.ServerErrorAfterEffect:  {"500 api_error", 1},
		stripetest.Decline:                 {"402 card_error card_declined generic_decline requires_payment_method", 0},
		stripetest.Latency:                 {"200 succeeded", 1},
		stripetest.SlowSuccess:             {"200 succeeded", 1},
		stripetest.LoseAnswerAfterEffect:   {"200 succeeded lost", 1},
		stripetest.Garbage:                 {"200 succeeded", 1},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Rules{})
			id := w.create("pm_card_visa")
			w.Fail(stripetest.Fault{Kind: kind, On: stripetest.Confirm, OrderID: "ORD1"})
			answer := w.confirm(id, "k")
			wantSum(t, "confirm", answer, want.answer)
			w.wantCharges(want.charges)
			if garbled := !json.Valid(answer.Body()); garbled != (answer.Garbled || answer.Status == 0) {
				t.Errorf("body: %s", answer.Body())
			}
		})
	}
}

func TestFaultsMatch(t *testing.T) {
	t.Parallel()

	t.Run("a fault hits its endpoint and its order only, as often as told", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		id := w.create("pm_card_visa")
		w.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Read, OrderID: "ORD2", Times: -1})
		w.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Read, OrderID: "ORD1", Times: 2})
		wantSum(t, "another endpoint", w.post(root, "", creation("pm_card_visa")), "200 requires_confirmation")
		for _, want := range []string{"503 api_error", "503 api_error", "200 requires_confirmation"} {
			wantSum(t, "read", w.get(root+"/"+id), want)
		}
	})

	t.Run("a fault for ever ends when healed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		w.Fail(stripetest.Fault{Kind: stripetest.RateLimited, Times: -1})
		for range 3 {
			wantSum(t, "armed", w.get(root), "429 invalid_request_error rate_limit")
		}
		w.Heal()
		wantSum(t, "healed", w.get(root), "200")
	})

	t.Run("an execution's fault waits for an execution, a lost answer may be a replayed one", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		id := w.create("pm_card_visa")
		w.confirm(id, "k")
		w.Fail(stripetest.Fault{Kind: stripetest.ServerErrorBeforeEffect})
		w.Fail(stripetest.Fault{Kind: stripetest.LoseAnswerAfterEffect})
		wantSum(t, "replay", w.confirm(id, "k"), "200 succeeded replayed lost")
		wantSum(t, "replay again", w.confirm(id, "k"), "200 succeeded replayed")
		wantSum(t, "execution", w.get(root+"/"+id), "500 api_error")
	})

	t.Run("a fault of one call hits it at its stage, and is gone with it", func(t *testing.T) {
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
		wantSum(t, "a call before it", numbered(1, root+"/"+id+"/confirm", "k", "off_session=true"), "200 succeeded")
		wantSum(t, "its call, replayed", numbered(2, root+"/"+id+"/confirm", "k", "off_session=true"), "200 succeeded replayed")
		wantSum(t, "a call without a number", w.post(root, "", creation("pm_card_visa")), "200 requires_confirmation")
		wantSum(t, "its call, executed", numbered(3, root, "", creation("pm_card_visa")), "500 api_error")
		healed := w.clone()
		healed.Heal()
		if w.state() != healed.state() {
			t.Error("a fault is left")
		}
	})

	t.Run("delays say where they belong", func(t *testing.T) {
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
