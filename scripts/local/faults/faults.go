// Package faults lets DynamoDB, Stripe and SQS fail as services do, for a while in one
// way and then in another. The storm of the lab and that of the live page use it. It does
// not know who calls.
package faults

import (
	"math/rand/v2"
	"sync"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/local/system"
)

// Profile is a set of faults of one service.
type Profile struct {
	Name   string // such as "Stripe outage"
	faults []fault
}

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
// faults. late delays a call until its sender has timed out and another worker may have
// claimed the order.
func Profiles(late time.Duration) [2][]Profile {
	return [2][]Profile{dynamoDBProfiles(late), stripeProfiles(late)}
}

func dynamoDBProfiles(late time.Duration) []Profile {
	of := func(share float64, kind dynamodbtest.Kind) fault { return fault{share, string(kind), 0} }
	slow := func(share float64, delay time.Duration) fault {
		return fault{share, string(dynamodbtest.Slow), delay}
	}
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
		{"DynamoDB late arrivals", []fault{slow(0.02, late)}},
		{"DynamoDB brownout", []fault{of(0.3, dynamodbtest.InternalError), slow(0.4, 200*time.Millisecond)}},
		{"DynamoDB outage", []fault{of(0.7, dynamodbtest.InternalError), of(0.3, dynamodbtest.LoseBefore)}},
	}
}

func stripeProfiles(late time.Duration) []Profile {
	of := func(share float64, kind stripetest.FaultKind) fault { return fault{share, string(kind), 0} }
	slow := func(share float64, delay time.Duration) fault {
		return fault{share, string(stripetest.Latency), delay}
	}
	after := func(share float64, delay time.Duration) fault {
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
			slow(0.15, 100*time.Millisecond), after(0.05, 300*time.Millisecond), after(0.02, 1200*time.Millisecond),
		}},
		{"Stripe late arrivals", []fault{slow(0.02, late)}},
		{"Stripe brownout", []fault{
			of(0.3, stripetest.Unavailable), slow(0.4, 200*time.Millisecond), after(0.05, time.Second),
		}},
		{"Stripe outage", []fault{of(0.7, stripetest.Unavailable), of(0.3, stripetest.LoseRequest)}},
	}
}

// Injector injects faults into calls. It is safe for concurrent use.
type Injector struct {
	late time.Duration
	hit  func(profile string) // is called for each fault

	mu             sync.Mutex
	sequence, hits *rand.Rand   // of profiles, and of what else is random
	now            [2]Profile   // by service
	next           [2][]Profile // of this round: each comes once before any comes again
}

// New returns an injector without faults, see Profiles. The same seed gives the same
// sequence of profiles.
func New(seed uint64, late time.Duration, hit func(profile string)) *Injector {
	dice := func(stream uint64) *rand.Rand {
		return rand.New(rand.NewPCG(seed, stream<<32)) //nolint:gosec // G404: not a secret
	}
	return &Injector{late: late, hit: hit, sequence: dice(1), hits: dice(2)}
}

// Change lets other things go wrong, and returns the names of the profiles. It makes a
// few calls to SQS fail.
func (f *Injector) Change(s *system.System) (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for service, all := range Profiles(f.late) {
		if len(f.next[service]) == 0 {
			f.sequence.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			f.next[service] = all
		}
		f.now[service], f.next[service] = f.next[service][0], f.next[service][1:]
		if len(f.now[service].faults) > 0 {
			names = append(names, f.now[service].Name)
		}
	}
	if f.hits.IntN(3) == 0 {
		s.SQS.Fail("ChangeMessageVisibilityBatch", 1+f.hits.IntN(5), sqstest.CodeInternalError)
		s.SQS.Fail("SendMessage", 1, sqstest.CodeServiceUnavailable)
		s.SQS.FailAfter("SendMessage", 1, sqstest.CodeInternalError)
		s.SQS.Lose("SendMessage", 1)
	}
	return names
}

// End removes all faults.
func (f *Injector) End(s *system.System) {
	f.mu.Lock()
	f.now = [2]Profile{}
	f.mu.Unlock()
	s.Proxy.Heal()
	s.Stripe.Machine((*stripetest.Machine).Heal)
	s.SQS.Heal()
}

// BeforeDynamoDB is called before each call to DynamoDB.
func (f *Injector) BeforeDynamoDB(s *system.System, c dynamodbtest.Call) {
	if hit, name := f.draw(dynamoDB); hit != nil && dynamodbtest.Kind(hit.kind).Possible(c.Operation) {
		s.Proxy.Fail(dynamodbtest.Fault{
			Kind: dynamodbtest.Kind(hit.kind), Delay: hit.delay, Times: 1, Number: c.Number,
		})
		f.hit(name)
	}
}

// BeforeStripe is BeforeDynamoDB for Stripe.
func (f *Injector) BeforeStripe(s *system.System, c stripetest.Call) {
	if hit, name := f.draw(atStripe); hit != nil {
		s.Stripe.Fail(stripetest.Fault{Kind: stripetest.FaultKind(hit.kind), Delay: hit.delay, Number: c.Number})
		f.hit(name)
	}
}

// draw decides at random whether a call fails, and how. It also returns the profile's
// name.
func (f *Injector) draw(service int) (*fault, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	roll, p := f.hits.Float64(), f.now[service]
	for i := range p.faults {
		if roll -= p.faults[i].share; roll < 0 {
			return &p.faults[i], p.Name
		}
	}
	return nil, ""
}

// Duplicate decides whether a message is delivered twice: a third of the share in one
// batch, a third to two instances at once.
func (f *Injector) Duplicate(share float64) sqstest.Twice {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch roll := f.hits.Float64() * 3; {
	case roll < share:
		return sqstest.InSameBatch
	case roll < 2*share:
		return sqstest.AtOnceBeside
	}
	return sqstest.Once
}

// Happens decides whether a fault of a share hits, while there are faults.
func (f *Injector) Happens(share float64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.now[dynamoDB].faults)+len(f.now[atStripe].faults) > 0 && f.hits.Float64() < share
}
