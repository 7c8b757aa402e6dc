package ordertest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"orderonce/domain/order"
)

// Call names a method of a port.
type Call string

// The calls that processing an order makes.
const (
	Begin   Call = "begin"
	Bind    Call = "bind"
	Finish  Call = "finish"
	Release Call = "release"
	Prepare Call = "prepare"
	Confirm Call = "confirm"
	Read    Call = "read"
	Find    Call = "find"
)

// Card is how a payment method behaves when it is charged off session.
type Card string

// The cards that a provider under test must have.
const (
	Pays                Card = "pays"
	Declines            Card = "declines"
	NeedsAuthentication Card = "needs_authentication" // the bank answers authentication_required
	TakesDays           Card = "takes_days"
	DoesNotExist        Card = "does_not_exist"
)

// Fault is what goes wrong with one call to the provider.
type Fault string

// The faults that a provider under test must be able to have.
const (
	ReturnsUnavailable       Fault = "returns_unavailable"         // rate limit, twin running: nothing happened
	ReturnsMisconfigured     Fault = "returns_misconfigured"       // bad credentials: nothing happened
	LosesRequest             Fault = "loses_request"               // connection lost on the way there: nothing happened
	LosesResponse            Fault = "loses_response"              // connection lost on the way back
	StoresFailure            Fault = "stores_failure"              // 500 without effect, kept and replayed under the key
	StoresFailureAfterEffect Fault = "stores_failure_after_effect" // 500 after the effect, kept and replayed
)

// PaymentsUnderTest is a port and the provider behind it, which a test can tell to
// misbehave. A provider starts without any intent or fault.
type PaymentsUnderTest struct {
	Payments order.Payments
	Scope    order.Scope                  // that the port writes into its intents
	Method   func(Card) string            // a payment method that behaves so
	Charges  func(order.ID) []order.Money // successful ones, in the provider's books
	Declines func(order.ID) int           // how often a card was tried in vain, in the provider's books

	Fail         func(Call, Fault)    // the next Prepare, Confirm, Read or Find
	ForgetKeys   func()               // as if they were too old
	CatchUp      func()               // lets the search find what was prepared until now
	CustomerPays func(order.IntentID) // with another card, at the provider's own page
	Clear        func(order.IntentID) // a Processing intent succeeds
	Cancel       func(order.IntentID) // somebody cancels it at the provider
}

// TestPayments holds a payment provider's port to the contract of order.Payments.
//
//nolint:tparallel // the caller says t.Parallel
func TestPayments(t *testing.T, open func(t *testing.T) PaymentsUnderTest) {
	t.Helper()
	for _, p := range paymentPromises() {
		t.Run(p.says, func(t *testing.T) {
			t.Parallel()
			p.keep(newSale(t, open(t)))
		})
	}
}

func paymentPromises() []paymentPromise {
	return slices.Concat(preparePromises(), confirmPromises(), findPromises(), troublePromises())
}

type paymentPromise struct {
	says string
	keep func(sale)
}

// sale is one order and the provider that is to charge it. It asks for a testing.TB for
// the same reason as trial does.
type sale struct {
	testing.TB
	PaymentsUnderTest

	order order.Order
}

func newSale(tb testing.TB, p PaymentsUnderTest) sale {
	tb.Helper()
	return sale{TB: tb, PaymentsUnderTest: p}.of(Pays)
}

// Fail is the provider's, not the test's.
func (x sale) Fail(c Call, m Fault) { x.PaymentsUnderTest.Fail(c, m) }

// of is a sale to somebody with such a card.
func (x sale) of(c Card) sale { return x.named(string(c), c) }

func (x sale) named(name string, c Card) sale {
	d := Draft(idOf(x.Name() + name))
	d.Payment.Method = x.Method(c)
	x.order = must(order.New(d))
	return x
}

func (x sale) firstKey() order.Key { return order.PrepareKey(x.Scope, x.order.ID()) }

func (x sale) key(attempt int) order.Key { return order.ConfirmKey(x.Scope, x.order.ID(), attempt) }

// prepared is the sale's intent under its first key.
func (x sale) prepared() order.IntentID {
	x.Helper()
	return x.gets(order.NeedsConfirmation)(x.Payments.Prepare(x.Context(), x.order, x.firstKey())).ID
}

func (x sale) confirm(id order.IntentID, attempt int) (order.Intent, error) {
	return x.Payments.Confirm(x.Context(), id, x.key(attempt))
}

func (x sale) read(id order.IntentID) (order.Intent, error) { return x.Payments.Read(x.Context(), id) }

// gets checks that a call brought this sale's intent in that state.
func (x sale) gets(want order.IntentState) func(order.Intent, error) order.Intent {
	return func(i order.Intent, err error) order.Intent {
		x.Helper()
		if err != nil {
			x.Fatalf("got %v, want an intent that is %s", err, want)
		}
		if i.State != want || i.ID == "" {
			x.Fatalf("got intent %q that is %s, want it %s", i.ID, i.State, want)
		}
		if i.Fingerprint != x.order.Fingerprint() || i.Mode != order.TestMode {
			x.Errorf(
				"got fingerprint %q in mode %q, want %q in %q",
				i.Fingerprint,
				i.Mode,
				x.order.Fingerprint(),
				order.TestMode,
			)
		}
		if i.OrderID != x.order.ID() || i.Scope != x.Scope || i.Total != x.order.Total() {
			x.Errorf("got an intent for %s of order %q in %q, want %s, %q, %q",
				i.Total, i.OrderID, i.Scope, x.order.Total(), x.order.ID(), x.Scope)
		}
		return i
	}
}

// fails checks that a call failed with that trouble and told nothing about who pays with
// what.
func (x sale) fails(want order.ErrorKind) func(order.Intent, error) {
	return func(i order.Intent, err error) {
		x.Helper()
		var e *order.PaymentError
		if !errors.As(err, &e) {
			x.Fatalf("got intent %+v and error %v, want a PaymentError %s", i, err, want)
		}
		if e.Kind != want {
			x.Errorf("got trouble %s (%v), want %s", e.Kind, err, want)
		}
		if i != (order.Intent{}) {
			x.Errorf("got an intent with an error: %+v", i)
		}
		for _, secret := range []string{x.order.Payment().Method, x.order.Payment().Customer} {
			if strings.Contains(err.Error(), secret) {
				x.Errorf("the error tells the payment data %q: %v", secret, err)
			}
		}
	}
}

// charged checks the provider's books.
func (x sale) charged(times int) {
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

// dead is a context that ended before the call.
func (x sale) dead() context.Context {
	ctx, cancel := context.WithCancel(x.Context())
	cancel()
	return ctx
}
