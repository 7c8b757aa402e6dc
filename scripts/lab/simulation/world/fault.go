package world

import (
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/lab/simulation/oracle"
)

// Fault is what goes wrong with one call. A worker that dies before a call is the same as
// one that dies after its previous call.
type Fault string

// The faults.
const (
	None         Fault = ""
	Dies         Fault = "done, and the worker dies"
	LosesAnswer  Fault = "done, but the answer is lost"
	NeverArrives Fault = "lost on the way there"
	ArrivesLate  Fault = "no answer: it is still on the way"
	TimesOut     Fault = "no answer: Stripe is still at it"
	FailsAfter   Fault = "done, but a 500, kept under the key"
	FailsBefore  Fault = "a 500 without effect, kept under the key"
	RateLimited  Fault = "429"
	Unauthorized Fault = "401"
	Refuses      Fault = "400: Stripe refuses, and nothing happens"
	Freezes      Fault = "not yet: the worker freezes"
	Suspends     Fault = "not yet: the worker and its clock stand still"
)

// The rare faults. For the protocol each is the same as one of the others, but not for an
// adapter.
const (
	Throttled   Fault = "throttled, and given up"
	Conflicts   Fault = "another transaction was faster, and given up"
	Slow        Fault = "done, after most of the lease"
	Overruns    Fault = "done, and the worker is killed at its deadline"
	InUse       Fault = "409: the key is in use"
	Locked      Fault = "429: the intent is locked"
	Unavailable Fault = "503"
	Forbidden   Fault = "403"
	Garbled     Fault = "done, but half of the answer is missing"
	Declines    Fault = "done, and the bank declines it this time"
	Mistakes    Fault = "done, but the answer is about something else"
	Panics      Fault = "the code panics"
)

// RefusesEntry is a fault of the event bus alone: it refuses one of several events.
const (
	RefusesEntry Fault = "done, but one event is refused"
)

func (f Fault) freezes() bool { return f == Freezes || f == Suspends }

func (f Fault) kills() bool { return f == Dies || f == Overruns }

func faultsOf(c ordertest.Call) []Fault {
	switch c {
	case ordertest.Prepare, ordertest.Confirm, ordertest.Cancel, oracle.Charge:
		return []Fault{
			Dies, LosesAnswer, NeverArrives, FailsAfter, FailsBefore, RateLimited, Freezes, Suspends,
			ArrivesLate, TimesOut, Unauthorized, Refuses,
		}
	case ordertest.Read, ordertest.Find:
		return []Fault{Dies, NeverArrives, RateLimited, Freezes, Suspends, Unauthorized}
	case ordertest.Begin, ordertest.Bind, ordertest.Finish, ordertest.Release, oracle.Settle, ordertest.Postpone,
		oracle.Table:
		return []Fault{Dies, LosesAnswer, NeverArrives, Freezes, Suspends, ArrivesLate}
	case oracle.Put:
		return []Fault{Dies, LosesAnswer, NeverArrives, Freezes, ArrivesLate, RefusesEntry}
	case ordertest.Load, oracle.Due:
		return []Fault{Dies, NeverArrives, Freezes}
	case oracle.Reply, oracle.Park, oracle.Return, oracle.Answer, oracle.Checkpoint:
		return []Fault{NeverArrives, Freezes}
	// no worker makes one of these
	case ordertest.ListDisputes, ordertest.RecordDispute, ordertest.Recreate, ordertest.NoteParked:
	}
	return nil
}

func rareFaultsOf(c ordertest.Call) []Fault {
	switch c {
	case ordertest.Confirm, oracle.Charge:
		return []Fault{Slow, Overruns, InUse, Locked, Unavailable, Forbidden, Garbled, Mistakes, Declines}
	case ordertest.Prepare, ordertest.Cancel:
		return []Fault{Slow, Overruns, InUse, Locked, Unavailable, Forbidden, Garbled, Mistakes}
	case ordertest.Read:
		return []Fault{Slow, Overruns, Unavailable, Forbidden, Garbled, Mistakes}
	case ordertest.Find:
		return []Fault{Slow, Overruns, Unavailable, Forbidden, Garbled}
	case ordertest.Begin, ordertest.Bind, ordertest.Finish, ordertest.Release, oracle.Settle, ordertest.Postpone,
		oracle.Table:
		return []Fault{Slow, Overruns, Throttled, Conflicts}
	case oracle.Put:
		return []Fault{Slow, Overruns, Throttled}
	case ordertest.Load, oracle.Due, oracle.Reply, oracle.Park, oracle.Return, oracle.Answer, oracle.Checkpoint,
		ordertest.ListDisputes, ordertest.RecordDispute, ordertest.Recreate, ordertest.NoteParked:
	}
	return nil
}

// atStripe returns the fault in terms of the Stripe double, so that an adapter has to
// classify it. It returns false for faults that happen elsewhere.
func (f Fault) atStripe() (kind stripetest.FaultKind, known bool) {
	if f == None {
		return "", false
	}
	kind, known = map[Fault]stripetest.FaultKind{
		NeverArrives: stripetest.LoseRequest, LosesAnswer: stripetest.LoseResponse,
		FailsBefore: stripetest.ServerErrorBeforeEffect, FailsAfter: stripetest.ServerErrorAfterEffect,
		RateLimited: stripetest.RateLimited, InUse: stripetest.KeyInUse, Locked: stripetest.LockTimeout,
		Unavailable: stripetest.Unavailable, Unauthorized: stripetest.Unauthorized, Forbidden: stripetest.Forbidden,
		Garbled: stripetest.Garbage, Declines: stripetest.Decline,
	}[f]
	return kind, known
}
