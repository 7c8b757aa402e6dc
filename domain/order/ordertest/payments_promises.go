package ordertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"orderonce/domain/order"
)

type step func(x *paymentsTest)

// paymentPromise is one sentence of the contract: what comes of the steps for an order
// that is paid with this card, and how often it was charged then.
type paymentPromise struct {
	name    string
	card    Card
	charges int
	steps   []step
}

// check checks what a call returned: an intent in a state, an outcome in a status, which
// then has a failure code, or an error of a kind.
func (x *paymentsTest) check(want any, i order.Intent, err error) {
	x.Helper()
	switch want := want.(type) {
	case order.IntentState:
		x.wantIntent(want)(i, err)
	case order.ErrorKind:
		x.wantFailure(want)(i, err)
	case order.Status:
		x.wantIntent(order.NeedsMethod)(i, err)
		o, settled := order.OutcomeOf(i)
		if !settled || o.Status != want || o.Failure == "" {
			x.Errorf("got outcome %+v, settled %t, want %s with a failure", o, settled, want)
		}
	}
}

// prepare prepares the order under its first key, or under that of a later attempt, and
// uses the intent in the steps that follow.
func prepare(attempt int, want any) step {
	return func(x *paymentsTest) {
		x.Helper()
		key := x.firstKey()
		if attempt > 0 {
			key = order.PrepareAgainKey(x.Scope, x.order.ID(), attempt)
		}
		i, err := x.Payments.Prepare(x.ctx, x.order, key)
		if x.check(want, i, err); err == nil {
			x.intent = i.ID
		}
	}
}

func confirm(attempt int, want any) step {
	return func(x *paymentsTest) {
		x.Helper()
		i, err := x.Payments.Confirm(x.ctx, x.intent, x.key(attempt))
		x.check(want, i, err)
	}
}

func read(want any) step {
	return func(x *paymentsTest) {
		x.Helper()
		i, err := x.Payments.Read(x.ctx, x.intent)
		x.check(want, i, err)
	}
}

func cancel(n int64, want any) step {
	return func(x *paymentsTest) {
		x.Helper()
		k := order.CancelKey(x.Scope, x.order.ID(), time.UnixMilli(n))
		i, err := x.Canceler.CancelIntent(x.ctx, x.intent, k)
		x.check(want, i, err)
	}
}

// use uses another intent in the steps that follow.
func use(id order.IntentID) step { return func(x *paymentsTest) { x.intent = id } }

// fails is a call whose only effect is a fault.
func fails(c Call, f Fault) step { return func(x *paymentsTest) { x.Fail(c, f) } }

func inCanceledContext(call step) step {
	return func(x *paymentsTest) {
		x.Helper()
		before := x.ctx
		ctx, end := context.WithCancel(before)
		end()
		x.ctx = ctx
		call(x)
		x.ctx = before
	}
}

const (
	waits, paid          = order.NeedsConfirmation, order.Succeeded
	processing, canceled = order.Processing, order.IntentCanceled
	unknown, replayed    = order.KindUnknown, order.KindReplayed
)

func prepared(x *paymentsTest) { x.Helper(); prepare(0, waits)(x) }

func uncharged(x *paymentsTest) { x.Helper(); x.wantCharges(0) }

// What happens at the provider.
func forget(x *paymentsTest) { x.ForgetKeys() }
func pay(x *paymentsTest)    { x.CustomerPays(x.intent) }
func clears(x *paymentsTest) { x.Clear(x.intent) }
func byHand(x *paymentsTest) { x.Cancel(x.intent) }

func paymentPromises() []paymentPromise {
	return slices.Concat(
		preparePromises(), confirmPromises(), cancelPromises(), failurePromises(), invalidPromises(),
	)
}

