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

// refusals are the ways to make Stripe refuse a confirmation without showing the intent.
func refusals() map[string]func(*stripetest.Machine) {
	return map[string]func(*stripetest.Machine){
		"the customer was deleted":        func(m *stripetest.Machine) { m.DeleteCustomer("cus_pretend") },
		"the payment method was detached": func(m *stripetest.Machine) { m.DetachMethod("pm_1") },
	}
}

// The refusal does not show the intent's status. Only Read does.
func TestConfirmIsRefusedIfTheCustomerOrMethodIsGone(t *testing.T) {
	t.Parallel()
	for claim, refuse := range refusals() {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s := newStripe(t)
			p, o := newPayments(t, s.URL, nil), newOrder(t, "pm_1")
			intent, err := p.Prepare(t.Context(), o, order.PrepareKey(scope, o.ID()))
			if err != nil {
				t.Fatal(err)
			}
			s.Machine(refuse)
			got, err := p.Confirm(t.Context(), intent.ID, order.ConfirmKey(scope, o.ID(), 1))
			if kindOf(t, err) != order.Refused || got != (order.Intent{}) {
				t.Errorf("Confirm: got %+v, %v, want %s", got, err, order.Refused)
			}
			got, err = p.Prepare(t.Context(), o, order.PrepareAgainKey(scope, o.ID(), 1))
			if kindOf(t, err) != order.Refused {
				t.Errorf("Prepare another: got %+v, %v, want %s", got, err, order.Refused)
			}
			if got, err := p.Read(t.Context(), intent.ID); err != nil || got.State != order.NeedsConfirmation {
				t.Errorf("Read: got %+v, %v, want %s", got, err, order.NeedsConfirmation)
			}
		})
	}
}

// beforeConfirm calls before between an attempt's last read of the intent and its
// confirmation.
type beforeConfirm struct {
	order.Payments
	before func()
}

func (m beforeConfirm) Confirm(ctx context.Context, id order.IntentID, k order.Key) (order.Intent, error) {
	m.before()
	return m.Payments.Confirm(ctx, id, k)
}

// Another worker may have confirmed the intent before Stripe refuses this worker's
// confirmation. Every outcome of the intent settles the order, not only a payment.
func TestARefusedConfirmationSettlesAsTheIntentShows(t *testing.T) {
	t.Parallel()
	const refused = order.Status("")
	tests := map[string]struct {
		card    stripetest.Card // for the other worker's confirmation; "" if there is none
		cancel  bool
		want    order.Status
		failure string
		charges int
	}{
		"no other call": {want: refused},
		"a payment":     {card: stripetest.Succeeds, want: order.Paid, charges: 1},
		"a decline": {
			card: stripetest.LostCard, want: order.Declined, failure: "lost_card",
		},
		"an authentication request": {
			card: stripetest.NeedsCustomer, want: order.ActionRequired, failure: "authentication_required",
		},
		"a payment that takes days":       {card: stripetest.Processing, want: order.Pending},
		"a cancellation in the Dashboard": {cancel: true, want: order.Canceled},
	}
	for claim, refuse := range refusals() {
		for before, tt := range tests {
			t.Run(claim+" after "+before, func(t *testing.T) {
				t.Parallel()
				s := newStripe(t)
				s.Machine(func(m *stripetest.Machine) {
					if tt.card != "" {
						m.Card("pm_1", tt.card)
					}
				})
				p, o, store := newPayments(t, s.URL, nil), newOrder(t, "pm_1"), new(ordertest.Memory)
				result := process(t, s, store, o, beforeConfirm{p, func() {
					if tt.card != "" {
						confirmElsewhere(t, s, p, o)
					}
					s.Machine(func(m *stripetest.Machine) {
						if tt.cancel {
							if err := m.CancelInDashboard(s.Now(), "pi_000001"); err != nil {
								t.Error(err)
							}
						}
						refuse(m)
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
				if err != nil || r.Status != wantStatus || r.Failure != tt.failure || r.Intent != "pi_000001" {
					t.Errorf("record: got %q, failure %q, intent %q, %v, want %q, failure %q, intent pi_000001",
						r.Status, r.Failure, r.Intent, err, wantStatus, tt.failure)
				}
				if got := len(ledger(s, o.ID(), stripetest.Charged)); got != tt.charges {
					t.Errorf("got %d charges, want %d", got, tt.charges)
				}
			})
		}
	}
}

// process handles one delivery of an order.
func process(
	t *testing.T, s *stripetest.Server, store *ordertest.Memory, o order.Order, p order.Payments,
) order.Result {
	t.Helper()
	processor := order.Processor{Claims: store, Payments: p, Scope: scope, Now: s.Now, ConfirmTime: time.Second}
	lease := order.Lease{Owner: "A", From: s.Now(), Until: s.Now().Add(time.Minute)}
	return processor.Process(t.Context(), o, s.Now(), lease)
}

// confirmElsewhere confirms the order's intent as another worker does.
func confirmElsewhere(t *testing.T, s *stripetest.Server, p *stripe.Payments, o order.Order) {
	t.Helper()
	var id string
	s.Machine(func(m *stripetest.Machine) { id = m.Intents()[0].ID })
	if _, err := p.Confirm(t.Context(), order.IntentID(id), order.ConfirmKey(scope, o.ID(), 99)); err != nil {
		t.Error(err)
	}
}
