package world

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
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
		faults := []Fault{Dies, LosesAnswer, NeverArrives, Freezes, Suspends, ArrivesLate}
		return spec{faults, []Fault{Slow, Overruns, Throttled, Conflicts}, needs, says}
	}
	puts := []Fault{Dies, LosesAnswer, NeverArrives, Freezes, ArrivesLate, RefusesEntry}
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
		oracle.Put:         {puts, []Fault{Slow, Overruns, Throttled}, to(putEvents), "put DETAIL"},
	}
}

func (w *World) describe(c oracle.Call) string {
	return strings.NewReplacer("SUBJECT", c.Subject, "DETAIL", c.Detail).Replace(w.lab.specs[c.Name].says)
}

// permission is an action that the function's role allows, or its Stripe key.
type permission string

// The permissions that the product needs. A transaction needs those of its parts
// (DynamoDB developer guide, "Using IAM with DynamoDB transactions").
const (
	updateItem       permission = "dynamodb:UpdateItem"
	putItem          permission = "dynamodb:PutItem"
	query            permission = "dynamodb:Query"
	sendMessage      permission = "sqs:SendMessage"
	deleteMessage    permission = "sqs:DeleteMessage"
	changeVisibility permission = "sqs:ChangeMessageVisibility"
	writeIntents     permission = "write of PaymentIntents"
	readIntents      permission = "read of PaymentIntents"
	putEvents        permission = "events:PutEvents" // of a world with a stream
)

func permissions() []permission {
	return []permission{
		updateItem, putItem, query, sendMessage, deleteMessage, changeVisibility, writeIntents, readIntents,
		putEvents,
	}
}

// denial is a permission that is missing for a while. The zero denial denies nothing.
type denial struct {
	of    permission
	until time.Time
}

// How long a denial lasts: longer than a lease, and in some worlds longer than the
// deliveries after which an order that fails by itself is parked.
const (
	denialLasts     = 10 * time.Minute
	longDenialLasts = 4 * time.Hour
)

var errDenied = errors.New("AccessDeniedException: not authorized to perform this action")

// denied reports whether a call lacks a permission. In a batch Lambda deletes what is
// done.
func (w *World) denied(c oracle.Call) bool {
	needs := w.lab.specs[c.Name].needs
	if c.Name == oracle.Reply {
		needs = []permission{deleteMessage}
		switch order.Verdict(c.Subject) {
		case order.Park:
			needs[0] = sendMessage
		case order.Redeliver:
			needs[0] = changeVisibility
		case order.Done:
		}
	}
	return w.denying() && slices.Contains(needs, w.incidents.denial.of)
}

func (w *World) denying() bool {
	d := w.incidents.denial
	return d.of != "" && w.Now.Before(d.until)
}

func (w *World) deny(o option) {
	of, lasts := permissions()[o.n], denialLasts
	if w.setup.Adversarial && w.setup.Variety%4 == 0 {
		lasts = longDenialLasts
	}
	w.incidents.denial = denial{of: of, until: w.Now.Add(lasts)}
	w.happens("administrator", fmt.Sprintf("denies %s for %v", of, lasts))
}

// allow ends a denial early, because a person has noticed.
func (w *World) allow(option) {
	w.happens("administrator", "allows "+string(w.incidents.denial.of)+" again")
	w.incidents.denial = denial{}
}

// denials returns the permissions that can be denied next. One denial in a world is
// enough.
func (w *World) denials(options []option) []option {
	if w.incidents.denial.of != "" {
		return options
	}
	for i, p := range permissions() {
		if p == putEvents && !w.setup.Publish {
			continue
		}
		options = append(options, option{kind: deny, n: i})
	}
	return options
}