func preparePromises() []paymentPromise {
	return []paymentPromise{
		{"prepare moves no money", Pays, 0, []step{prepared, read(waits)}},
		{"prepare twice under one key creates one intent", Pays, 0, []step{prepared, sameAgain(true)}},
		{
			"prepare under an expired key creates another intent", Pays, 0, []step{prepared, forget, sameAgain(false)},
		},
		{
			"prepare again returns a canceled intent in its current state", Pays, 0,
			[]step{prepared, byHand, prepare(0, canceled), prepare(1, waits)},
		},
		{
			"prepare with different content under one key is KeyReused", Pays, 0,
			[]step{prepared, (*paymentsTest).prepareDifferentContent, read(waits)},
		},
		{"prepare with an unknown card is Refused", DoesNotExist, 0, []step{prepare(0, order.KindRefused)}},
		{"fifty concurrent prepares under one key create one intent", Pays, 0, []step{(*paymentsTest).prepareRace}},
	}
}

func confirmPromises() []paymentPromise {
	return []paymentPromise{
		{
			"an intent is charged once under any key", Pays, 1,
			[]step{
				prepared, confirm(1, paid), confirm(1, paid), confirm(2, paid), forget, confirm(1, paid), read(paid),
			},
		},
		{
			"fifty concurrent confirms, two under each key, charge once", Pays, 1,
			[]step{prepared, (*paymentsTest).confirmRace, confirm(Racers+1, paid)},
		},
		{
			"a decline is an intent and its card is not charged again", Declines, 0, []step{
				prepared, confirm(1, order.Declined), confirm(2, order.Declined), forget, confirm(1, order.Declined),
				read(order.Declined), (*paymentsTest).declinedOnce,
			},
		},
		{
			"a customer can pay a declined intent", Declines, 1, []step{
				prepared, confirm(1, order.Declined), pay, read(paid),
				confirm(1, paid), // the first response under this key was a decline
				confirm(2, paid),
			},
		},
		{
			"an intent that needs authentication is not declined", NeedsAuthentication, 1, []step{
				prepared, confirm(1, order.ActionRequired), read(order.ActionRequired), confirm(2, order.ActionRequired),
				uncharged, pay, read(paid),
			},
		},
		{
			"an intent that takes days is pending, then paid", TakesDays, 1, []step{
				prepared, confirm(1, processing), confirm(2, processing), uncharged, clears, read(paid), confirm(1, paid),
				confirm(3, paid),
			},
		},
		{
			"a canceled intent is not charged", Pays, 0,
			[]step{prepared, byHand, confirm(1, canceled), read(canceled)},
		},
		{
			"confirm charges the method that prepare named and no other", Pays, 1,
			[]step{(*paymentsTest).confirmNamed},
		},

		{"find returns every intent of an order and of no other", Pays, 1, []step{(*paymentsTest).findAll}},
	}
}

func cancelPromises() []paymentPromise {
	return []paymentPromise{
		{
			"a canceled intent is never confirmed", Pays, 0,
			[]step{prepared, cancel(1, canceled), confirm(1, canceled), read(canceled)},
		},
		{
			"cancel of a declined intent cancels it", Declines, 0,
			[]step{prepared, confirm(1, order.Declined), cancel(1, canceled)},
		},
		{
			"cancel of an intent that succeeded returns it as it is", Pays, 1,
			[]step{prepared, confirm(1, paid), cancel(1, paid)},
		},
		{
			"cancel of a canceled intent returns it", Pays, 0,
			[]step{prepared, cancel(0, canceled), cancel(1, canceled), cancel(1, canceled)},
		},
		{
			"a cancellation whose response was lost is Unknown and happened", Pays, 0,
			[]step{prepared, fails(Cancel, LosesResponse), cancel(1, unknown), read(canceled), cancel(2, canceled)},
		},
	}
}

