package stripe_test

import (
	"testing"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestPayments(t *testing.T) {
	t.Parallel()
	ordertest.TestPayments(t, func(t *testing.T) ordertest.PaymentsUnderTest {
		t.Helper()
		s := newStripe(t)
		do := func(act func(m *stripetest.Machine) error) {
			s.Machine(func(m *stripetest.Machine) {
				if err := act(m); err != nil {
					t.Error(err)
				}
			})
		}
		return ordertest.PaymentsUnderTest{
			Payments: newPayments(t, s.URL, nil),
			Scope:    scope,
			Method:   methodOf,
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
	})
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
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
		ordertest.Find: stripetest.Search,
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
	tests := map[stripetest.FaultKind]struct {
		want order.ErrorKind
		paid bool
	}{
		stripetest.LockTimeout: {order.KindUnavailable, false},
		stripetest.KeyInUse:    {order.KindUnavailable, false},
		stripetest.Unavailable: {order.KindUnavailable, false},
		stripetest.Forbidden:   {order.KindMisconfigured, false},
		stripetest.Garbage:     {order.KindUnknown, true},
	}
	for kind, tt := range tests {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := newStripe(t)
			p, ctx, o := newPayments(t, s.URL, nil), t.Context(), newOrder(t, "pm_card_visa")
			intent, err := p.Prepare(ctx, o, order.PrepareKey(scope, o.ID()))
			if err != nil {
				t.Fatal(err)
			}
			s.Fail(stripetest.Fault{Kind: kind, On: stripetest.Confirm})
			if _, err := p.Confirm(ctx, intent.ID, order.ConfirmKey(scope, o.ID(), 1)); kindOf(t, err) != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			intent, err = p.Read(ctx, intent.ID)
			if paid := intent.State == order.Succeeded; err != nil || paid != tt.paid {
				t.Errorf("Read: got %v, %v, want it paid: %t", intent, err, tt.paid)
			}
		})
	}
}

// After a restore from backup an attempt may be counted twice. Its key then replays the
// response from before the customer paid.
func TestAReplayedDeclineDoesNotHideAPayment(t *testing.T) {
	t.Parallel()
	s := newStripe(t)
	p, ctx, o := newPayments(t, s.URL, nil), t.Context(), newOrder(t, "pm_card_chargeDeclined")
	key := order.ConfirmKey(scope, o.ID(), 1)
	intent, err := p.Prepare(ctx, o, order.PrepareKey(scope, o.ID()))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Confirm(ctx, intent.ID, key); err != nil || got.State != order.NeedsMethod {
		t.Fatalf("Confirm: got %v, %v, want it declined", got, err)
	}
	s.Machine(func(m *stripetest.Machine) { err = m.CustomerPays(s.Now(), string(intent.ID)) })
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Confirm(ctx, intent.ID, key); err != nil || got.State != order.Succeeded {
		t.Errorf("Confirm again: got %v, %v, want it paid", got, err)
	}
	if got := s.Count(stripetest.Read); got != 1 {
		t.Errorf("read %d times, want once", got)
	}
}

// The attempt whose card was declined may crash before it records the decline. The next
// attempt reads the decline from the intent.
func TestReadShowsADecline(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		card    stripetest.Card
		cleared bool
		why     string
	}{
		"by its code":                   {card: stripetest.LostCard, why: "lost_card"},
		"by its type if it has no code": {card: stripetest.DeclinesUncoded, why: "card_error"},
		"by its charge if the error is cleared": {
			card: stripetest.LostCard, cleared: true, why: "lost_card",
		},
		"as unexplained if neither has any reason": {
			card: stripetest.DeclinesUncoded, cleared: true, why: "unexplained",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s := newStripe(t)
			s.Machine(func(m *stripetest.Machine) { m.Card("pm_card_visa", tt.card) })
			p, ctx, o := newPayments(t, s.URL, nil), t.Context(), newOrder(t, "pm_card_visa")
			intent, err := p.Prepare(ctx, o, order.PrepareKey(scope, o.ID()))
			if err != nil {
				t.Fatal(err)
			}
			if _, settled := order.OutcomeOf(intent); settled {
				t.Fatalf("got %v, want no outcome before Confirm", intent)
			}
			if _, err := p.Confirm(ctx, intent.ID, order.ConfirmKey(scope, o.ID(), 1)); err != nil {
				t.Fatal(err)
			}
			if tt.cleared {
				s.Machine(func(m *stripetest.Machine) { err = m.EditInDashboard(s.Now(), string(intent.ID)) })
			}
			if err != nil {
				t.Fatal(err)
			}
			want := order.Outcome{Status: order.Declined, Intent: intent.ID, Failure: tt.why}
			intent, err = p.Read(ctx, intent.ID)
			if got, settled := order.OutcomeOf(intent); err != nil || !settled || got != want {
				t.Errorf("got %v, %v, want %v", got, err, want)
			}
		})
	}
}
