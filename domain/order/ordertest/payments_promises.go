package ordertest

import (
	"errors"
	"slices"
	"strings"

	"orderonce/domain/order"
)

func preparePromises() []paymentPromise {
	return []paymentPromise{
		{"prepare moves no money", sale.prepareMovesNothing},
		{"prepare twice under one key creates one intent", sale.prepareAgain},
		{"prepare under an expired key creates another intent", sale.prepareForgotten},
		{"prepare again returns a canceled intent in its current state", sale.prepareCanceled},
		{"prepare with different content under one key is KeyReused", sale.prepareOther},
		{"prepare with an unknown card is Refused", sale.prepareNoCard},
		{"fifty concurrent prepares under one key create one intent", sale.prepareRace},
	}
}

func (x sale) prepareMovesNothing() {
	id := x.prepared()
	x.gets(order.NeedsConfirmation)(x.read(id))
	x.charged(0)
}

func (x sale) prepareAgain() {
	first, again := x.prepared(), x.prepared()
	if first != again {
		x.Errorf("got %s, then %s, want one intent", first, again)
	}
}

func (x sale) prepareCanceled() {
	x.Cancel(x.prepared())
	x.gets(order.IntentCanceled)(x.Payments.Prepare(x.Context(), x.order, x.firstKey()))
	x.gets(
		order.NeedsConfirmation,
	)(
		x.Payments.Prepare(x.Context(), x.order, order.PrepareAgainKey(x.Scope, x.order.ID(), 1)),
	)
}

func (x sale) prepareForgotten() {
	first := x.prepared()
	x.ForgetKeys()
	if again := x.prepared(); again == first {
		x.Errorf("got %s again, want another intent", again)
	}
	x.charged(0)
}

func (x sale) prepareOther() {
	id := x.prepared()
	x.fails(order.KeyReused)(x.Payments.Prepare(x.Context(), otherContent(x.order), x.firstKey()))
	x.gets(order.NeedsConfirmation)(x.read(id))
	x.fails(order.KeyReused)(x.Payments.Confirm(x.Context(), id, x.firstKey()))
	x.charged(0)
}

func (x sale) prepareNoCard() {
	x = x.of(DoesNotExist)
	x.fails(order.Refused)(x.Payments.Prepare(x.Context(), x.order, x.firstKey()))
	x.charged(0)
}

func (x sale) prepareRace() {
	intents := make([]order.Intent, racers)
	errs := race(func(i int) (err error) {
		intents[i], err = x.Payments.Prepare(x.Context(), x.order, x.firstKey())
		return err
	})
	id := x.prepared()
	for i, err := range errs {
		if x.notNow(err) && intents[i].ID != id {
			x.Errorf("racer %d got %s, want %s", i, intents[i].ID, id)
		}
	}
}

// notNow reports whether err is nil; if not, it must say that nothing happened.
func (x sale) notNow(err error) (none bool) {
	x.Helper()
	if err != nil {
		x.fails(order.Unavailable)(order.Intent{}, err)
	}
	return err == nil
}

func confirmPromises() []paymentPromise {
	return []paymentPromise{
		{"an intent is charged once under any key", sale.confirmOnce},
		{
			"fifty concurrent confirms under fifty keys charge once",
			confirmRace(func(i int) int { return i + 1 }),
		},
		{"fifty concurrent confirms under one key charge once", confirmRace(func(int) int { return 1 })},
		{"a decline is an intent and its card is not charged again", sale.confirmDeclined},
		{"a customer can pay a declined intent", sale.confirmPaidLater},
		{"an intent that needs authentication is not declined", sale.confirmWantsCustomer},
		{"an intent that takes days is pending, then paid", sale.confirmTakesDays},
		{"a canceled intent is not charged", sale.confirmCanceled},
		{"two intents are independent", sale.confirmApart},
		{"confirm charges the method that prepare named and no other", sale.confirmNamed},
	}
}

func (x sale) confirmOnce() {
	id := x.prepared()
	for _, attempt := range []int{1, 1, 2} {
		x.gets(order.Succeeded)(x.confirm(id, attempt))
	}
	x.ForgetKeys()
	x.gets(order.Succeeded)(x.confirm(id, 1))
	x.gets(order.Succeeded)(x.read(id))
	x.charged(1)
}

