package run

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

// profileDuration is how long a fault profile lasts.
const profileDuration = 600 * time.Millisecond

// longDelay delays a call until its sender has timed out and another worker may have
// claimed the order: function timeout plus visibility timeout.
const longDelay = functionTimeout + visibility - time.Second

// profile is a set of faults of one service. Each hits a share of the calls.
type profile[F any] struct {
	name   string
	faults []weightedFault[F]
}

type weightedFault[F any] struct {
	share float64
	fault F
}

// dynamoDBProfiles returns the fault profiles of DynamoDB.
func dynamoDBProfiles() []profile[dynamodbtest.Fault] {
	type faults = []weightedFault[dynamodbtest.Fault]
	of := func(share float64, kind dynamodbtest.Kind) weightedFault[dynamodbtest.Fault] {
		return weightedFault[dynamodbtest.Fault]{share, dynamodbtest.Fault{Kind: kind, Times: 1}}
	}
	slow := func(share float64, delay time.Duration) weightedFault[dynamodbtest.Fault] {
		return weightedFault[dynamodbtest.Fault]{
			share, dynamodbtest.Fault{Kind: dynamodbtest.Slow, Delay: delay, Times: 1},
		}
	}
	return []profile[dynamodbtest.Fault]{
		{"DynamoDB healthy", nil},
		{"DynamoDB throttling", faults{
			of(0.15, dynamodbtest.ThroughputExceeded), of(0.1, dynamodbtest.Throttled),
			of(0.05, dynamodbtest.RequestLimitExceeded),
		}},
		{"DynamoDB errors", faults{
			of(0.1, dynamodbtest.InternalError), of(0.05, dynamodbtest.InternalErrorAfter),
			of(0.05, dynamodbtest.TransactionConflict), of(0.02, dynamodbtest.TransactionInProgress),
		}},
		{"DynamoDB lost responses", faults{of(0.1, dynamodbtest.LoseBefore), of(0.1, dynamodbtest.LoseAfter)}},
		{"DynamoDB latency", faults{slow(0.2, 40*time.Millisecond), slow(0.02, time.Second)}},
		{"DynamoDB late arrivals", faults{slow(0.02, longDelay)}},
		{"DynamoDB brownout", faults{of(0.3, dynamodbtest.InternalError), slow(0.4, 200*time.Millisecond)}},
		{"DynamoDB outage", faults{of(0.7, dynamodbtest.InternalError), of(0.3, dynamodbtest.LoseBefore)}},
	}
}

// stripeProfiles returns the fault profiles of Stripe.
func stripeProfiles() []profile[stripetest.Fault] {
	type faults = []weightedFault[stripetest.Fault]
	of := func(share float64, kind stripetest.FaultKind) weightedFault[stripetest.Fault] {
		return weightedFault[stripetest.Fault]{share, stripetest.Fault{Kind: kind}}
	}
	slow := func(share float64, kind stripetest.FaultKind, delay time.Duration) weightedFault[stripetest.Fault] {
		return weightedFault[stripetest.Fault]{share, stripetest.Fault{Kind: kind, Delay: delay}}
	}
	return []profile[stripetest.Fault]{
		{"Stripe healthy", nil},
		{"Stripe throttling", faults{of(0.25, stripetest.RateLimited), of(0.05, stripetest.LockTimeout)}},
		{"Stripe errors", faults{
			of(0.05, stripetest.ServerErrorBeforeEffect), of(0.05, stripetest.ServerErrorAfterEffect),
			of(0.1, stripetest.Unavailable), of(0.02, stripetest.KeyInUse), of(0.01, stripetest.Unauthorized),
		}},
		{"Stripe lost responses", faults{
			of(0.08, stripetest.LoseRequest), of(0.08, stripetest.LoseResponse),
			of(0.04, stripetest.Garbage),
		}},
		{"Stripe latency", faults{
			slow(0.15, stripetest.Latency, 100*time.Millisecond),
			slow(0.05, stripetest.SlowSuccess, 300*time.Millisecond),
			slow(0.02, stripetest.SlowSuccess, 1200*time.Millisecond),
		}},
		{"Stripe late arrivals", faults{slow(0.02, stripetest.Latency, longDelay)}},
		{"Stripe brownout", faults{
			of(0.3, stripetest.Unavailable), slow(0.4, stripetest.Latency, 200*time.Millisecond),
			slow(0.05, stripetest.SlowSuccess, time.Second),
		}},
		{"Stripe outage", faults{of(0.7, stripetest.Unavailable), of(0.3, stripetest.LoseRequest)}},
	}
}

