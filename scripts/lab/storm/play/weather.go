package play

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/local/system"
)

// spell is how long one sky lasts.
const spell = 600 * time.Millisecond

// late is how long a call is under way that arrives when its sender is dead and another worker has the order: longer than a
// function runs and a message is hidden.
const late = functionTimeout + visibility - time.Second

// sky is what one service does to its callers for a while: each fault hits a share of the calls.
type sky[F any] struct {
	name   string
	faults []likely[F]
}

type likely[F any] struct {
	share float64
	fault F
}

// dynamoSkies are the ways in which DynamoDB is not well.
func dynamoSkies() []sky[dynamodbtest.Fault] {
	of := func(share float64, kind dynamodbtest.Kind) likely[dynamodbtest.Fault] {
		return likely[dynamodbtest.Fault]{share, dynamodbtest.Fault{Kind: kind, Times: 1}}
	}
	slow := func(share float64, delay time.Duration) likely[dynamodbtest.Fault] {
		return likely[dynamodbtest.Fault]{share, dynamodbtest.Fault{Kind: dynamodbtest.Slow, Delay: delay, Times: 1}}
	}
	return []sky[dynamodbtest.Fault]{
		{"DynamoDB calm", nil},
		{"DynamoDB throttles", []likely[dynamodbtest.Fault]{
			of(0.15, dynamodbtest.ThroughputExceeded), of(0.1, dynamodbtest.Throttled), of(0.05, dynamodbtest.RequestLimitExceeded),
		}},
		{"DynamoDB errors", []likely[dynamodbtest.Fault]{
			of(0.1, dynamodbtest.InternalError), of(0.05, dynamodbtest.InternalErrorAfter),
			of(0.05, dynamodbtest.TransactionConflict), of(0.02, dynamodbtest.TransactionInProgress),
		}},
		{"DynamoDB lost answers", []likely[dynamodbtest.Fault]{of(0.1, dynamodbtest.LoseBefore), of(0.1, dynamodbtest.LoseAfter)}},
		{"DynamoDB latency", []likely[dynamodbtest.Fault]{slow(0.2, 40*time.Millisecond), slow(0.02, time.Second)}},
		{"DynamoDB late arrivals", []likely[dynamodbtest.Fault]{slow(0.02, late)}},
		{"DynamoDB brown-out", []likely[dynamodbtest.Fault]{of(0.3, dynamodbtest.InternalError), slow(0.4, 200*time.Millisecond)}},
		{"DynamoDB outage", []likely[dynamodbtest.Fault]{of(0.7, dynamodbtest.InternalError), of(0.3, dynamodbtest.LoseBefore)}},
	}
}

// stripeSkies are the ways in which Stripe is not well.
func stripeSkies() []sky[stripetest.Fault] {
	of := func(share float64, kind stripetest.FaultKind) likely[stripetest.Fault] {
		return likely[stripetest.Fault]{share, stripetest.Fault{Kind: kind}}
	}
	slow := func(share float64, kind stripetest.FaultKind, delay time.Duration) likely[stripetest.Fault] {
		return likely[stripetest.Fault]{share, stripetest.Fault{Kind: kind, Delay: delay}}
	}
	return []sky[stripetest.Fault]{
		{"Stripe calm", nil},
		{"Stripe throttles", []likely[stripetest.Fault]{of(0.25, stripetest.RateLimited), of(0.05, stripetest.LockTimeout)}},
		{"Stripe errors", []likely[stripetest.Fault]{
			of(0.05, stripetest.ServerErrorBeforeEffect), of(0.05, stripetest.ServerErrorAfterEffect), of(0.1, stripetest.Unavailable),
			of(0.02, stripetest.KeyInUse), of(0.01, stripetest.Unauthorized),
		}},
		{"Stripe lost answers", []likely[stripetest.Fault]{
			of(0.08, stripetest.LoseRequest), of(0.08, stripetest.LoseResponse), of(0.04, stripetest.Garbage),
		}},
		{"Stripe latency", []likely[stripetest.Fault]{
			slow(0.15, stripetest.Latency, 100*time.Millisecond), slow(0.05, stripetest.SlowSuccess, 300*time.Millisecond),
			slow(0.02, stripetest.SlowSuccess, 1200*time.Millisecond),
		}},
		{"Stripe late arrivals", []likely[stripetest.Fault]{slow(0.02, stripetest.Latency, late)}},
		{"Stripe brown-out", []likely[stripetest.Fault]{
			of(0.3, stripetest.Unavailable), slow(0.4, stripetest.Latency, 200*time.Millisecond), slow(0.05, stripetest.SlowSuccess, time.Second),
		}},
		{"Stripe outage", []likely[stripetest.Fault]{of(0.7, stripetest.Unavailable), of(0.3, stripetest.LoseRequest)}},
	}
}