func confirmRace(attempt func(i int) int) func(sale) {
	return func(x sale) {
		id := x.prepared()
		intents := make([]order.Intent, racers)
		errs := race(func(i int) (err error) {
			intents[i], err = x.confirm(id, attempt(i))
			return err
		})
		for i, err := range errs {
			if x.notNow(err) {
				x.gets(order.Succeeded)(intents[i], nil)
			}
		}
		x.gets(order.Succeeded)(x.confirm(id, racers+1))
		x.charged(1)
	}
}

func (x sale) confirmDeclined() {
	x = x.of(Declines)
	id := x.prepared()
	x.settles(order.Declined)(x.confirm(id, 1))
	x.settles(order.Declined)(x.confirm(id, 2))
	x.ForgetKeys()
	x.settles(order.Declined)(x.confirm(id, 1))
	x.settles(order.Declined)(x.read(id))
	x.charged(0)
	if n := x.Declines(x.order.ID()); n != 1 {
		x.Errorf("the card was tried %d times, want once", n)
	}
}

// settles checks what an order settles to with a refused intent: the failure must tell.
func (x sale) settles(want order.Status) func(order.Intent, error) {
	return func(i order.Intent, err error) {
		x.Helper()
		x.gets(order.NeedsMethod)(i, err)
		o, settled := order.OutcomeOf(i)
		if !settled || o.Status != want || o.Failure == "" {
			x.Errorf("got outcome %+v, settled %t, want %s with a failure", o, settled, want)
		}
	}
}

func (x sale) confirmPaidLater() {
	x = x.of(Declines)
	id := x.prepared()
	x.settles(order.Declined)(x.confirm(id, 1))
	x.CustomerPays(id)
	x.gets(order.Succeeded)(x.read(id))
	x.gets(order.Succeeded)(x.confirm(id, 1)) // the key's first answer was a decline
	x.gets(order.Succeeded)(x.confirm(id, 2))
	x.charged(1)
}

func (x sale) confirmWantsCustomer() {
	x = x.of(NeedsAuthentication)
	id := x.prepared()
	x.settles(order.ActionRequired)(x.confirm(id, 1))
	x.settles(order.ActionRequired)(x.read(id))
	x.settles(order.ActionRequired)(x.confirm(id, 2))
	x.charged(0)
	x.CustomerPays(id)
	x.gets(order.Succeeded)(x.read(id))
	x.charged(1)
}

func (x sale) confirmTakesDays() {
	x = x.of(TakesDays)
	id := x.prepared()
	x.gets(order.Processing)(x.confirm(id, 1))
	x.gets(order.Processing)(x.confirm(id, 2))
	x.charged(0)
	x.Clear(id)
	x.gets(order.Succeeded)(x.read(id))
	x.gets(order.Succeeded)(x.confirm(id, 1))
	x.gets(order.Succeeded)(x.confirm(id, 3))
	x.charged(1)
}

func (x sale) confirmCanceled() {
	id := x.prepared()
	x.Cancel(id)
	x.gets(order.IntentCanceled)(x.confirm(id, 1))
	x.gets(order.IntentCanceled)(x.read(id))
	x.charged(0)
}

func (x sale) confirmApart() {
	other := x.of(Declines)
	mine, theirs := x.prepared(), other.prepared()
	x.gets(order.Succeeded)(x.confirm(mine, 1))
	other.fails(order.KeyReused)(x.Payments.Confirm(x.Context(), theirs, x.key(1)))
	other.settles(order.Declined)(other.confirm(theirs, 1))
	x.charged(1)
	other.charged(0)
}

