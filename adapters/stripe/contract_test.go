package stripe_test

import (
	"net/http"
	"testing"
	"time"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestPayments(t *testing.T) {
	t.Parallel()
	ordertest.TestPayments(t, func(t *testing.T) ordertest.PaymentsUnderTest {
		t.Helper()
		s := newStripe(t)
		return paymentsUnderTest(t, s, newPayments(t, s.URL, nil))
	})
}

// paymentsUnderTest returns the controls of s for the ports of p.
func paymentsUnderTest(t *testing.T, s *stripetest.Server, p *stripe.Payments) ordertest.PaymentsUnderTest {
	t.Helper()
	do := func(act func(m *stripetest.Machine) error) {
		s.Machine(func(m *stripetest.Machine) {
			if err := act(m); err != nil {
				t.Error(err)
			}
		})
	}
	return ordertest.PaymentsUnderTest{
		Payments: p, Canceler: p,
		Scope:  scope,
		Method: methodOf,
		Charges: func(id order.ID) (all []order.Money) {
			for _, c := range ledger(s, id, stripetest.Charged) {
				all = append(all, order.Money{Amount: c.Amount, Currency: order.Currency(c.Currency)})
			}
			return all
		},
		Declines:   func(id order.ID) int { return len(ledger(s, id, stripetest.Declined)) },
		CatchUp:    func() { s.Advance(searchLag) },
		Fail:       func(c ordertest.Call, m ordertest.Fault) { s.Fail(faultOf(c, m)) },
		ForgetKeys: func() { do(func(m *stripetest.Machine) error { m.ForgetKeys(); return nil }) },
		CustomerPays: func(id order.IntentID) {
			do(func(m *stripetest.Machine) error { return m.CustomerPays(s.Now(), string(id)) })
		},
		Clear: func(id order.IntentID) {
			do(func(m *stripetest.Machine) error { return m.Settle(s.Now(), string(id), true) })
		},
		Cancel: func(id order.IntentID) {
			do(func(m *stripetest.Machine) error { return m.CancelInDashboard(s.Now(), string(id)) })
		},
	}
}

// searchLag is how far the search of the Stripe double lags.
const searchLag = time.Minute

// newStripe starts a Stripe double whose clock only the test moves.
func newStripe(t *testing.T) *stripetest.Server {
	t.Helper()
	return newStripeWith(t, stripetest.Rules{Key: testKey, SearchLag: searchLag})
}

func newStripeWith(t *testing.T, rules stripetest.Rules) *stripetest.Server {
	t.Helper()
	now := func() time.Time { return time.Unix(1_767_225_600, 0) }
	s, err := stripetest.Serve(stripetest.Options{Rules: rules, Now: now})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// preparedOrder is an order that a Payments has prepared in a Stripe double.
type preparedOrder struct {
	*stripetest.Server

	t        *testing.T
	payments *stripe.Payments
	order    order.Order
	intent   order.Intent
}

// prepare prepares an order whose payment method acts as the card.
func prepare(t *testing.T, card stripetest.Card) preparedOrder {
	t.Helper()
	return prepareWith(t, testKey, stripetest.Rules{Key: testKey}, card)
}

func prepareWith(t *testing.T, key string, rules stripetest.Rules, card stripetest.Card) preparedOrder {
	t.Helper()
	s := newStripeWith(t, rules)
	s.Machine(func(m *stripetest.Machine) { m.Card("pm_1", card) })
	p := stripe.New(stripe.Options{
		Key: key, BaseURL: s.URL, Scope: scope, Transport: requireKey{t, http.DefaultTransport},
	})
	o := newOrder(t, "pm_1")
	intent, err := p.Prepare(t.Context(), o, order.PrepareKey(scope, o.ID()))
	must(t, err)
	return preparedOrder{s, t, p, o, intent}
}

// confirm is an attempt to confirm the intent.
func (p preparedOrder) confirm(attempt int) (order.Intent, error) {
	return p.payments.Confirm(p.t.Context(), p.intent.ID, order.ConfirmKey(scope, p.order.ID(), attempt))
}

func (p preparedOrder) read() (order.Intent, error) {
	return p.payments.Read(p.t.Context(), p.intent.ID)
}

// edit edits the intent in the Dashboard, which clears its last error.
func (p preparedOrder) edit() {
	p.t.Helper()
	p.Machine(func(m *stripetest.Machine) {
		if err := m.EditInDashboard(p.Now(), string(p.intent.ID)); err != nil {
			p.t.Error(err)
		}
	})
}

func ledger(s *stripetest.Server, id order.ID, outcome stripetest.Outcome) (all []stripetest.Charge) {
	s.Machine(func(m *stripetest.Machine) {
		for _, c := range m.Ledger() {
			if c.OrderID == string(id) && c.Scope == string(scope) && c.Outcome == outcome {
				all = append(all, c)
			}
		}
	})
	return all
}

func methodOf(c ordertest.Card) string {
	switch c {
	case ordertest.Declines:
		return "pm_card_chargeDeclinedInsufficientFunds"
	case ordertest.NeedsAuthentication:
		return "pm_card_authenticationRequired"
	case ordertest.TakesDays:
		return "pm_usBankAccount_processing"
	case ordertest.DoesNotExist:
		return "pm_card_chargeDeclinedMisspelt"
	case ordertest.Pays:
	}
	return "pm_card_visa"
}

func faultOf(c ordertest.Call, m ordertest.Fault) stripetest.Fault {
	on := map[ordertest.Call]stripetest.Endpoint{
		ordertest.Prepare: stripetest.Create, ordertest.Confirm: stripetest.Confirm, ordertest.Read: stripetest.Read,
		ordertest.Find: stripetest.Search, ordertest.Cancel: stripetest.Cancel,
		ordertest.ListDisputes: stripetest.ListDisputes,
	}
	kind := map[ordertest.Fault]stripetest.FaultKind{
		ordertest.ReturnsUnavailable:       stripetest.RateLimited,
		ordertest.ReturnsMisconfigured:     stripetest.Unauthorized,
		ordertest.LosesRequest:             stripetest.LoseRequest,
		ordertest.LosesResponse:            stripetest.LoseResponse,
		ordertest.StoresFailure:            stripetest.ServerErrorBeforeEffect,
		ordertest.StoresFailureAfterEffect: stripetest.ServerErrorAfterEffect,
	}
	return stripetest.Fault{Kind: kind[m], On: on[c]}
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
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			p := prepare(t, stripetest.Succeeds)
			p.Fail(stripetest.Fault{Kind: kind, On: stripetest.Confirm})
			if _, err := p.confirm(1); kindOf(t, err) != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if got, err := p.read(); err != nil || got.State != tt.state {
				t.Errorf("Read: got %v, %v, want it %s", got, err, tt.state)
			}
		})
	}
}

// After a restore from backup an attempt may be counted twice. Its key then replays the
// response from before the customer paid.
func TestAReplayedDeclineDoesNotHideAPayment(t *testing.T) {
	t.Parallel()
	p := prepare(t, stripetest.Declines)
	if got, err := p.confirm(1); err != nil || got.State != order.NeedsMethod {
		t.Fatalf("Confirm: got %v, %v, want it declined", got, err)
	}
	var err error
	p.Machine(func(m *stripetest.Machine) { err = m.CustomerPays(p.Now(), string(p.intent.ID)) })
	must(t, err)
	if got, err := p.confirm(1); err != nil || got.State != order.Succeeded {
		t.Errorf("Confirm again: got %v, %v, want it paid", got, err)
	}
	if got := p.Count(stripetest.Read); got != 1 {
		t.Errorf("got %d reads, want 1", got)
	}
}