func failurePromises() []paymentPromise {
	return []paymentPromise{
		{
			"an unknown intent is Misconfigured", Pays, 0, []step{
				use("pi_unknown"), read(order.KindMisconfigured), confirm(1, order.KindMisconfigured), cancel(1,
					order.KindMisconfigured),
			},
		},
		{
			"a failed call returns no intent, and a request id if and only if the provider responded", Pays, 0,
			[]step{(*paymentsTest).failsWell},
		},
		{
			"a retry under the same key after a lost response charges once", Pays, 1, []step{
				fails(Prepare, LosesResponse), prepare(0, unknown), prepared, fails(Confirm, LosesResponse),
				confirm(1, unknown),
				fails(Read, LosesResponse), read(unknown), confirm(1, paid),
			},
		},
		{
			"read shows a charge whose response was lost", Pays, 1,
			[]step{prepared, fails(Confirm, LosesResponse), confirm(1, unknown), forget, read(paid), confirm(2, paid)},
		},
		{
			"a stored failure is replayed under its key and no other", Pays, 1, []step{
				fails(Prepare, StoresFailure), prepare(0, unknown), prepare(0, replayed), prepare(1, waits),
				fails(Confirm, StoresFailure), confirm(1, unknown), confirm(1, replayed), uncharged, read(waits),
				confirm(2, paid),
			},
		},
		{
			"a stored failure may hide a charge", Pays, 1, []step{
				prepared, fails(Confirm, StoresFailureAfterEffect), confirm(1, unknown), confirm(1, replayed), read(paid),
				confirm(2, paid),
			},
		},
		{
			"a canceled context is Unknown", Pays, 1, []step{
				inCanceledContext(prepare(0, unknown)), prepared, inCanceledContext(confirm(1, unknown)),
				inCanceledContext(read(unknown)), confirm(2, paid),
			},
		},
	}
}

func invalidPromises() (all []paymentPromise) {
	for _, id := range []order.IntentID{"", "pi 1", "pi_1/cancel", "pi_1/confirm"} {
		all = append(all, paymentPromise{
			fmt.Sprintf("the invalid intent id %q is Refused", id), Pays, 0,
			[]step{use(id), confirm(1, order.KindRefused), cancel(1, order.KindRefused)},
		})
	}
	for _, fault := range []Fault{ReturnsUnavailable, ReturnsMisconfigured, LosesRequest} {
		kind := fault.Kind()
		all = append(all, paymentPromise{
			"a call that " + string(fault) + " has no effect, and succeeds later under the same key", Pays, 1, []step{
				fails(Prepare, fault), prepare(0, kind), prepared, fails(Confirm, fault), confirm(1, kind), uncharged,
				fails(Read, fault), read(kind), read(waits), confirm(1, paid),
			},
		})
	}
	return all
}

func (x *paymentsTest) declinedOnce() {
	if n := x.Declines(x.order.ID()); n != 1 {
		x.Errorf("got %d declined charges, want 1", n)
	}
}

// sameAgain prepares the order again, and checks whether the intent is the same.
func sameAgain(want bool) step {
	return func(x *paymentsTest) {
		x.Helper()
		first := x.intent
		if again := x.mustPrepare(); (again == first) != want {
			x.Errorf("got %s, then %s, want the same one: %t", first, again, want)
		}
	}
}

func (x *paymentsTest) prepareDifferentContent() {
	x.wantFailure(order.KindKeyReused)(x.Payments.Prepare(x.ctx, differentContent(x.order), x.firstKey()))
	x.wantFailure(order.KindKeyReused)(x.Payments.Confirm(x.ctx, x.intent, x.firstKey()))
}

func (x *paymentsTest) prepareRace() {
	intents := make([]order.Intent, Racers)
	errs := Race(func(i int) (err error) {
		intents[i], err = x.Payments.Prepare(x.ctx, x.order, x.firstKey())
		return err
	})
	id := x.mustPrepare()
	for i, err := range errs {
		if x.succeeded(err) && intents[i].ID != id {
			x.Errorf("racer %d got %s, want %s", i, intents[i].ID, id)
		}
	}
}

// succeeded reports whether err is nil. Any other error must be Unavailable.
func (x *paymentsTest) succeeded(err error) bool {
	x.Helper()
	if err != nil {
		x.wantFailure(order.KindUnavailable)(order.Intent{}, err)
	}
	return err == nil
}