// confirmNamed is one customer with a card of each kind: a Confirm that reached for
// another of them would end as that one does.
func (x sale) confirmNamed() {
	ends := map[Card]order.IntentState{
		Pays: order.Succeeded, Declines: order.NeedsMethod, NeedsAuthentication: order.NeedsMethod, TakesDays: order.Processing,
	}
	ids := map[Card]order.IntentID{}
	for c := range ends {
		ids[c] = x.of(c).prepared()
	}
	for attempt := 1; attempt <= 2; attempt++ { // the second time every card has been tried, and those that failed are off
		for c, end := range ends {
			x.of(c).gets(end)(x.of(c).confirm(ids[c], attempt))
		}
	}
	for c, end := range ends {
		x.of(c).charged(map[order.IntentState]int{order.Succeeded: 1}[end])
	}
}

func findPromises() []paymentPromise {
	return []paymentPromise{
		{"find returns every intent of an order and of no other", sale.findAll},
		{"find returns nothing for an order that was never prepared", sale.findNone},
		{"a failed find returns no intents", sale.findFails},
	}
}

func (x sale) find() ([]order.Intent, error) { return x.Payments.Find(x.Context(), x.order.ID()) }

func (x sale) findAll() {
	x.named("-neighbor", Pays).prepared()
	first := x.prepared()
	x.gets(order.Succeeded)(x.confirm(first, 1))
	x.ForgetKeys()
	second := x.prepared()
	x.CatchUp()
	found, err := x.find()
	if err != nil || len(found) != 2 {
		x.Fatalf("got intents %+v, error %v, want two intents", found, err)
	}
	slices.SortFunc(found, func(a, b order.Intent) int { return strings.Compare(string(a.ID), string(b.ID)) })
	states := map[order.IntentID]order.IntentState{first: order.Succeeded, second: order.NeedsConfirmation}
	for _, i := range found {
		x.gets(states[i.ID])(i, nil)
	}
}

func (x sale) findNone() {
	x.named("-neighbor", Pays).prepared()
	x.CatchUp()
	if found, err := x.find(); err != nil || len(found) != 0 {
		x.Errorf("got intents %+v, error %v, want none", found, err)
	}
}

func (x sale) findFails() {
	x.prepared()
	x.CatchUp()
	for fault, want := range map[Fault]order.ErrorKind{
		ReturnsUnavailable: order.Unavailable, ReturnsMisconfigured: order.Misconfigured,
		LosesRequest: order.Unknown, LosesResponse: order.Unknown,
	} {
		x.Fail(Find, fault)
		found, err := x.find()
		if len(found) != 0 {
			x.Errorf("%s: got intents %+v with an error", fault, found)
		}
		x.fails(want)(order.Intent{}, err)
	}
}

func troublePromises() []paymentPromise {
	return []paymentPromise{
		{"an unknown intent is Misconfigured", sale.unknownIntent},
		{"confirm of an invalid intent id is Refused", sale.noIntentsID},
		{"an error has a request id if and only if the provider responded", sale.requestIDs},
		{"a call that was Unavailable succeeds later under the same key", sale.turnedAway},
		{"a retry under the same key after a lost response charges once", sale.lostAnswer},
		{"read shows a charge whose response was lost", sale.lostConfirm},
		{"a stored failure is replayed under its key and no other", sale.burntKey},
		{"a stored failure may hide a charge", sale.burntKeyHidesCharge},
		{"a canceled context is Unknown", sale.deadContext},
	}
}

func (x sale) unknownIntent() {
	x.fails(order.Misconfigured)(x.read("pi_nobody_made"))
	x.fails(order.Misconfigured)(x.confirm("pi_nobody_made", 1))
}

func (x sale) noIntentsID() {
	for _, id := range []order.IntentID{"", "pi 1", "pi_1/cancel"} {
		x.fails(order.Refused)(x.confirm(id, 1))
	}
}

// requestIDs are what the provider's support asks for. One that is made up sends people
// looking for nothing.
func (x sale) requestIDs() {
	for fault, answers := range map[Fault]bool{
		ReturnsUnavailable: true, ReturnsMisconfigured: true, StoresFailure: true, LosesRequest: false, LosesResponse: false,
	} {
		x := x.named(string(fault), Pays)
		id := x.prepared()
		for call, do := range map[Call]func() (order.Intent, error){
			Prepare: func() (order.Intent, error) {
				return x.Payments.Prepare(x.Context(), x.order, order.PrepareAgainKey(x.Scope, x.order.ID(), 1))
			},
			Confirm: func() (order.Intent, error) { return x.confirm(id, 1) },
			Read:    func() (order.Intent, error) { return x.read(id) },
		} {
			x.Fail(call, fault)
			_, err := do()
			x.namesRequest(err, answers)
		}
	}
	_, err := x.Payments.Read(x.dead(), x.prepared())
	x.namesRequest(err, false)
}

