package rigtest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// Stripe is a Stripe double whose clock only the test moves, and an order in it.
type Stripe struct {
	*stripetest.Server

	Options  stripe.Options
	Payments *charge.Payments
	Order    order.Order  // that Prepare prepared
	Intent   order.Intent // of the order

	t *testing.T
}

// NewStripe starts a Stripe double, which client calls over HTTP.
func NewStripe(t *testing.T, rules stripetest.Rules) *Stripe {
	t.Helper()
	now := func() time.Time { return time.Unix(1_767_225_600, 0) }
	s, err := stripetest.Serve(stripetest.Options{Rules: rules, Now: now})
	Must(t, err)
	transport := &http.Transport{MaxIdleConnsPerHost: 50}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = s.Close()
	})
	options := stripe.Options{Key: Key, BaseURL: s.URL, Scope: Scope, Transport: transport, Now: s.Now}
	return &Stripe{Server: s, Options: options, Payments: charge.New(options), t: t}
}

// Prepare starts a Stripe double, and prepares an order with a payment method.
func Prepare(t *testing.T, method string) *Stripe {
	t.Helper()
	s := NewStripe(t, stripetest.Rules{})
	s.Order = NewOrder(t, method)
	var err error
	s.Intent, err = s.Payments.Prepare(t.Context(), s.Order, order.PrepareKey(Scope, s.Order.ID()))
	Must(t, err)
	return s
}

// Confirm is an attempt to confirm the intent.
func (s *Stripe) Confirm(attempt int) (order.Intent, error) {
	return s.Payments.Confirm(s.t.Context(), s.Intent.ID, order.ConfirmKey(Scope, s.Order.ID(), attempt))
}

// Read reads the intent.
func (s *Stripe) Read() (order.Intent, error) { return s.Payments.Read(s.t.Context(), s.Intent.ID) }

// Do changes something in the double, as a person or the bank does. An error fails the
// test.
func (s *Stripe) Do(change func(m *stripetest.Machine, now time.Time) error) {
	s.t.Helper()
	s.Machine(func(m *stripetest.Machine) {
		if err := change(m, s.Now()); err != nil {
			s.t.Error(err)
		}
	})
}

// Edit edits the intent in the Dashboard, which clears its last error.
func (s *Stripe) Edit() { s.person((*stripetest.Machine).EditInDashboard)(s.Intent.ID) }

// person returns what a person or the bank does with an intent.
func (s *Stripe) person(do func(*stripetest.Machine, time.Time, string) error) func(order.IntentID) {
	return func(id order.IntentID) {
		s.t.Helper()
		s.Do(func(m *stripetest.Machine, now time.Time) error { return do(m, now, string(id)) })
	}
}

// Refund gives money of an intent back in the Dashboard.
func (s *Stripe) Refund(id order.IntentID, amount int64) {
	s.Do(func(m *stripetest.Machine, now time.Time) error {
		_, err := m.RefundInDashboard(now, string(id), amount)
		return err
	})
}

// Dispute disputes the charge of an intent, and returns the id of the dispute.
func (s *Stripe) Dispute(id order.IntentID) (dispute order.DisputeID) {
	s.Do(func(m *stripetest.Machine, now time.Time) error {
		d, err := m.OpenDispute(now, string(id))
		if err == nil {
			dispute = order.DisputeID(d.ID)
		}
		return err
	})
	return dispute
}

// InProcess executes a request in the double without HTTP.
func (s *Stripe) InProcess(_ context.Context, r stripe.Request) (response stripe.Response, err error) {
	s.Machine(func(m *stripetest.Machine) {
		out := m.Do(s.Now(), stripetest.Request{
			Method: r.Method, Path: r.Path, APIKey: Key, Key: r.Key, Form: r.Params,
		})
		if response = (stripe.Response{Status: out.Status, Header: out.Header(), Body: out.Body()}); out.Lost {
			err = context.DeadlineExceeded
		}
	})
	return response, err
}

// UnderTest returns the double's controls for the contract of payments.
func (s *Stripe) UnderTest() ordertest.PaymentsUnderTest {
	ended := func(id order.ID, outcome stripetest.Outcome) (all []order.Money) {
		s.Machine(func(m *stripetest.Machine) {
			for _, c := range m.Ledger() {
				if c.OrderID == string(id) && c.Scope == string(Scope) && c.Outcome == outcome {
					all = append(all, order.Money{Amount: c.Amount, Currency: order.Currency(c.Currency)})
				}
			}
		})
		return all
	}
	return ordertest.PaymentsUnderTest{
		Payments: s.Payments, Canceler: s.Payments, Scope: Scope, Method: MethodOf,
		Charges:      func(id order.ID) []order.Money { return ended(id, stripetest.Charged) },
		Declines:     func(id order.ID) int { return len(ended(id, stripetest.Declined)) },
		CatchUp:      func() {}, // the double's search does not lag
		Fail:         func(c ordertest.Call, f ordertest.Fault) { s.Fail(FaultOf(c, f)) },
		ForgetKeys:   func() { s.Machine((*stripetest.Machine).ForgetKeys) },
		CustomerPays: s.person((*stripetest.Machine).CustomerPays),
		Clear: s.person(func(m *stripetest.Machine, now time.Time, id string) error {
			return m.Settle(now, id, true)
		}),
		Cancel: s.person((*stripetest.Machine).CancelInDashboard),
	}
}

// MethodOf is the payment method that acts as the card.
func MethodOf(c ordertest.Card) string {
	return map[ordertest.Card]string{
		ordertest.Pays:                "pm_card_visa",
		ordertest.Declines:            "pm_card_chargeDeclinedInsufficientFunds",
		ordertest.NeedsAuthentication: "pm_card_authenticationRequired",
		ordertest.TakesDays:           "pm_usBankAccount_processing",
		ordertest.DoesNotExist:        "pm_card_chargeDeclinedMisspelt",
	}[c]
}

// FaultOf is the fault of the double that acts as a fault of the contract.
func FaultOf(c ordertest.Call, f ordertest.Fault) stripetest.Fault {
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
	return stripetest.Fault{Kind: kind[f], On: on[c]}
}
