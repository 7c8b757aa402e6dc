package ordertest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"orderonce/domain/order"
)

func preparePromises() []paymentPromise {
	return []paymentPromise{
		{"prepare moves no money", paymentsTest.prepareMovesNothing},
		{"prepare twice under one key creates one intent", paymentsTest.prepareAgain},
		{"prepare under an expired key creates another intent", paymentsTest.prepareForgotten},
		{"prepare again returns a canceled intent in its current state", paymentsTest.prepareCanceled},
		{"prepare with different content under one key is KeyReused", paymentsTest.prepareDifferentContent},
		{"prepare with an unknown card is Refused", paymentsTest.prepareUnknownCard},
		{"fifty concurrent prepares under one key create one intent", paymentsTest.prepareRace},
	}
}

func (x paymentsTest) prepareMovesNothing() {
	id := x.mustPrepare()
	x.wantIntent(order.NeedsConfirmation)(x.read(id))
	x.wantCharges(0)
}

func (x paymentsTest) prepareAgain() {
	first, again := x.mustPrepare(), x.mustPrepare()
	if first != again {
		x.Errorf("got %s, then %s, want one intent", first, again)
	}
}

func (x paymentsTest) prepareCanceled() {
	x.Cancel(x.mustPrepare())
	x.wantIntent(order.IntentCanceled)(x.Payments.Prepare(x.Context(), x.order, x.firstKey()))
	again := order.PrepareAgainKey(x.Scope, x.order.ID(), 1)
	x.wantIntent(order.NeedsConfirmation)(x.Payments.Prepare(x.Context(), x.order, again))
}

func (x paymentsTest) prepareForgotten() {
	first := x.mustPrepare()
	x.ForgetKeys()
	if again := x.mustPrepare(); again == first {
		x.Errorf("got %s again, want another intent", again)
	}
	x.wantCharges(0)
}

func (x paymentsTest) prepareDifferentContent() {
	id := x.mustPrepare()
	x.wantFailure(order.KindKeyReused)(x.Payments.Prepare(x.Context(), differentContent(x.order), x.firstKey()))
	x.wantIntent(order.NeedsConfirmation)(x.read(id))
	x.wantFailure(order.KindKeyReused)(x.Payments.Confirm(x.Context(), id, x.firstKey()))
	x.wantCharges(0)
}

func (x paymentsTest) prepareUnknownCard() {
	x = x.withCard(DoesNotExist)
	x.wantFailure(order.KindRefused)(x.Payments.Prepare(x.Context(), x.order, x.firstKey()))
	x.wantCharges(0)
}