// weather spoils calls while it is on.
type weather struct {
	mu     sync.Mutex
	dice   *rand.Rand
	dynamo sky[dynamodbtest.Fault]
	stripe sky[stripetest.Fault]
	faults map[string]int // calls spoiled, by sky
}

func newWeather(seed uint64) *weather {
	return &weather{dice: rand.New(rand.NewPCG(seed, 1<<32)), faults: map[string]int{}} //nolint:gosec // a storm is no secret
}

// blow changes the skies until the context ends, and then clears them.
func (w *weather) blow(ctx context.Context, s *system.System) {
	change := time.NewTicker(spell)
	defer change.Stop()
	var dynamo []sky[dynamodbtest.Fault]
	var stripe []sky[stripetest.Fault]
	for {
		w.set(next(w, &dynamo, dynamoSkies), next(w, &stripe, stripeSkies))
		w.hail(s)
		select {
		case <-change.C:
		case <-ctx.Done():
			w.set(sky[dynamodbtest.Fault]{}, sky[stripetest.Fault]{})
			s.Proxy.Heal()
			s.Stripe.Machine(func(m *stripetest.Machine) { m.Heal() })
			s.SQS.Heal()
			return
		}
	}
}

// next deals skies like cards, so that each comes once before any comes again.
func next[F any](w *weather, deck *[]sky[F], fresh func() []sky[F]) sky[F] {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(*deck) == 0 {
		*deck = fresh()
		w.dice.Shuffle(len(*deck), func(i, j int) { (*deck)[i], (*deck)[j] = (*deck)[j], (*deck)[i] })
	}
	top := (*deck)[0]
	*deck = (*deck)[1:]
	return top
}

func (w *weather) set(dynamo sky[dynamodbtest.Fault], stripe sky[stripetest.Fault]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dynamo, w.stripe = dynamo, stripe
}

// hail spoils a few calls to the queue.
func (w *weather) hail(s *system.System) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dice.IntN(3) == 0 {
		s.SQS.Fail("ChangeMessageVisibilityBatch", 1+w.dice.IntN(5), sqstest.CodeInternalError)
		s.SQS.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable)
		s.SQS.FailAfter("SendMessage", 1, sqstest.CodeInternalError)
		s.SQS.Lose("SendMessage", 1)
	}
}

// onDynamoDB is asked before each call to DynamoDB.
func (w *weather) onDynamoDB(s *system.System) func(dynamodbtest.Call) {
	return func(c dynamodbtest.Call) {
		draw(w, &w.dynamo, func(fault dynamodbtest.Fault) bool {
			if !fault.Kind.Possible(c.Operation) {
				return false
			}
			fault.Number = c.Number
			s.Proxy.Fail(fault)
			return true
		})
	}
}

// onStripe is asked before each call to Stripe.
func (w *weather) onStripe(s func() *system.System) func(stripetest.Call) {
	return func(c stripetest.Call) {
		draw(w, &w.stripe, func(fault stripetest.Fault) bool {
			fault.Number = c.Number
			s().Stripe.Fail(fault)
			return true
		})
	}
}

// draw decides whether a call is spoiled, and how. spoil reports whether it could.
func draw[F any](w *weather, over *sky[F], spoil func(F) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	roll := w.dice.Float64()
	for _, f := range over.faults {
		if roll -= f.share; roll < 0 {
			if spoil(f.fault) {
				w.faults[over.name]++
			}
			return
		}
	}
}

// twice decides whether a message is delivered twice; loses, whether its delete is lost.
func (w *weather) twice(share float64) sqstest.Twice {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch roll := w.dice.Float64() * 3; {
	case roll < share:
		return sqstest.InSameBatch
	case roll < 2*share:
		return sqstest.AtOnceBeside
	}
	return sqstest.Once
}

func (w *weather) loses() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.dynamo.faults)+len(w.stripe.faults) > 0 && w.dice.Float64() < 0.01
}

// report is a copy of the counters.
func (w *weather) report() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.faults)
}
