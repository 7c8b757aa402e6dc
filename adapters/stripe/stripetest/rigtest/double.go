package rigtest

import (
	"net/http"
	"testing"
	"time"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// UnderTest returns the controls of s for the ports of p.
func UnderTest(t *testing.T, s *stripetest.Server, p *charge.Payments) ordertest.PaymentsUnderTest {
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
		Scope:  Scope,
		Method: MethodOf,
		Charges: func(id order.ID) (all []order.Money) {
			for _, c := range Ledger(s, id, stripetest.Charged) {
				all = append(all, order.Money{Amount: c.Amount, Currency: order.Currency(c.Currency)})
			}
			return all
		},
		Declines:   func(id order.ID) int { return len(Ledger(s, id, stripetest.Declined)) },
		CatchUp:    func() { s.Advance(SearchLag) },
		Fail:       func(c ordertest.Call, m ordertest.Fault) { s.Fail(FaultOf(c, m)) },
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

// SearchLag is how far the search of the Stripe double lags.
const SearchLag = time.Minute

// NewStripe starts a Stripe double whose clock only the test moves.
func NewStripe(t *testing.T) *stripetest.Server {
	t.Helper()
	return NewStripeWith(t, stripetest.Rules{Key: Key, SearchLag: SearchLag})
}

// NewStripeWith starts one with other rules.
func NewStripeWith(t *testing.T, rules stripetest.Rules) *stripetest.Server {
	t.Helper()
	now := func() time.Time { return time.Unix(1_767_225_600, 0) }
	s, err := stripetest.Serve(stripetest.Options{Rules: rules, Now: now})
	Must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Prepared is an order that a Payments has prepared in a Stripe double.
type Prepared struct {
	*stripetest.Server

	Options  stripe.Options
	Payments *charge.Payments
	Order    order.Order
	Intent   order.Intent

	t *testing.T
}

// Prepare prepares an order whose payment method acts as the card.
func Prepare(t *testing.T, card stripetest.Card) Prepared {
	t.Helper()
	return PrepareWith(t, Key, stripetest.Rules{Key: Key}, card)
}

// PrepareWith prepares an order under a key and rules.
func PrepareWith(t *testing.T, key string, rules stripetest.Rules, card stripetest.Card) Prepared {
	t.Helper()
	s := NewStripeWith(t, rules)
	s.Machine(func(m *stripetest.Machine) { m.Card("pm_1", card) })
	options := stripe.Options{
		Key: key, BaseURL: s.URL, Scope: Scope, Transport: RequireKey{t, http.DefaultTransport}, Now: s.Now,
	}
	p := charge.New(options)
	o := NewOrder(t, "pm_1")
	intent, err := p.Prepare(t.Context(), o, order.PrepareKey(Scope, o.ID()))
	Must(t, err)
	return Prepared{s, options, p, o, intent, t}
}

// Confirm is an attempt to confirm the intent.
func (p Prepared) Confirm(attempt int) (order.Intent, error) {
	return p.Payments.Confirm(p.t.Context(), p.Intent.ID, order.ConfirmKey(Scope, p.Order.ID(), attempt))
}

// Read reads the intent.
func (p Prepared) Read() (order.Intent, error) {
	return p.Payments.Read(p.t.Context(), p.Intent.ID)
}

// Edit edits the intent in the Dashboard, which clears its last error.
func (p Prepared) Edit() {
	p.t.Helper()
	p.Machine(func(m *stripetest.Machine) {
		if err := m.EditInDashboard(p.Now(), string(p.Intent.ID)); err != nil {
			p.t.Error(err)
		}
	})
}

// Ledger returns the charges of an order that ended so.
func Ledger(s *stripetest.Server, id order.ID, outcome stripetest.Outcome) (all []stripetest.Charge) {
	s.Machine(func(m *stripetest.Machine) {
		for _, c := range m.Ledger() {
			if c.OrderID == string(id) && c.Scope == string(Scope) && c.Outcome == outcome {
				all = append(all, c)
			}
		}
	})
	return all
}

// MethodOf is the payment method that acts as the card.
func MethodOf(c ordertest.Card) string {
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

// FaultOf is the fault of the double that acts as a fault of the contract.
func FaultOf(c ordertest.Call, m ordertest.Fault) stripetest.Fault {
	on := map[ordertest.Call]stripetest.Endpoint{
		ordertest.Prepare: stripetest.Create, ordertest.Confirm: stripetest.Confirm,
		ordertest.Read: stripetest.Read, ordertest.Find: stripetest.Search, ordertest.Cancel: stripetest.Cancel,
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
