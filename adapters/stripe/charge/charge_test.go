package charge_test

import (
	"testing"

	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestPayments(t *testing.T) {
	t.Parallel()
	ordertest.TestPayments(t, func(t *testing.T) ordertest.PaymentsUnderTest {
		t.Helper()
		s := rigtest.NewStripe(t)
		return rigtest.UnderTest(t, s, charge.New(rigtest.Options(t, s.URL, nil)))
	})
}

// TestFaultsOfStripe covers the faults that the contract does not name.
func TestFaultsOfStripe(t *testing.T) {
	t.Parallel()
	for kind, tt := range map[stripetest.FaultKind]struct {
		want  order.ErrorKind
		state order.IntentState
	}{
		stripetest.LockTimeout: {order.KindUnavailable, order.NeedsConfirmation},
		stripetest.KeyInUse:    {order.KindUnavailable, order.NeedsConfirmation},
		stripetest.Unavailable: {order.KindUnavailable, order.NeedsConfirmation},
		stripetest.Forbidden:   {order.KindMisconfigured, order.NeedsConfirmation},
		stripetest.Garbage:     {order.KindUnknown, order.Succeeded},
	} {
		p := rigtest.Prepare(t, stripetest.Succeeds)
		p.Fail(stripetest.Fault{Kind: kind, On: stripetest.Confirm})
		if _, err := p.Confirm(1); rigtest.KindOf(t, err) != tt.want {
			t.Errorf("%s: got %v, want %s", kind, err, tt.want)
		}
		if got, err := p.Read(); err != nil || got.State != tt.state {
			t.Errorf("%s: Read: got %v, %v, want it %s", kind, got, err, tt.state)
		}
	}
}

// After a restore from backup an attempt may be counted twice. Its key then replays the
// response from before the customer paid.
func TestAReplayedDeclineDoesNotHideAPayment(t *testing.T) {
	t.Parallel()
	p := rigtest.Prepare(t, stripetest.Declines)
	if got, err := p.Confirm(1); err != nil || got.State != order.NeedsMethod {
		t.Fatalf("Confirm: got %v, %v, want it declined", got, err)
	}
	var err error
	p.Machine(func(m *stripetest.Machine) { err = m.CustomerPays(p.Now(), string(p.Intent.ID)) })
	rigtest.Must(t, err)
	if got, err := p.Confirm(1); err != nil || got.State != order.Succeeded {
		t.Errorf("Confirm again: got %v, %v, want it paid", got, err)
	}
	if got := p.Count(stripetest.Read); got != 1 {
		t.Errorf("got %d reads, want 1", got)
	}
}

// The refusal does not show the intent's status. Only Read does.
func TestConfirmIsRefusedIfTheCustomerOrMethodIsGone(t *testing.T) {
	t.Parallel()
	for code, remove := range map[string]func(*stripetest.Machine){
		"resource_missing": func(m *stripetest.Machine) { m.DeleteCustomer("cus_pretend") },
		"":                 func(m *stripetest.Machine) { m.DetachMethod("pm_1") },
	} {
		p := rigtest.Prepare(t, stripetest.Succeeds)
		p.Machine(remove)
		got, err := p.Confirm(1)
		if rigtest.KindOf(t, err) != order.KindRefused || got != (order.Intent{}) || rigtest.PaymentError(t, err).Code != code {
			t.Errorf("Confirm: got %+v, %v, want %s with code %q", got, err, order.KindRefused, code)
		}
		got, err = p.Payments.Prepare(t.Context(), p.Order, order.PrepareAgainKey(rigtest.Scope, p.Order.ID(), 1))
		if rigtest.KindOf(t, err) != order.KindRefused {
			t.Errorf("Prepare another: got %+v, %v, want %s", got, err, order.KindRefused)
		}
		if got, err := p.Read(); err != nil || got.State != order.NeedsConfirmation {
			t.Errorf("Read: got %+v, %v, want %s", got, err, order.NeedsConfirmation)
		}
	}
}
