package ordertest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"orderonce/domain/order"
)

// Call names a method of a port.
type Call string

// The calls to a store, of which all but Load are a Save, and to a provider.
const (
	Load          Call = "load"
	Begin         Call = "begin"
	Bind          Call = "bind"
	Finish        Call = "finish"
	Release       Call = "release"
	Recreate      Call = "recreate"
	RecordDispute Call = "dispute"
	NoteParked    Call = "note"
	Postpone      Call = "postpone"

	Prepare Call = "prepare"
	Confirm Call = "confirm"
	Read    Call = "read"
	Find    Call = "find"
	Cancel  Call = "cancel"
)

// Card is a kind of payment method: what happens when it is charged off session.
type Card string

// The cards that a provider under test must have.
const (
	Pays                Card = "pays"
	Declines            Card = "declines"
	NeedsAuthentication Card = "needs_authentication" // the bank returns authentication_required
	TakesDays           Card = "takes_days"
	DoesNotExist        Card = "does_not_exist"
)

// Fault is a failure of one call to the provider.
type Fault string

// The faults that a provider under test must support.
const (
	ReturnsUnavailable       Fault = "returns_unavailable"         // rate limit or a concurrent request: no effect
	ReturnsMisconfigured     Fault = "returns_misconfigured"       // wrong credentials: no effect
	LosesRequest             Fault = "loses_request"               // connection lost before the effect
	LosesResponse            Fault = "loses_response"              // connection lost after the effect
	StoresFailure            Fault = "stores_failure"              // 500 without effect, replayed under the key
	StoresFailureAfterEffect Fault = "stores_failure_after_effect" // 500 after the effect, replayed under the key
)

// Kind is the kind of the error that the caller gets.
func (f Fault) Kind() order.ErrorKind {
	switch f { //nolint:exhaustive // after the others the caller does not know what happened
	case ReturnsUnavailable:
		return order.KindUnavailable
	case ReturnsMisconfigured:
		return order.KindMisconfigured
	}
	return order.KindUnknown
}

// Lost reports whether the caller gets no response.
func (f Fault) Lost() bool { return f == LosesRequest || f == LosesResponse }

// PaymentsUnderTest is a port and controls of the provider behind it. A provider starts
// without intents and faults.
type PaymentsUnderTest struct {
	Payments order.Payments
	Canceler order.Canceler
	Scope    order.Scope                  // that the port writes into its intents
	Method   func(Card) string            // a payment method of this kind
	Charges  func(order.ID) []order.Money // successful ones, in the provider's ledger
	Declines func(order.ID) int           // number of declined charges, in the provider's ledger

	Fail         func(Call, Fault)    // the next call of this kind
	ForgetKeys   func()               // expires every idempotency key
	CatchUp      func()               // makes the search find every intent prepared so far
	CustomerPays func(order.IntentID) // with another card, at the provider
	Clear        func(order.IntentID) // makes a Processing intent succeed
	Cancel       func(order.IntentID) // as a person can at the provider
}

// TestPayments tests the contract of order.Payments, and that of order.Canceler.
func TestPayments(t *testing.T, open func(t *testing.T) PaymentsUnderTest) {
	t.Helper()
	for _, p := range paymentPromises() {
		t.Run(p.name, func(t *testing.T) {
			x := newPaymentsTest(t, open(t)).withCard(p.card)
			for _, do := range p.steps {
				do(&x)
			}
			x.wantCharges(p.charges)
		})
	}
}

// paymentsTest is one order and the provider under test.
type paymentsTest struct {
	testing.TB
	PaymentsUnderTest

	ctx    context.Context //nolint:containedctx // that of the next call
	order  order.Order
	intent order.IntentID // that the last prepare returned
}

func newPaymentsTest(tb testing.TB, p PaymentsUnderTest) paymentsTest {
	tb.Helper()
	return paymentsTest{TB: tb, PaymentsUnderTest: p, ctx: tb.Context()}.withCard(Pays)
}

// Fail injects a fault; testing.TB has a method of the same name.
func (x paymentsTest) Fail(c Call, m Fault) { x.PaymentsUnderTest.Fail(c, m) }

func (x paymentsTest) withCard(c Card) paymentsTest { return x.withOrder(string(c), c) }

func (x paymentsTest) withOrder(name string, c Card) paymentsTest {
	x.order = OrderWith(idOf(x.Name()+name), x.Method(c))
	return x
}

func (x paymentsTest) firstKey() order.Key { return order.PrepareKey(x.Scope, x.order.ID()) }

func (x paymentsTest) key(attempt int) order.Key {
	return order.ConfirmKey(x.Scope, x.order.ID(), attempt)
}

// mustPrepare returns the order's intent under its first key.
func (x paymentsTest) mustPrepare() order.IntentID {
	x.Helper()
	return x.wantIntent(order.NeedsConfirmation)(x.Payments.Prepare(x.ctx, x.order, x.firstKey())).ID
}

func (x paymentsTest) confirm(id order.IntentID, attempt int) (order.Intent, error) {
	return x.Payments.Confirm(x.ctx, id, x.key(attempt))
}

// wantIntent checks that a call returned the order's intent in this state.
func (x paymentsTest) wantIntent(want order.IntentState) func(order.Intent, error) order.Intent {
	return func(i order.Intent, err error) order.Intent {
		x.Helper()
		if err != nil {
			x.Fatalf("got error %v, want an intent in state %s", err, want)
		}
		if i.State != want || i.ID == "" {
			x.Fatalf("got intent %q in state %s, want state %s", i.ID, i.State, want)
		}
		expected := order.Intent{
			ID: i.ID, State: want, Failure: i.Failure, Total: x.order.Total(), OrderID: x.order.ID(), Scope: x.Scope,
			Fingerprint: x.order.Fingerprint(), Mode: order.TestMode,
		}
		if d := diff(i, expected); d != "" {
			x.Errorf("intent %s:%s", i.ID, d)
		}
		return i
	}
}

// wantFailure checks that a call failed with this kind of error, and that the error
// contains no payment data.
func (x paymentsTest) wantFailure(want order.ErrorKind) func(order.Intent, error) {
	return func(i order.Intent, err error) {
		x.Helper()
		var e *order.PaymentError
		if !errors.As(err, &e) {
			x.Fatalf("got intent %+v and error %v, want a PaymentError of kind %s", i, err, want)
		}
		if e.Kind != want {
			x.Errorf("got error kind %s (%v), want %s", e.Kind, err, want)
		}
		if i != (order.Intent{}) {
			x.Errorf("got intent %+v with an error, want none", i)
		}
		for _, secret := range []string{x.order.Payment().Method, x.order.Payment().Customer} {
			if strings.Contains(err.Error(), secret) {
				x.Errorf("error %v contains payment data %q", err, secret)
			}
		}
	}
}

// wantCharges checks the number and the amount of the order's charges in the provider's
// ledger.
func (x paymentsTest) wantCharges(times int) {
	x.Helper()
	got := x.Charges(x.order.ID())
	if len(got) != times {
		x.Errorf("got %d charges %v, want %d", len(got), got, times)
	}
	for _, m := range got {
		if m != x.order.Total() {
			x.Errorf("got a charge of %s, want %s", m, x.order.Total())
		}
	}
}
