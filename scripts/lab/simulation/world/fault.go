package world

import (
	"slices"
	"strings"
	"time"

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
const RefusesEntry Fault = "done, but one event is refused"

func (f Fault) freezes() bool { return f == Freezes || f == Suspends }

func (f Fault) kills() bool { return f == Dies || f == Overruns }

// duration returns how much longer a call takes with the fault.
func (f Fault) duration() time.Duration {
	switch f { //nolint:exhaustive // the others take no time
	case TimesOut, ArrivesLate:
		return oracle.ConfirmTime
	case Slow:
		return oracle.FunctionTime - oracle.ConfirmTime
	case Overruns:
		return oracle.FunctionTime
	}
	return 0
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

// spec is what can happen to a call.
type spec struct {
	faults, rare []Fault
	needs        []permission // without one of these it is denied
	says         string       // in a history, of SUBJECT and DETAIL
}

// newSpecs returns what can happen to each call that workers make.
func newSpecs() map[ordertest.Call]spec {
	effects := []Fault{
		Dies, LosesAnswer, NeverArrives, FailsAfter, FailsBefore, RateLimited, Freezes, Suspends, ArrivesLate,
		TimesOut, Unauthorized, Refuses,
	}
	rareEffects := []Fault{Slow, Overruns, InUse, Locked, Unavailable, Forbidden, Garbled, Mistakes}
	declines := append(slices.Clone(rareEffects), Declines)
	reads := []Fault{Dies, NeverArrives, RateLimited, Freezes, Suspends, Unauthorized}
	rareReads := []Fault{Slow, Overruns, Unavailable, Forbidden, Garbled, Mistakes}
	fromStore, toQueue := []Fault{Dies, NeverArrives, Freezes}, []Fault{NeverArrives, Freezes}
	write := func(says string, needs ...permission) spec {
		return spec{
			[]Fault{Dies, LosesAnswer, NeverArrives, Freezes, Suspends, ArrivesLate},
			[]Fault{Slow, Overruns, Throttled, Conflicts}, needs, says,
		}
	}
	to := func(p permission) []permission { return []permission{p} }
	return map[ordertest.Call]spec{
		ordertest.Prepare:  {effects, rareEffects, to(writeIntents), "prepare under DETAIL"},
		ordertest.Cancel:   {effects, rareEffects, to(writeIntents), "cancel SUBJECT"},
		ordertest.Confirm:  {effects, declines, to(writeIntents), "confirm SUBJECT"},
		ordertest.Read:     {reads, rareReads, to(readIntents), "read SUBJECT"},
		ordertest.Find:     {reads, rareReads[:5], to(readIntents), "find SUBJECT"},
		ordertest.Begin:    write("begin SUBJECT", updateItem),
		ordertest.Bind:     write("bind SUBJECT", updateItem),
		ordertest.Release:  write("release SUBJECT: DETAIL", updateItem),
		ordertest.Postpone: write("postpone SUBJECT DETAIL", updateItem),
		ordertest.Finish:   write("finish SUBJECT as DETAIL", updateItem, putItem),
		oracle.Settle:      write("settle SUBJECT as DETAIL", updateItem, putItem),
		ordertest.Load:     {fromStore, nil, to(query), "load SUBJECT"},
		oracle.Due:         {fromStore, nil, to(query), "which orders are due?"},
		oracle.Reply:       {toQueue, nil, nil, "SUBJECT DETAIL"}, // denied by its verdict
		oracle.Park:        {toQueue, nil, to(sendMessage), "park SUBJECT"},
		oracle.Return:      {toQueue, nil, to(changeVisibility), "return"},
		oracle.Answer:      {toQueue, nil, nil, "answers SUBJECT (DETAIL)"},
		oracle.Checkpoint:  {toQueue, nil, nil, "answers DETAIL"},
		oracle.Put: {
			[]Fault{Dies, LosesAnswer, NeverArrives, Freezes, ArrivesLate, RefusesEntry},
			[]Fault{Slow, Overruns, Throttled}, to(putEvents), "put DETAIL",
		},
		oracle.Table:  write("DETAIL"),
		oracle.Charge: {effects, declines, nil, "DETAIL"},
	}
}

// describe returns a call as a history shows it.
func (w *World) describe(c oracle.Call) string {
	return strings.NewReplacer("SUBJECT", c.Subject, "DETAIL", c.Detail).Replace(w.lab.specs[c.Name].says)
}
