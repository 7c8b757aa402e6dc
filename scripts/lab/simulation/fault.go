package simulation

import (
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order/ordertest"
)

// Fault is what goes wrong with one call. Dying before a call is dying after the one
// before it.
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
	NotNow       Fault = "429"
	Unauthorized Fault = "401"
	Refuses      Fault = "400: Stripe refuses, and nothing happens"
	Freezes      Fault = "not yet: the worker freezes"
	Suspends     Fault = "not yet: the worker and its clock stand still"
)

// The rare faults: for the protocol each is one of the others, but not for an adapter.
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
	BankSaysNo  Fault = "done, and the bank declines it this time"
	Mistakes    Fault = "done, but the answer is about something else"
	Panics      Fault = "the code panics"
)

func (f Fault) freezes() bool { return f == Freezes || f == Suspends }

func (f Fault) kills() bool { return f == Dies || f == Overruns }

// The calls that ordertest does not name.
const (
	reply    ordertest.Call = "reply"  // what becomes of the messages
	park     ordertest.Call = "park"   // the handler's, to the dead-letter queue
	back     ordertest.Call = "return" // the handler's: when messages come back
	load     ordertest.Call = "load"
	settle   ordertest.Call = "settle"
	recreate ordertest.Call = "recreate"
	stored   ordertest.Call = "table"  // of a baseline
	pays     ordertest.Call = "stripe" // of a baseline
)

// faultsOf lists what can go wrong with a call.
func faultsOf(c ordertest.Call) []Fault {
	switch c {
	case ordertest.Prepare, ordertest.Confirm, pays:
		return []Fault{
			Dies, LosesAnswer, NeverArrives, FailsAfter, FailsBefore, NotNow, Freezes, Suspends,
			ArrivesLate, TimesOut, Unauthorized, Refuses,
		}
	case ordertest.Read, ordertest.Find:
		return []Fault{Dies, NeverArrives, NotNow, Freezes, Suspends, Unauthorized}
	case ordertest.Begin, ordertest.Bind, ordertest.Finish, ordertest.Release, settle, stored:
		return []Fault{Dies, LosesAnswer, NeverArrives, Freezes, Suspends, ArrivesLate}
	case load:
		return []Fault{Dies, NeverArrives, Freezes}
	case reply, park, back:
		return []Fault{NeverArrives, Freezes}
	case recreate: // a person runs it, and sees what became of it
	}
	return nil
}

// rareFaultsOf lists the others.
func rareFaultsOf(c ordertest.Call) []Fault {
	switch c {
	case ordertest.Confirm, pays:
		return []Fault{Slow, Overruns, InUse, Locked, Unavailable, Forbidden, Garbled, Mistakes, BankSaysNo}
	case ordertest.Prepare:
		return []Fault{Slow, Overruns, InUse, Locked, Unavailable, Forbidden, Garbled, Mistakes}
	case ordertest.Read:
		return []Fault{Slow, Overruns, Unavailable, Forbidden, Garbled, Mistakes}
	case ordertest.Find:
		return []Fault{Slow, Overruns, Unavailable, Forbidden, Garbled}
	case ordertest.Begin, ordertest.Bind, ordertest.Finish, ordertest.Release, settle, stored:
		return []Fault{Slow, Overruns, Throttled, Conflicts}
	case load, reply, park, back, recreate:
	}
	return nil
}

// atStripe is the fault as the pretend Stripe knows it, so that an adapter has to make
// sense of it.
func (f Fault) atStripe() (kind stripetest.FaultKind, known bool) {
	switch f {
	case NeverArrives:
		kind = stripetest.LoseRequest
	case LosesAnswer:
		kind = stripetest.LoseResponse
	case FailsBefore:
		kind = stripetest.ServerErrorBeforeEffect
	case FailsAfter:
		kind = stripetest.ServerErrorAfterEffect
	case NotNow:
		kind = stripetest.RateLimited
	case InUse:
		kind = stripetest.KeyInUse
	case Locked:
		kind = stripetest.LockTimeout
	case Unavailable:
		kind = stripetest.Unavailable
	case Unauthorized:
		kind = stripetest.Unauthorized
	case Forbidden:
		kind = stripetest.Forbidden
	case Garbled:
		kind = stripetest.Garbage
	case BankSaysNo:
		kind = stripetest.Decline
	case None,
		Dies,
		ArrivesLate,
		TimesOut,
		Freezes,
		Suspends,
		Throttled,
		Conflicts,
		Slow,
		Overruns,
		Panics,
		Refuses,
		Mistakes:
		return "", false
	}
	return kind, true
}