func (x sale) namesRequest(err error, want bool) {
	x.Helper()
	var e *order.PaymentError
	if !errors.As(err, &e) || (e.RequestID != "") != want {
		x.Errorf("got %v, want a PaymentError with a request id: %t", err, want)
	}
}

func (x sale) turnedAway() {
	for fault, trouble := range map[Fault]order.ErrorKind{
		ReturnsUnavailable: order.Unavailable, ReturnsMisconfigured: order.Misconfigured, LosesRequest: order.Unknown,
	} {
		x := x.named(string(fault), Pays)
		x.Fail(Prepare, fault)
		x.fails(trouble)(x.Payments.Prepare(x.Context(), x.order, x.firstKey()))
		id := x.prepared()
		x.Fail(Confirm, fault)
		x.fails(trouble)(x.confirm(id, 1))
		x.charged(0)
		x.Fail(Read, fault)
		x.fails(trouble)(x.read(id))
		x.gets(order.NeedsConfirmation)(x.read(id))
		x.gets(order.Succeeded)(x.confirm(id, 1))
		x.charged(1)
	}
}

func (x sale) lostAnswer() {
	x.Fail(Prepare, LosesResponse)
	x.fails(order.Unknown)(x.Payments.Prepare(x.Context(), x.order, x.firstKey()))
	id := x.prepared()
	x.Fail(Confirm, LosesResponse)
	x.fails(order.Unknown)(x.confirm(id, 1))
	x.Fail(Read, LosesResponse)
	x.fails(order.Unknown)(x.read(id))
	x.gets(order.Succeeded)(x.confirm(id, 1))
	x.charged(1)
}

func (x sale) lostConfirm() {
	id := x.prepared()
	x.Fail(Confirm, LosesResponse)
	x.fails(order.Unknown)(x.confirm(id, 1))
	x.ForgetKeys()
	x.gets(order.Succeeded)(x.read(id))
	x.gets(order.Succeeded)(x.confirm(id, 2))
	x.charged(1)
}

func (x sale) burntKey() {
	again := order.PrepareAgainKey(x.Scope, x.order.ID(), 1)
	x.Fail(Prepare, StoresFailure)
	x.fails(order.Unknown)(x.Payments.Prepare(x.Context(), x.order, x.firstKey()))
	x.fails(order.Replayed)(x.Payments.Prepare(x.Context(), x.order, x.firstKey()))
	id := x.gets(order.NeedsConfirmation)(x.Payments.Prepare(x.Context(), x.order, again)).ID
	x.Fail(Confirm, StoresFailure)
	x.fails(order.Unknown)(x.confirm(id, 1))
	x.fails(order.Replayed)(x.confirm(id, 1))
	x.charged(0)
	x.gets(order.NeedsConfirmation)(x.read(id))
	x.gets(order.Succeeded)(x.confirm(id, 2))
	x.charged(1)
}

func (x sale) burntKeyHidesCharge() {
	id := x.prepared()
	x.Fail(Confirm, StoresFailureAfterEffect)
	x.fails(order.Unknown)(x.confirm(id, 1))
	x.fails(order.Replayed)(x.confirm(id, 1))
	x.gets(order.Succeeded)(x.read(id))
	x.gets(order.Succeeded)(x.confirm(id, 2))
	x.charged(1)
}

func (x sale) deadContext() {
	x.fails(order.Unknown)(x.Payments.Prepare(x.dead(), x.order, x.firstKey()))
	id := x.prepared()
	x.fails(order.Unknown)(x.Payments.Confirm(x.dead(), id, x.key(1)))
	x.fails(order.Unknown)(x.Payments.Read(x.dead(), id))
	x.gets(order.Succeeded)(x.confirm(id, 2))
	x.charged(1)
}
