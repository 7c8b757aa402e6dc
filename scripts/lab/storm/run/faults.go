package run

import (
	"context"
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

// Profile is a set of faults of one service.
type Profile struct {
	Name   Figure
	faults []fault
}

// fault hits a share of the calls.
type fault struct {
	share float64
	kind  string // of dynamodbtest or of stripetest
	delay time.Duration
}

// The services with profiles.
const (
	dynamoDB = iota
	atStripe
)

// Profiles returns the fault profiles of DynamoDB and of Stripe. The first of each has no
// faults.
func Profiles() [2][]Profile { return [2][]Profile{dynamoDBProfiles(), stripeProfiles()} }

func dynamoDBProfiles() []Profile {
	of := func(share float64, kind dynamodbtest.Kind) fault { return fault{share, string(kind), 0} }
	slow := func(share float64, delay time.Duration) fault { return fault{share, string(dynamodbtest.Slow), delay} }
	return []Profile{
		{"DynamoDB healthy", nil},
		{"DynamoDB throttling", []fault{
			of(0.15, dynamodbtest.ThroughputExceeded), of(0.1, dynamodbtest.Throttled),
			of(0.05, dynamodbtest.RequestLimitExceeded),
		}},
		{"DynamoDB errors", []fault{
			of(0.1, dynamodbtest.InternalError), of(0.05, dynamodbtest.InternalErrorAfter),
			of(0.05, dynamodbtest.TransactionConflict), of(0.02, dynamodbtest.TransactionInProgress),
		}},
		{"DynamoDB lost responses", []fault{of(0.1, dynamodbtest.LoseBefore), of(0.1, dynamodbtest.LoseAfter)}},
		{"DynamoDB latency", []fault{slow(0.2, 40*time.Millisecond), slow(0.02, time.Second)}},
		{"DynamoDB late arrivals", []fault{slow(0.02, longDelay)}},
		{"DynamoDB brownout", []fault{of(0.3, dynamodbtest.InternalError), slow(0.4, 200*time.Millisecond)}},
		{"DynamoDB outage", []fault{of(0.7, dynamodbtest.InternalError), of(0.3, dynamodbtest.LoseBefore)}},
	}
}

func stripeProfiles() []Profile {
	of := func(share float64, kind stripetest.FaultKind) fault { return fault{share, string(kind), 0} }
	slow := func(share float64, delay time.Duration) fault { return fault{share, string(stripetest.Latency), delay} }
	late := func(share float64, delay time.Duration) fault {
		return fault{share, string(stripetest.SlowSuccess), delay}
	}
	return []Profile{
		{"Stripe healthy", nil},
		{"Stripe throttling", []fault{of(0.25, stripetest.RateLimited), of(0.05, stripetest.LockTimeout)}},
		{"Stripe errors", []fault{
			of(0.05, stripetest.ServerErrorBeforeEffect), of(0.05, stripetest.ServerErrorAfterEffect),
			of(0.1, stripetest.Unavailable), of(0.02, stripetest.KeyInUse), of(0.01, stripetest.Unauthorized),
		}},
		{"Stripe lost responses", []fault{
			of(0.08, stripetest.LoseRequest), of(0.08, stripetest.LoseResponse), of(0.04, stripetest.Garbage),
		}},
		{"Stripe latency", []fault{
			slow(0.15, 100*time.Millisecond), late(0.05, 300*time.Millisecond), late(0.02, 1200*time.Millisecond),
		}},
		{"Stripe late arrivals", []fault{slow(0.02, longDelay)}},
		{"Stripe brownout", []fault{
			of(0.3, stripetest.Unavailable), slow(0.4, 200*time.Millisecond), late(0.05, time.Second),
		}},
		{"Stripe outage", []fault{of(0.7, stripetest.Unavailable), of(0.3, stripetest.LoseRequest)}},
	}
}

// injector injects faults into calls while it runs.
type injector struct {
	tally *tally

	mu     sync.Mutex
	random *rand.Rand
	now    [2]Profile   // by service
	next   [2][]Profile // of this round: each comes once before any comes again
}

func newInjector(seed uint64, t *tally) *injector {
	return &injector{tally: t, random: rand.New(rand.NewPCG(seed, 1<<32))} //nolint:gosec // G404: not a secret
}

// rotate changes the profiles until the context ends, and then removes all faults.
func (f *injector) rotate(ctx context.Context, s *system.System) {
	every(ctx, profileDuration, func() { f.change(s) })
	f.mu.Lock()
	f.now = [2]Profile{}
	f.mu.Unlock()
	s.Proxy.Heal()
	s.Stripe.Machine((*stripetest.Machine).Heal)
	s.SQS.Heal()
}

// change lets other things go wrong, and makes a few calls to SQS fail.
func (f *injector) change(s *system.System) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for service, all := range Profiles() {
		if len(f.next[service]) == 0 {
			f.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			f.next[service] = all
		}
		f.now[service], f.next[service] = f.next[service][0], f.next[service][1:]
	}
	if f.random.IntN(3) == 0 {
		s.SQS.Fail("ChangeMessageVisibilityBatch", 1+f.random.IntN(5), sqstest.CodeInternalError)
		s.SQS.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable)
		s.SQS.FailAfter("SendMessage", 1, sqstest.CodeInternalError)
		s.SQS.Lose("SendMessage", 1)
	}
}

func (f *injector) beforeDynamoDB(s *system.System, c dynamodbtest.Call) {
	if hit, name := f.draw(dynamoDB); hit != nil && dynamodbtest.Kind(hit.kind).Possible(c.Operation) {
		s.Proxy.Fail(dynamodbtest.Fault{
			Kind: dynamodbtest.Kind(hit.kind), Delay: hit.delay, Times: 1, Number: c.Number,
		})
		f.count(name)
	}
}

func (f *injector) beforeStripe(s *system.System, c stripetest.Call) {
	if hit, name := f.draw(atStripe); hit != nil {
		s.Stripe.Fail(stripetest.Fault{Kind: stripetest.FaultKind(hit.kind), Delay: hit.delay, Number: c.Number})
		f.count(name)
	}
}

// draw decides at random whether a call fails, and how. It also returns the profile's
// name.
func (f *injector) draw(service int) (*fault, Figure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	roll, p := f.random.Float64(), f.now[service]
	for i := range p.faults {
		if roll -= p.faults[i].share; roll < 0 {
			return &p.faults[i], p.Name
		}
	}
	return nil, ""
}

func (f *injector) count(profile Figure) {
	f.tally.add(profile, 1)
	f.tally.add(Failed, 1)
}

// duplicate decides whether a message is delivered twice. The producer sends others
// twice.
func (f *injector) duplicate(sqstest.Message) sqstest.Twice {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch roll := f.random.Float64() * 3; {
	case roll < duplicates:
		return sqstest.InSameBatch
	case roll < 2*duplicates:
		return sqstest.AtOnceBeside
	}
	return sqstest.Once
}

// happens decides whether a fault of a share hits, while there are faults.
func (f *injector) happens(share float64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.now[dynamoDB].faults)+len(f.now[atStripe].faults) > 0 && f.random.Float64() < share
}
