package system_test

import (
	"cmp"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/local/system"
)

// point is where a function dies: before or after its n-th call to "DynamoDB", or of a
// name at Stripe, such as "confirm". A call that it dies before is lost.
type point struct {
	when, call string
	n          int
}

// trap is a system that kills a function once, at a point.
type trap struct {
	*running

	at      atomic.Pointer[point] // nil: at none
	calls   atomic.Int64          // of the name, since the trap was set
	crashed chan struct{}         // gets each delivery that ended with its function
}

func newTrap(t *testing.T, w world, o system.Options) *trap {
	t.Helper()
	k := &trap{crashed: make(chan struct{}, 1)}
	o.Instances = cmp.Or(o.Instances, 1)
	o.BeforeStripe, o.AfterStripe = k.stripe("before"), k.stripe("after")
	o.Observe = func(b sqstest.Batch) {
		if b.Err != nil {
			k.crashed <- struct{}{}
		}
	}
	k.running = w.start(t, o)
	k.Proxy.Before(k.dynamo("before"))
	k.Proxy.After(k.dynamo("after"))
	return k
}

func (k *trap) dynamo(when string) func(dynamodbtest.Call) {
	return func(c dynamodbtest.Call) {
		k.reach(when, "DynamoDB", func() {
			k.Proxy.Fail(dynamodbtest.Fault{Kind: dynamodbtest.LoseBefore, Number: c.Number, Times: 1})
		})
	}
}

func (k *trap) stripe(when string) func(stripetest.Call) {
	return func(c stripetest.Call) {
		k.reach(when, string(c.Endpoint), func() {
			k.Stripe.Fail(stripetest.Fault{Kind: stripetest.LoseRequest, Number: c.Number})
		})
	}
}

// reach kills the function if a call is the point.
func (k *trap) reach(when, call string, lose func()) {
	at := k.at.Load()
	if at == nil || at.when != when || at.call != call || k.calls.Add(1) != int64(max(at.n, 1)) ||
		!k.at.CompareAndSwap(at, nil) {
		return
	}
	if when == "before" {
		lose()
	}
	k.Kill(nil)
}

// killAt posts a message and waits until the function was killed.
func (k *trap) killAt(at point, body string) {
	k.t.Helper()
	k.calls.Store(0)
	k.at.Store(&at)
	k.post(body)
	ctx, cancel := context.WithTimeout(k.t.Context(), 5*time.Minute)
	defer cancel()
	select {
	case <-k.crashed:
	case <-ctx.Done():
		k.t.Fatalf("%v: nothing was killed\n%s", at, k.log.Text())
	}
}