func (x *paymentsTest) confirmRace() {
	intents := make([]order.Intent, Racers)
	errs := Race(func(i int) (err error) {
		intents[i], err = x.confirm(x.intent, i/2+1)
		return err
	})
	for i, err := range errs {
		if x.succeeded(err) {
			x.wantIntent(order.Succeeded)(intents[i], nil)
		}
	}
}

// confirmNamed tests one customer with a card of each kind. A Confirm that charged
// another card would return that card's state.
func (x *paymentsTest) confirmNamed() {
	ends := map[Card]order.IntentState{
		Pays: order.Succeeded, Declines: order.NeedsMethod,
		NeedsAuthentication: order.NeedsMethod, TakesDays: order.Processing,
	}
	ids := map[Card]order.IntentID{}
	for c := range ends {
		ids[c] = x.withCard(c).mustPrepare()
	}
	for attempt := 1; attempt <= 2; attempt++ { // in the second, failed cards are detached from their intents
		for c, end := range ends {
			x.withCard(c).wantIntent(end)(x.withCard(c).confirm(ids[c], attempt))
		}
	}
	x.wantFailure(order.KindKeyReused)(x.Payments.Confirm(x.ctx, ids[Declines], x.key(1)))
	for c, end := range ends {
		x.withCard(c).wantCharges(map[order.IntentState]int{order.Succeeded: 1}[end])
	}
}

func (x *paymentsTest) findAll() {
	x.withOrder("-neighbor", Pays).mustPrepare()
	find := func(want int) []order.Intent {
		x.CatchUp()
		found, err := x.Payments.Find(x.ctx, x.order.ID())
		if err != nil || len(found) != want {
			x.Fatalf("got intents %+v, error %v, want %d", found, err, want)
		}
		return found
	}
	find(0)
	first := x.mustPrepare()
	x.wantIntent(order.Succeeded)(x.confirm(first, 1))
	x.ForgetKeys()
	second := x.mustPrepare()
	states := map[order.IntentID]order.IntentState{first: order.Succeeded, second: order.NeedsConfirmation}
	found := find(2)
	slices.SortFunc(found, func(a, b order.Intent) int { return strings.Compare(string(a.ID), string(b.ID)) })
	for _, i := range slices.CompactFunc(found, func(a, b order.Intent) bool { return a.ID == b.ID }) {
		x.wantIntent(states[i.ID])(i, nil)
		delete(states, i.ID)
	}
	if len(states) > 0 {
		x.Errorf("find did not return %v", states)
	}
}

// failsWell tests what a failed call returns: an error of a kind, and no intent. The
// provider's support asks for the request id of a response, and cannot find an invented
// one.
func (x *paymentsTest) failsWell() {
	for _, fault := range []Fault{
		ReturnsUnavailable, ReturnsMisconfigured, StoresFailure, LosesRequest, LosesResponse,
	} {
		x := x.withOrder(string(fault), Pays)
		id := x.mustPrepare()
		for call, do := range map[Call]func() (order.Intent, error){
			Prepare: func() (order.Intent, error) {
				return x.Payments.Prepare(x.ctx, x.order, order.PrepareAgainKey(x.Scope, x.order.ID(), 1))
			},
			Confirm: func() (order.Intent, error) { return x.confirm(id, 1) },
			Read:    func() (order.Intent, error) { return x.Payments.Read(x.ctx, id) },
			Find: func() (i order.Intent, err error) {
				x.CatchUp()
				found, err := x.Payments.Find(x.ctx, x.order.ID())
				if len(found) > 0 {
					i = found[0]
				}
				return i, err
			},
		} {
			x.Fail(call, fault)
			i, err := do()
			x.wantFailure(fault.Kind())(i, err)
			if e, ok := errors.AsType[*order.PaymentError](err); ok && (e.RequestID == "") != fault.Lost() {
				x.Errorf("%s %s: got %v, want a request id: %t", call, fault, err, !fault.Lost())
			}
		}
	}
}
