package sqs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

const (
	minJitter = 0.0                  // the shortest delay
	maxJitter = 0.999999999999999889 // the largest float64 below 1
)

func TestDecide(t *testing.T) {
	done, park := order.Result{Verdict: order.Done}, order.Result{Verdict: order.Park}
	late := order.Result{Verdict: order.Redeliver, Reason: sqs.ReasonNotStarted, Transient: true}
	panicked := order.Result{Verdict: order.Redeliver, Reason: sqs.ReasonPanic}
	for _, tt := range []struct {
		name   string
		result order.Result
		count  int
		age    time.Duration
		jitter float64
		want   string // the action
	}{
		{"a settled order is acknowledged", done, 1, 0, minJitter, "done"},
		{"an order to park is parked at its first delivery", park, 1, 0, minJitter, "park"},
		{"without a verdict the message is redelivered", order.Result{}, 1, 0, maxJitter, "redeliver 5s"},
		{"a message with an unknown verdict is redelivered", order.Result{Verdict: "ignore"}, 1, 0, maxJitter, "redeliver 5s"},

		{"the first delay is 5 s", outage(), 1, 0, maxJitter, "redeliver 5s"},
		{"the first delay is at least half of that, in seconds", outage(), 1, 0, minJitter, "redeliver 3s"},
		{"the second delay is twice the first", outage(), 2, 0, maxJitter, "redeliver 10s"},
		{"jitter in the middle is three quarters", outage(), 3, 0, 0.5, "redeliver 15s"},
		{"the ninth delay is 15 min", outage(), 9, 0, maxJitter, "redeliver 15m0s"},
		{"jitter shortens the eighth delay by at most 5 min", outage(), 8, 0, minJitter, "redeliver 5m40s"},
		{"jitter shortens the ninth delay by at most 5 min", outage(), 9, 0, minJitter, "redeliver 10m0s"},
		{"the 990th delay is 15 min", outage(), 990, 0, maxJitter, "redeliver 15m0s"},
		{"a missing count counts as the first", outage(), 0, 0, maxJitter, "redeliver 5s"},

		{"a lease delays by its rest and a second", inProgress(30 * time.Second), 1, 0, maxJitter, "redeliver 31s"},
		{"a lease delays by whole seconds", inProgress(30*time.Second + 1), 1, 0, minJitter, "redeliver 32s"},
		{"a lease that has just ended does not delay", inProgress(0), 1, 0, minJitter, "redeliver 3s"},
		{"a short lease does not shorten the delay", inProgress(time.Second), 500, 0, minJitter, "redeliver 10m0s"},
		{"the longest delay leaves an hour of 12", inProgress(100 * time.Hour), 1, 0, minJitter, "redeliver 11h0m0s"},

		{"a third delivery that was not started is redelivered at once", late, 3, 0, maxJitter, "redeliver"},
		{"a fourth delivery that was not started has the usual delay", late, 4, 0, maxJitter, "redeliver 40s"},

		{"the nineteenth failure is redelivered", unconfirmed(19), 19, 0, maxJitter, "redeliver 15m0s"},
		{"the twentieth failure is parked", unconfirmed(20), 20, 0, maxJitter, "park"},
		{"a first attempt is not parked for 500 receives", unconfirmed(1), 500, 0, maxJitter, "redeliver 15m0s"},
		{"a first delivery is not parked for 500 attempts", unconfirmed(500), 1, 0, maxJitter, "redeliver 5s"},
		{"the twentieth failure without a claim is parked", panicked, 20, 0, maxJitter, "park"},
		{"an outage does not park after 990 receives", outage(), 990, 0, maxJitter, "redeliver 15m0s"},
		{"an outage does not park before the last day", outage(), 990, 6*day - 1, maxJitter, "redeliver 15m0s"},
		{"the 991st receive is parked, before SQS does without a reason", outage(), 991, 0, maxJitter, "park"},
		{"the last day parks", outage(), 2, 6 * day, maxJitter, "park"},
		{"a message from the future is not old", outage(), 1, -time.Hour, maxJitter, "redeliver 5s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := sqs.Delivery{Count: tt.count, SentAt: start().Add(-tt.age)}
			got := sqs.Decide(tt.result, d, start(), tt.jitter, sqs.DefaultPolicy())
			if got := strings.TrimSuffix(fmt.Sprint(got.Verdict, " ", got.Delay), " 0s"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A transient failure may last for days. No jitter, lease or lack of workers may park or
// dead-letter its message before its last day.
func TestALastingFailureIsRedeliveredUntilTheLastDay(t *testing.T) {
	wait := func(t rapid.TB, next func() (r order.Result, jitter float64)) {
		t.Helper()
		p := sqs.DefaultPolicy()
		for now, count := start(), 1; ; count++ {
			r, jitter := next()
			if !r.NotBefore.IsZero() {
				r.NotBefore = now.Add(r.NotBefore.Sub(start()))
			}
			a := sqs.Decide(r, sqs.Delivery{Count: count, SentAt: start()}, now, jitter, p)
			if a.Verdict == order.Park {
				if age := now.Sub(start()); age < p.Retention-day ||
					count >= 900 { // docs/guides/operate.md gives this number
					t.Fatalf("parked at an age of %v, after %d of %d receives", age, count, p.MaxReceives)
				}
				return
			}
			now = now.Add(a.Delay)
		}
	}
	late := order.Result{Verdict: order.Redeliver, Reason: sqs.ReasonNotStarted, Transient: true}
	for name, r := range map[string]order.Result{
		"an outage": outage(), "no worker": late,
		"a lease": inProgress(0),
	} {
		t.Run(name+" without any jitter", func(t *testing.T) {
			wait(t, func() (order.Result, float64) { return r, minJitter })
		})
	}
	t.Run("in turns", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			lease := time.Duration(rapid.Int64Range(0, int64(order.MaxLease)).Draw(t, "lease"))
			some := []order.Result{outage(), late, inProgress(lease)}
			all := rapid.SliceOfN(rapid.SampledFrom(some), 1, 20).Draw(t, "results")
			jitter := rapid.Float64Range(0, maxJitter).Draw(t, "jitter")
			i := 0
			wait(t, func() (order.Result, float64) {
				i++
				return all[i%len(all)], jitter
			})
		})
	})
}