func (x paymentsTest) prepareRace() {
	intents := make([]order.Intent, racers)
	errs := race(func(i int) (err error) {
		intents[i], err = x.Payments.Prepare(x.Context(), x.order, x.firstKey())
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
func (x paymentsTest) succeeded(err error) bool {
	x.Helper()
	if err != nil {
		x.wantFailure(order.KindUnavailable)(order.Intent{}, err)
	}
	return err == nil
}

func confirmPromises() []paymentPromise {
	return []paymentPromise{
		{"an intent is charged once under any key", paymentsTest.confirmOnce},
		{
			"fifty concurrent confirms under fifty keys charge once",
			confirmRace(func(i int) int { return i + 1 }),
		},
		{"fifty concurrent confirms under one key charge once", confirmRace(func(int) int { return 1 })},
		{"a decline is an intent and its card is not charged again", paymentsTest.confirmDeclined},
		{"a customer can pay a declined intent", paymentsTest.confirmPaidLater},
		{"an intent that needs authentication is not declined", paymentsTest.confirmNeedsAuthentication},
		{"an intent that takes days is pending, then paid", paymentsTest.confirmTakesDays},
		{"a canceled intent is not charged", paymentsTest.confirmCanceled},
		{"two intents are independent", paymentsTest.intentsAreIndependent},
		{"confirm charges the method that prepare named and no other", paymentsTest.confirmNamed},
	}
}

func (x paymentsTest) confirmOnce() {
	id := x.mustPrepare()
	for _, attempt := range []int{1, 1, 2} {
		x.wantIntent(order.Succeeded)(x.confirm(id, attempt))
	}
	x.ForgetKeys()
	x.wantIntent(order.Succeeded)(x.confirm(id, 1))
	x.wantIntent(order.Succeeded)(x.read(id))
	x.wantCharges(1)
}

func confirmRace(attempt func(i int) int) func(paymentsTest) {
	return func(x paymentsTest) {
		id := x.mustPrepare()
		intents := make([]order.Intent, racers)
		errs := race(func(i int) (err error) {
			intents[i], err = x.confirm(id, attempt(i))
			return err
		})
		for i, err := range errs {
			if x.succeeded(err) {
				x.wantIntent(order.Succeeded)(intents[i], nil)
			}
		}
		x.wantIntent(order.Succeeded)(x.confirm(id, racers+1))
		x.wantCharges(1)
	}
}

func (x paymentsTest) confirmDeclined() {
	x = x.withCard(Declines)
	id := x.mustPrepare()
	x.wantOutcome(order.Declined)(x.confirm(id, 1))
	x.wantOutcome(order.Declined)(x.confirm(id, 2))
	x.ForgetKeys()
	x.wantOutcome(order.Declined)(x.confirm(id, 1))
	x.wantOutcome(order.Declined)(x.read(id))
	x.wantCharges(0)
	if n := x.Declines(x.order.ID()); n != 1 {
		x.Errorf("got %d declined charges, want 1", n)
	}
}

// wantOutcome checks the outcome of a declined intent, which must have a failure code.
func (x paymentsTest) wantOutcome(want order.Status) func(order.Intent, error) {
	return func(i order.Intent, err error) {
		x.Helper()
		x.wantIntent(order.NeedsMethod)(i, err)
		o, settled := order.OutcomeOf(i)
		if !settled || o.Status != want || o.Failure == "" {
			x.Errorf("got outcome %+v, settled %t, want %s with a failure", o, settled, want)
		}
	}
}

func (x paymentsTest) confirmPaidLater() {
	x = x.withCard(Declines)
	id := x.mustPrepare()
	x.wantOutcome(order.Declined)(x.confirm(id, 1))
	x.CustomerPays(id)
	x.wantIntent(order.Succeeded)(x.read(id))
	x.wantIntent(order.Succeeded)(x.confirm(id, 1)) // the first response under this key was a decline
	x.wantIntent(order.Succeeded)(x.confirm(id, 2))
	x.wantCharges(1)
}

func (x paymentsTest) confirmNeedsAuthentication() {
	x = x.withCard(NeedsAuthentication)
	id := x.mustPrepare()
	x.wantOutcome(order.ActionRequired)(x.confirm(id, 1))
	x.wantOutcome(order.ActionRequired)(x.read(id))
	x.wantOutcome(order.ActionRequired)(x.confirm(id, 2))
	x.wantCharges(0)
	x.CustomerPays(id)
	x.wantIntent(order.Succeeded)(x.read(id))
	x.wantCharges(1)
}

func (x paymentsTest) confirmTakesDays() {
	x = x.withCard(TakesDays)
	id := x.mustPrepare()
	x.wantIntent(order.Processing)(x.confirm(id, 1))
	x.wantIntent(order.Processing)(x.confirm(id, 2))
	x.wantCharges(0)
	x.Clear(id)
	x.wantIntent(order.Succeeded)(x.read(id))
	x.wantIntent(order.Succeeded)(x.confirm(id, 1))
	x.wantIntent(order.Succeeded)(x.confirm(id, 3))
	x.wantCharges(1)
}

func (x paymentsTest) confirmCanceled() {
	id := x.mustPrepare()
	x.Cancel(id)
	x.wantIntent(order.IntentCanceled)(x.confirm(id, 1))
	x.wantIntent(order.IntentCanceled)(x.read(id))
	x.wantCharges(0)
}

func (x paymentsTest) intentsAreIndependent() {
	other := x.withCard(Declines)
	mine, theirs := x.mustPrepare(), other.mustPrepare()
	x.wantIntent(order.Succeeded)(x.confirm(mine, 1))
	other.wantFailure(order.KindKeyReused)(x.Payments.Confirm(x.Context(), theirs, x.key(1)))
	other.wantOutcome(order.Declined)(other.confirm(theirs, 1))
	x.wantCharges(1)
	other.wantCharges(0)
}

// confirmNamed tests one customer with a card of each kind. A Confirm that charged
// another card would return that card's state.
func (x paymentsTest) confirmNamed() {
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
	for c, end := range ends {
		x.withCard(c).wantCharges(map[order.IntentState]int{order.Succeeded: 1}[end])
	}
}

func findPromises() []paymentPromise {
	return []paymentPromise{
		{"find returns every intent of an order and of no other", paymentsTest.findAll},
		{"find returns nothing for an order that was never prepared", paymentsTest.findNone},
		{"a failed find returns no intents", paymentsTest.findFails},
	}
}

func (x paymentsTest) find() ([]order.Intent, error) {
	return x.Payments.Find(x.Context(), x.order.ID())
}

func (x paymentsTest) findAll() {
	x.withOrder("-neighbor", Pays).mustPrepare()
	first := x.mustPrepare()
	x.wantIntent(order.Succeeded)(x.confirm(first, 1))
	x.ForgetKeys()
	second := x.mustPrepare()
	x.CatchUp()
	found, err := x.find()
	if err != nil || len(found) != 2 {
		x.Fatalf("got intents %+v, error %v, want two intents", found, err)
	}
	slices.SortFunc(found, func(a, b order.Intent) int { return strings.Compare(string(a.ID), string(b.ID)) })
	states := map[order.IntentID]order.IntentState{first: order.Succeeded, second: order.NeedsConfirmation}
	for _, i := range found {
		x.wantIntent(states[i.ID])(i, nil)
	}
}

func (x paymentsTest) findNone() {
	x.withOrder("-neighbor", Pays).mustPrepare()
	x.CatchUp()
	if found, err := x.find(); err != nil || len(found) != 0 {
		x.Errorf("got intents %+v, error %v, want none", found, err)
	}
}

func (x paymentsTest) findFails() {
	x.mustPrepare()
	x.CatchUp()
	for fault, want := range map[Fault]order.ErrorKind{
		ReturnsUnavailable: order.KindUnavailable, ReturnsMisconfigured: order.KindMisconfigured,
		LosesRequest: order.KindUnknown, LosesResponse: order.KindUnknown,
	} {
		x.Fail(Find, fault)
		found, err := x.find()
		if len(found) != 0 {
			x.Errorf("%s: got intents %+v with an error", fault, found)
		}
		x.wantFailure(want)(order.Intent{}, err)
	}
}

func cancelPromises() []paymentPromise {
	return []paymentPromise{
		{"a canceled intent is never confirmed", paymentsTest.cancelPrevents},
		{"cancel of a declined intent cancels it", paymentsTest.cancelDeclined},
		{"cancel of an intent that succeeded returns it as it is", paymentsTest.cancelSucceeded},
		{"cancel of a canceled intent returns it", paymentsTest.cancelAgain},
		{"cancel of an unknown or invalid intent is an error", paymentsTest.cancelUnknown},
		{"a cancellation whose response was lost is Unknown and happened", paymentsTest.cancelLost},
	}
}

func (x paymentsTest) cancel(id order.IntentID, n int64) (order.Intent, error) {
	return x.Canceler.CancelIntent(x.Context(), id, order.CancelKey(x.Scope, x.order.ID(), time.UnixMilli(n)))
}

func (x paymentsTest) cancelPrevents() {
	id := x.mustPrepare()
	x.wantIntent(order.IntentCanceled)(x.cancel(id, 1))
	x.wantIntent(order.IntentCanceled)(x.confirm(id, 1))
	x.wantIntent(order.IntentCanceled)(x.read(id))
	x.wantCharges(0)
}

func (x paymentsTest) cancelDeclined() {
	x = x.withCard(Declines)
	id := x.mustPrepare()
	x.wantIntent(order.NeedsMethod)(x.confirm(id, 1))
	x.wantIntent(order.IntentCanceled)(x.cancel(id, 1))
}

func (x paymentsTest) cancelSucceeded() {
	id := x.mustPrepare()
	x.wantIntent(order.Succeeded)(x.confirm(id, 1))
	x.wantIntent(order.Succeeded)(x.cancel(id, 1))
	x.wantCharges(1)
}

func (x paymentsTest) cancelAgain() {
	id := x.mustPrepare()
	for n := range int64(2) {
		x.wantIntent(order.IntentCanceled)(x.cancel(id, n))
	}
	x.wantIntent(order.IntentCanceled)(x.cancel(id, 1))
}

func (x paymentsTest) cancelUnknown() {
	x.wantFailure(order.KindMisconfigured)(x.cancel("pi_unknown", 1))
	for _, id := range []order.IntentID{"", "pi 1", "pi_1/confirm"} {
		x.wantFailure(order.KindRefused)(x.cancel(id, 1))
	}
}

func (x paymentsTest) cancelLost() {
	id := x.mustPrepare()
	x.Fail(Cancel, LosesResponse)
	x.wantFailure(order.KindUnknown)(x.cancel(id, 1))
	x.wantIntent(order.IntentCanceled)(x.read(id))
	x.wantIntent(order.IntentCanceled)(x.cancel(id, 2))
}

func failurePromises() []paymentPromise {
	return []paymentPromise{
		{"an unknown intent is Misconfigured", paymentsTest.unknownIntent},
		{"confirm of an invalid intent id is Refused", paymentsTest.invalidIntentID},
		{"an error has a request id if and only if the provider responded", paymentsTest.requestIDs},
		{"a call that was Unavailable succeeds later under the same key", paymentsTest.unavailableCall},
		{"a retry under the same key after a lost response charges once", paymentsTest.lostResponse},
		{"read shows a charge whose response was lost", paymentsTest.lostConfirm},
		{"a stored failure is replayed under its key and no other", paymentsTest.storedFailure},
		{"a stored failure may hide a charge", paymentsTest.storedFailureHidesCharge},
		{"a canceled context is Unknown", paymentsTest.canceledContext},
	}
}

func (x paymentsTest) unknownIntent() {
	x.wantFailure(order.KindMisconfigured)(x.read("pi_unknown"))
	x.wantFailure(order.KindMisconfigured)(x.confirm("pi_unknown", 1))
}

func (x paymentsTest) invalidIntentID() {
	for _, id := range []order.IntentID{"", "pi 1", "pi_1/cancel"} {
		x.wantFailure(order.KindRefused)(x.confirm(id, 1))
	}
}

// requestIDs tests the ids that the provider's support asks for. It cannot find an
// invented one.
func (x paymentsTest) requestIDs() {
	for fault, responds := range map[Fault]bool{
		ReturnsUnavailable: true, ReturnsMisconfigured: true, StoresFailure: true,
		LosesRequest: false, LosesResponse: false,
	} {
		x := x.withOrder(string(fault), Pays)
		id := x.mustPrepare()
		for call, do := range map[Call]func() (order.Intent, error){
			Prepare: func() (order.Intent, error) {
				return x.Payments.Prepare(x.Context(), x.order, order.PrepareAgainKey(x.Scope, x.order.ID(), 1))
			},
			Confirm: func() (order.Intent, error) { return x.confirm(id, 1) },
			Read:    func() (order.Intent, error) { return x.read(id) },
		} {
			x.Fail(call, fault)
			_, err := do()
			x.wantRequestID(err, responds)
		}
	}
	_, err := x.Payments.Read(x.canceled(), x.mustPrepare())
	x.wantRequestID(err, false)
}

func (x paymentsTest) wantRequestID(err error, want bool) {
	x.Helper()
	var e *order.PaymentError
	if !errors.As(err, &e) || (e.RequestID != "") != want {
		x.Errorf("got %v, want a PaymentError with a request id: %t", err, want)
	}
}

func (x paymentsTest) unavailableCall() {
	for fault, want := range map[Fault]order.ErrorKind{
		ReturnsUnavailable: order.KindUnavailable, ReturnsMisconfigured: order.KindMisconfigured,
		LosesRequest: order.KindUnknown,
	} {
		x := x.withOrder(string(fault), Pays)
		x.Fail(Prepare, fault)
		x.wantFailure(want)(x.Payments.Prepare(x.Context(), x.order, x.firstKey()))
		id := x.mustPrepare()
		x.Fail(Confirm, fault)
		x.wantFailure(want)(x.confirm(id, 1))
		x.wantCharges(0)
		x.Fail(Read, fault)
		x.wantFailure(want)(x.read(id))
		x.wantIntent(order.NeedsConfirmation)(x.read(id))
		x.wantIntent(order.Succeeded)(x.confirm(id, 1))
		x.wantCharges(1)
	}
}

func (x paymentsTest) lostResponse() {
	x.Fail(Prepare, LosesResponse)
	x.wantFailure(order.KindUnknown)(x.Payments.Prepare(x.Context(), x.order, x.firstKey()))
	id := x.mustPrepare()
	x.Fail(Confirm, LosesResponse)
	x.wantFailure(order.KindUnknown)(x.confirm(id, 1))
	x.Fail(Read, LosesResponse)
	x.wantFailure(order.KindUnknown)(x.read(id))
	x.wantIntent(order.Succeeded)(x.confirm(id, 1))
	x.wantCharges(1)
}

func (x paymentsTest) lostConfirm() {
	id := x.mustPrepare()
	x.Fail(Confirm, LosesResponse)
	x.wantFailure(order.KindUnknown)(x.confirm(id, 1))
	x.ForgetKeys()
	x.wantIntent(order.Succeeded)(x.read(id))
	x.wantIntent(order.Succeeded)(x.confirm(id, 2))
	x.wantCharges(1)
}

func (x paymentsTest) storedFailure() {
	again := order.PrepareAgainKey(x.Scope, x.order.ID(), 1)
	x.Fail(Prepare, StoresFailure)
	x.wantFailure(order.KindUnknown)(x.Payments.Prepare(x.Context(), x.order, x.firstKey()))
	x.wantFailure(order.KindReplayed)(x.Payments.Prepare(x.Context(), x.order, x.firstKey()))
	id := x.wantIntent(order.NeedsConfirmation)(x.Payments.Prepare(x.Context(), x.order, again)).ID
	x.Fail(Confirm, StoresFailure)
	x.wantFailure(order.KindUnknown)(x.confirm(id, 1))
	x.wantFailure(order.KindReplayed)(x.confirm(id, 1))
	x.wantCharges(0)
	x.wantIntent(order.NeedsConfirmation)(x.read(id))
	x.wantIntent(order.Succeeded)(x.confirm(id, 2))
	x.wantCharges(1)
}

func (x paymentsTest) storedFailureHidesCharge() {
	id := x.mustPrepare()
	x.Fail(Confirm, StoresFailureAfterEffect)
	x.wantFailure(order.KindUnknown)(x.confirm(id, 1))
	x.wantFailure(order.KindReplayed)(x.confirm(id, 1))
	x.wantIntent(order.Succeeded)(x.read(id))
	x.wantIntent(order.Succeeded)(x.confirm(id, 2))
	x.wantCharges(1)
}

func (x paymentsTest) canceledContext() {
	x.wantFailure(order.KindUnknown)(x.Payments.Prepare(x.canceled(), x.order, x.firstKey()))
	id := x.mustPrepare()
	x.wantFailure(order.KindUnknown)(x.Payments.Confirm(x.canceled(), id, x.key(1)))
	x.wantFailure(order.KindUnknown)(x.Payments.Read(x.canceled(), id))
	x.wantIntent(order.Succeeded)(x.confirm(id, 2))
	x.wantCharges(1)
}
