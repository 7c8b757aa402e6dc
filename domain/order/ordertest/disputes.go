package ordertest

import (
	"errors"
	"slices"
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/settle"
)

// ListDisputes is the call to settle.Disputes.
const ListDisputes Call = "disputes"

// DisputesUnderTest is settle.Disputes and controls of the provider behind it.
type DisputesUnderTest struct {
	PaymentsUnderTest

	Disputes settle.Disputes
	// Dispute disputes the charge of a paid intent, as its customer can, later than any
	// earlier dispute.
	Dispute func(order.IntentID) order.DisputeID
	// Close ends an open dispute, as the bank does.
	Close func(order.DisputeID, order.DisputeStatus)
}

// TestDisputes tests the contract of settle.Disputes.
func TestDisputes(t *testing.T, open func(t *testing.T) DisputesUnderTest) {
	t.Helper()
	for name, test := range map[string]func(disputesTest){
		"an intent has the disputes of its charge, as the bank decides them": disputesTest.story,
		"a failed call returns no disputes":                                  disputesTest.fails,
		"disputes of an unknown intent are Misconfigured":                    disputesTest.unknown,
	} {
		t.Run(name, func(t *testing.T) {
			u := open(t)
			test(disputesTest{paymentsTest: newPaymentsTest(t, u.PaymentsUnderTest), DisputesUnderTest: u}.pay(""))
		})
	}
}

// disputesTest is one paid order and the provider under test.
type disputesTest struct {
	paymentsTest
	DisputesUnderTest
}

// pay returns the test of another order, which is paid.
func (x disputesTest) pay(name string) disputesTest {
	x.Helper()
	x.paymentsTest = x.withOrder(name, Pays)
	prepare(0, order.NeedsConfirmation)(&x.paymentsTest)
	confirm(1, order.Succeeded)(&x.paymentsTest)
	return x
}

// want checks the ids and statuses of the intent's disputes, newest first, and their
// times.
func (x disputesTest) want(want ...order.Dispute) {
	x.Helper()
	got, err := x.Disputes.Disputes(x.Context(), x.intent)
	slices.SortFunc(got, func(a, b order.Dispute) int { return b.CreatedAt.Compare(a.CreatedAt) })
	if err != nil || !slices.EqualFunc(got, want, order.Dispute.Is) {
		x.Fatalf("got disputes %v, error %v, want %v", got, err, want)
	}
	for _, d := range got {
		if d.CreatedAt.IsZero() {
			x.Errorf("got dispute %+v, want one with a time", d)
		}
	}
}

func (x disputesTest) story() {
	x.want()
	first := x.Dispute(x.intent)
	x.want(order.Dispute{ID: first, Status: order.DisputeOpen})
	x.Close(first, order.DisputeWon)
	x.want(order.Dispute{ID: first, Status: order.DisputeWon})
	other := x.pay("other")
	theirs := other.Dispute(other.intent)
	second := x.Dispute(x.intent)
	x.Close(second, order.DisputeLost)
	x.want(
		order.Dispute{ID: second, Status: order.DisputeLost}, order.Dispute{ID: first, Status: order.DisputeWon},
	)
	other.want(order.Dispute{ID: theirs, Status: order.DisputeOpen})
}

// wantDisputeFailure checks that the disputes of an intent are an error of this kind.
func (x disputesTest) wantDisputeFailure(id order.IntentID, want order.ErrorKind) *order.PaymentError {
	x.Helper()
	got, err := x.Disputes.Disputes(x.Context(), id)
	var e *order.PaymentError
	if !errors.As(err, &e) || e.Kind != want || len(got) > 0 {
		x.Fatalf("got disputes %v, error %v, want a PaymentError of kind %s", got, err, want)
	}
	return e
}

func (x disputesTest) fails() {
	x.Dispute(x.intent)
	for _, fault := range []Fault{ReturnsUnavailable, ReturnsMisconfigured, LosesRequest, LosesResponse} {
		x.Fail(ListDisputes, fault)
		e := x.wantDisputeFailure(x.intent, fault.Kind())
		if (e.RequestID == "") != fault.Lost() {
			x.Errorf("%s: got request id %q, want one if and only if the provider responded", fault, e.RequestID)
		}
	}
}

func (x disputesTest) unknown() {
	for _, id := range []order.IntentID{"pi_unknown", "", "pi_1/cancel"} {
		_ = x.wantDisputeFailure(id, order.KindMisconfigured)
	}
}