// injector injects faults into calls while it runs.
type injector struct {
	mu     sync.Mutex
	random *rand.Rand
	dynamo profile[dynamodbtest.Fault]
	stripe profile[stripetest.Fault]
	faults map[string]int // failed calls, by profile
}

func newInjector(seed uint64) *injector {
	return &injector{
		random: rand.New(rand.NewPCG(seed, 1<<32)), //nolint:gosec // G404: not a secret
		faults: map[string]int{},
	}
}

// rotate changes the profiles until the context ends, and then removes all faults.
func (f *injector) rotate(ctx context.Context, s *system.System) {
	change := time.NewTicker(profileDuration)
	defer change.Stop()
	var dynamo []profile[dynamodbtest.Fault]
	var stripe []profile[stripetest.Fault]
	for {
		f.set(next(f, &dynamo, dynamoDBProfiles), next(f, &stripe, stripeProfiles))
		f.failSQS(s)
		select {
		case <-change.C:
		case <-ctx.Done():
			f.set(profile[dynamodbtest.Fault]{}, profile[stripetest.Fault]{})
			s.Proxy.Heal()
			s.Stripe.Machine(func(m *stripetest.Machine) { m.Heal() })
			s.SQS.Heal()
			return
		}
	}
}

// next returns the profiles in a random order, each once before any comes again. queue
// holds the remaining ones.
func next[F any](f *injector, queue *[]profile[F], all func() []profile[F]) profile[F] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(*queue) == 0 {
		*queue = all()
		f.random.Shuffle(len(*queue), func(i, j int) { (*queue)[i], (*queue)[j] = (*queue)[j], (*queue)[i] })
	}
	first := (*queue)[0]
	*queue = (*queue)[1:]
	return first
}

func (f *injector) set(dynamo profile[dynamodbtest.Fault], stripe profile[stripetest.Fault]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dynamo, f.stripe = dynamo, stripe
}

// failSQS makes a few calls to SQS fail.
func (f *injector) failSQS(s *system.System) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.random.IntN(3) == 0 {
		s.SQS.Fail("ChangeMessageVisibilityBatch", 1+f.random.IntN(5), sqstest.CodeInternalError)
		s.SQS.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable)
		s.SQS.FailAfter("SendMessage", 1, sqstest.CodeInternalError)
		s.SQS.Lose("SendMessage", 1)
	}
}

// beforeDynamoDB returns what is called before each call to DynamoDB.
func (f *injector) beforeDynamoDB(s *system.System) func(dynamodbtest.Call) {
	return func(c dynamodbtest.Call) {
		inject(f, &f.dynamo, func(fault dynamodbtest.Fault) bool {
			if !fault.Kind.Possible(c.Operation) {
				return false
			}
			fault.Number = c.Number
			s.Proxy.Fail(fault)
			return true
		})
	}
}

// beforeStripe returns what is called before each call to Stripe.
func (f *injector) beforeStripe(s func() *system.System) func(stripetest.Call) {
	return func(c stripetest.Call) {
		inject(f, &f.stripe, func(fault stripetest.Fault) bool {
			fault.Number = c.Number
			s().Stripe.Fail(fault)
			return true
		})
	}
}

// inject decides at random whether a call fails, and how. fail reports whether the fault
// applies to the call.
func inject[F any](f *injector, p *profile[F], fail func(F) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	roll := f.random.Float64()
	for _, w := range p.faults {
		if roll -= w.share; roll < 0 {
			if fail(w.fault) {
				f.faults[p.name]++
			}
			return
		}
	}
}

// duplicate decides whether a message is delivered twice.
func (f *injector) duplicate(share float64) sqstest.Twice {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch roll := f.random.Float64() * 3; {
	case roll < share:
		return sqstest.InSameBatch
	case roll < 2*share:
		return sqstest.AtOnceBeside
	}
	return sqstest.Once
}

// happens decides whether a fault of a share hits, while there are faults.
func (f *injector) happens(share float64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.dynamo.faults)+len(f.stripe.faults) > 0 && f.random.Float64() < share
}

// losesDelete decides whether a DeleteMessage is lost.
func (f *injector) losesDelete() bool { return f.happens(0.01) }

// counts returns a copy of the counters.
func (f *injector) counts() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.faults)
}
