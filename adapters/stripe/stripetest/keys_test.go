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

	// docs.stripe.com/error-low-level: "as long as an API method began execution,
	// Stripe's API servers will cache the results of the request regardless of what they
	// were. A request that returns a 400 sends back the same 400".
	t.Run("a key replays a 400 of an execution, even if its cause is gone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		id := w.create("pm_usBankAccount_processing")
		w.confirm(id, "")
		if got, want := summary(w.confirm(id, "k")), unexpectedState+" processing"; got != want {
			t.Errorf("first: got %q, want %q", got, want)
		}
		if err := w.Settle(w.now, id, true); err != nil {
			t.Fatal(err)
		}
		if got, want := summary(w.confirm(id, "k")), unexpectedState+" processing replayed"; got != want {
			t.Errorf("again: got %q, want %q", got, want)
		}
	})

	t.Run("a replayed creation creates no second intent", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		w.post(root, "k", creation("pm_card_visa"))
		if got, want := summary(w.post(root, "k", creation("pm_card_visa"))),
			"200 requires_confirmation replayed"; got != want {
			t.Errorf("again: got %q, want %q", got, want)
		}
		if got := len(w.Intents()); got != 1 {
			t.Errorf("intents: got %d, want 1", got)
		}
	})

	t.Run("a GET ignores keys", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		id := w.create("pm_card_visa")
		w.Do(w.now, request("GET", root+"/"+id, "k", ""))
		w.confirm(id, "")
		if got, want := summary(w.Do(w.now, request("GET", root+"/"+id, "k", ""))),
			"200 succeeded"; got != want {
			t.Errorf("read: got %q, want %q", got, want)
		}
	})
}

// The same page: "The idempotency layer compares incoming parameters to those of the
// original request and errors if they're not the same"; docs.stripe.com/api/errors: type
// idempotency_error covers endpoint and parameters.
func TestAKeyIsForOneRequestOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	id := w.create("pm_card_visa")
	w.confirm(id, "k")
	other := w.create("pm_card_visa")
	for what, res := range map[string]stripetest.Response{
		"other parameters": w.post(root+"/"+id+"/confirm", "k", "off_session=false&return_url=https://example.com"),
		"another intent":   w.confirm(other, "k"),
		"another endpoint": w.post(root, "k", creation("pm_card_visa")),
	} {
		if got, want := summary(res), "400 idempotency_error"; got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	if got, want := summary(w.confirm(id, "k")), "200 succeeded replayed"; got != want {
		t.Errorf("the first request again: got %q, want %q", got, want)
	}
}

// The same page: "If incoming parameters fail validation, or the request conflicts with
// another request that's executing concurrently, we don't save the idempotent result";
// docs.stripe.com/error-low-level: 429 and 401 likewise.
func TestKeysDoNotStoreRefusals(t *testing.T) {
	t.Parallel()
	for _, kind := range []stripetest.FaultKind{
		stripetest.LoseRequest, stripetest.Unauthorized, stripetest.Forbidden, stripetest.RateLimited,
		stripetest.LockTimeout, stripetest.KeyInUse, stripetest.Unavailable,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stripetest.Rules{})
			id := w.create("pm_card_visa")
			w.Fail(stripetest.Fault{Kind: kind})
			if refused := w.confirm(id, "k"); !refused.Lost && refused.Status < 400 {
				t.Errorf("with the fault: got %q, want it lost or refused", summary(refused))
			}
			if got := w.Charges("ORD1"); len(got) != 0 {
				t.Errorf("got charges %v, want 0", got)
			}
			if got, want := summary(w.confirm(id, "k")), "200 succeeded"; got != want {
				t.Errorf("the same key later: got %q, want %q", got, want)
			}
		})
	}

	t.Run("validation", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		if got, want := summary(w.post(root, "k", "amount=0&currency=usd")),
			"400 invalid_request_error parameter_invalid_integer"; got != want {
			t.Errorf("bad: got %q, want %q", got, want)
		}
		if got, want := summary(w.post(root, "k", creation("pm_card_visa"))),
			"200 requires_confirmation"; got != want {
			t.Errorf("corrected under the same key: got %q, want %q", got, want)
		}
	})
}

