package stripe_test

import (
	"context"
	"testing"
	"time"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// gone is how a confirmation comes to be refused for a reason that says nothing about the intent.
func gone() map[string]func(*stripetest.Machine) {
	return map[string]func(*stripetest.Machine){
		"the customer was deleted":        func(m *stripetest.Machine) { m.DeleteCustomer("cus_pretend") },
		"the payment method was detached": func(m *stripetest.Machine) { m.DetachMethod("pm_1") },
	}
}

// TestAConfirmationForSomebodyWhoIsGoneIsRefused is what the port says of it. Only a reading tells what became of the intent.
func TestAConfirmationForSomebodyWhoIsGoneIsRefused(t *testing.T) {
	t.Parallel()
	for claim, leave := range gone() {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s := pretend(t)
			p, o := open(t, s.URL, nil), orderOf(t, "pm_1")
			intent, err := p.Prepare(t.Context(), o, order.PrepareKey(scope, o.ID()))
			if err != nil {
				t.Fatal(err)
			}
			s.Machine(leave)
			got, err := p.Confirm(t.Context(), intent.ID, order.ConfirmKey(scope, o.ID(), 1))
			if kindOf(t, err) != order.Refused || got != (order.Intent{}) {
				t.Errorf("confirm: got %+v, %v, want it refused", got, err)
			}
			if got, err := p.Prepare(t.Context(), o, order.PrepareAgainKey(scope, o.ID(), 1)); kindOf(t, err) != order.Refused {
				t.Errorf("prepare another: got %+v, %v, want it refused", got, err)
			}
			if got, err := p.Read(t.Context(), intent.ID); err != nil || got.State != order.NeedsConfirmation {
				t.Errorf("read: got %+v, %v, want the intent to wait", got, err)
			}
		})
	}
}

// meanwhile lets something happen between an attempt's last look at the intent and its confirmation.
type meanwhile struct {
	order.Payments
	before func()
}

func (m meanwhile) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	m.before()
	return m.Payments.Confirm(ctx, id, k)
}

// TestARefusedConfirmationSettlesWhateverTheIntentShows is a worker whose confirmation is refused, and another one that was there
// before. Every outcome counts, and not a paid intent alone.
func TestARefusedConfirmationSettlesWhateverTheIntentShows(t *testing.T) {
	t.Parallel()
	const refused = order.Status("")
	tests := map[string]struct {
		card   stripetest.Card // of the other worker's confirmation; "" if there was none
		cancel bool
		want   order.Status
		why    string
		charge int
	}{
		"nobody did anything":                   {want: refused},
		"it was paid":                           {card: stripetest.Succeeds, want: order.Paid, charge: 1},
		"it was declined":                       {card: stripetest.LostCard, want: order.Declined, why: "lost_card"},
		"the bank wanted the customer":          {card: stripetest.NeedsCustomer, want: order.ActionRequired, why: "authentication_required"},
		"the bank takes days":                   {card: stripetest.Processing, want: order.Pending},
		"somebody canceled it in the Dashboard": {cancel: true, want: order.Canceled},
	}
	for claim, leave := range gone() {
		for before, tt := range tests {
			t.Run(claim+" after "+before, func(t *testing.T) {
				t.Parallel()
				s := pretend(t)
				s.Machine(func(m *stripetest.Machine) {
					if tt.card != "" {
						m.Card("pm_1", tt.card)
					}
				})
				p, o, store := open(t, s.URL, nil), orderOf(t, "pm_1"), new(ordertest.Memory)
				result := process(t, s, store, o, meanwhile{p, func() {
					if tt.card != "" {
						confirmElsewhere(t, s, p, o)
					}
					s.Machine(func(m *stripetest.Machine) {
						if tt.cancel {
							if err := m.CancelInDashboard(s.Now(), "pi_000001"); err != nil {
								t.Error(err)
							}
						}
						leave(m)
					})
				}})
				wantVerdict, wantReason, wantStatus := order.Done, order.ReasonSettled, tt.want
				if tt.want == refused {
					wantVerdict, wantReason, wantStatus = order.Park, order.ReasonRefused, order.Open
				}
				if result.Verdict != wantVerdict || result.Reason != wantReason || result.Status != wantStatus {
					t.Errorf("got %s, %s, %q (%v), want %s, %s, %q",
						result.Verdict, result.Reason, result.Status, result.Err, wantVerdict, wantReason, wantStatus)
				}
				r, err := store.Load(t.Context(), o.ID())
				if err != nil || r.Status != wantStatus || r.Failure != tt.why || r.Intent != "pi_000001" {
					t.Errorf("the record: got %q, failure %q, intent %q, %v, want %q, failure %q, intent pi_000001",
						r.Status, r.Failure, r.Intent, err, wantStatus, tt.why)
				}
				if got := len(ledger(s, o.ID(), stripetest.Charged)); got != tt.charge {
					t.Errorf("got %d charges, want %d", got, tt.charge)
				}
			})
		}
	}
}

// process is one delivery of an order.
func process(t *testing.T, s *stripetest.Server, store *ordertest.Memory, o order.Order, p order.Payments) order.Result {
	t.Helper()
	worker := order.Processor{Claims: store, Payments: p, Scope: scope, Now: s.Now, ConfirmTime: time.Second}
	return worker.Process(t.Context(), o, s.Now(), order.Lease{Owner: "us", From: s.Now(), Until: s.Now().Add(time.Minute)})
}

// confirmElsewhere is another worker's confirmation of the order's intent.
func confirmElsewhere(t *testing.T, s *stripetest.Server, p *stripe.Payments, o order.Order) {
	t.Helper()
	var id string
	s.Machine(func(m *stripetest.Machine) { id = m.Intents()[0].ID })
	if _, err := p.Confirm(t.Context(), order.IntentID(id), order.ConfirmKey(scope, o.ID(), 99)); err != nil {
		t.Error(err)
	}
}