// The same page: keys can be removed "after they're at least 24 hours old. We generate a
// new request if a key is reused after the original is pruned".
func TestKeysExpire(t *testing.T) {
	t.Parallel()
	createTwice := func(w *world, wait time.Duration) int {
		w.post(root, "k", creation("pm_card_visa"))
		w.now = w.now.Add(wait)
		w.post(root, "k", creation("pm_card_visa"))
		return len(w.Intents())
	}
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
			if got := createTwice(newWorld(t, stripetest.Rules{KeyLife: c.life}), c.wait); got != c.want {
				t.Errorf("intents: got %d, want %d", got, c.want)
			}
		})
	}

	t.Run("PruneKeys removes expired keys, ForgetKeys all but those in use", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		w.post(root, "old", creation("pm_card_visa"))
		w.now = w.now.Add(12 * time.Hour)
		w.post(root, "young", creation("pm_card_visa"))
		w.PruneKeys(w.now.Add(12 * time.Hour))
		if got, want := summary(w.post(root, "young", creation("pm_card_visa"))),
			"200 requires_confirmation replayed"; got != want {
			t.Errorf("young: got %q, want %q", got, want)
		}
		if got, want := summary(w.post(root, "old", creation("pm_card_visa"))),
			"200 requires_confirmation"; got != want {
			t.Errorf("old: got %q, want %q", got, want)
		}

		w.Begin(w.now, request("POST", root, "running", creation("pm_card_visa")))
		w.ForgetKeys()
		if got, want := summary(w.post(root, "young", creation("pm_card_visa"))),
			"200 requires_confirmation"; got != want {
			t.Errorf("forgotten: got %q, want %q", got, want)
		}
		if got, want := summary(w.post(root, "running", creation("pm_card_visa"))),
			"409 invalid_request_error idempotency_key_in_use"; got != want {
			t.Errorf("running: got %q, want %q", got, want)
		}
	})

	t.Run("a key of more than 255 characters is refused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, stripetest.Rules{})
		if got, want := summary(w.post(root, strings.Repeat("k", 256), creation("pm_card_visa"))),
			"400 invalid_request_error"; got != want {
			t.Errorf("256: got %q, want %q", got, want)
		}
		if got, want := summary(w.post(root, strings.Repeat("k", 255), creation("pm_card_visa"))),
			"200 requires_confirmation"; got != want {
			t.Errorf("255: got %q, want %q", got, want)
		}
	})
}

// docs.stripe.com/error-codes: idempotency_key_in_use; docs.stripe.com/rate-limits:
// object lock timeouts.
func TestConcurrentRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Rules{})
	id := w.create("pm_card_visa")
	begin := func(key string) (stripetest.Ticket, *stripetest.Response) {
		return w.Begin(w.now, request("POST", root+"/"+id+"/confirm", key, "off_session=true"))
	}
	ticket, refusal := begin("k")
	if refusal != nil {
		t.Fatalf("the first: %s", refusal.Body())
	}
	for _, when := range []string{"before the effect", "between the effect and the response, two days later"} {
		_, twin := begin("k")
		if got, want := summary(*twin), "409 invalid_request_error idempotency_key_in_use"; got != want {
			t.Errorf("the same key %s: got %q, want %q", when, got, want)
		}
		_, rival := begin("other")
		if got, want := summary(*rival), "429 invalid_request_error lock_timeout"; got != want {
			t.Errorf("another key %s: got %q, want %q", when, got, want)
		}
		if rival.ShouldRetry != "true" {
			t.Errorf("Stripe-Should-Retry of a lock timeout: got %q, want true", rival.ShouldRetry)
		}
		w.Effect(w.now, ticket)
		w.Effect(w.now, ticket)
		w.now = w.now.Add(48 * time.Hour)
	}
	w.now = w.now.Add(-96 * time.Hour)
	if got, want := summary(w.get(root+"/"+id)), "200 succeeded"; got != want {
		t.Errorf("a read is not locked: got %q, want %q", got, want)
	}
	if got, want := summary(w.End(w.now, ticket)), "200 succeeded"; got != want {
		t.Errorf("the first: got %q, want %q", got, want)
	}
	if got, want := summary(w.confirm(id, "k")), "200 succeeded replayed"; got != want {
		t.Errorf("the same key, later: got %q, want %q", got, want)
	}
	if got, want := summary(w.confirm(id, "other")), unexpectedState+" succeeded"; got != want {
		t.Errorf("the other key, later: got %q, want %q", got, want)
	}
	if got := w.Charges("ORD1"); len(got) != 1 {
		t.Errorf("got charges %v, want 1", got)
	}
}
