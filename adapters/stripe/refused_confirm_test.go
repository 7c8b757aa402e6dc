package stripe_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// refusal is a way to make Stripe refuse a confirmation without showing the intent.
type refusal struct {
	cause func(*stripetest.Machine)
	code  string // of Stripe's error
}

func refusals() map[string]refusal {
	return map[string]refusal{
		"the customer was deleted": {
			cause: func(m *stripetest.Machine) { m.DeleteCustomer("cus_pretend") }, code: "resource_missing",
		},
		"the payment method was detached": {
			cause: func(m *stripetest.Machine) { m.DetachMethod("pm_1") }, code: "",
		},
	}
}

// The refusal does not show the intent's status. Only Read does.
func TestConfirmIsRefusedIfTheCustomerOrMethodIsGone(t *testing.T) {
	t.Parallel()
	for claim, refused := range refusals() {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s := newStripe(t)
			p, o := newPayments(t, s.URL, nil), newOrder(t, "pm_1")
			intent, err := p.Prepare(t.Context(), o, order.PrepareKey(scope, o.ID()))
			if err != nil {
				t.Fatal(err)
			}
			s.Machine(refused.cause)
			got, err := p.Confirm(t.Context(), intent.ID, order.ConfirmKey(scope, o.ID(), 1))
			if kindOf(t, err) != order.KindRefused || got != (order.Intent{}) {
				t.Errorf("Confirm: got %+v, %v, want %s", got, err, order.KindRefused)
			}
			if got := codeOf(t, err); got != refused.code {
				t.Errorf("Confirm: got code %q, want %q", got, refused.code)
			}
			got, err = p.Prepare(t.Context(), o, order.PrepareAgainKey(scope, o.ID(), 1))
			if kindOf(t, err) != order.KindRefused {
				t.Errorf("Prepare another: got %+v, %v, want %s", got, err, order.KindRefused)
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
	tests := map[string]struct {
		card    stripetest.Card // for the other worker's confirmation; "" if there is none
		cancel  bool
		want    order.Status
		failure string
		charges int
	}{
		"a payment": {card: stripetest.Succeeds, want: order.Paid, charges: 1},
		"a decline": {card: stripetest.LostCard, want: order.Declined, failure: "lost_card"},
		"an authentication request": {
			card: stripetest.NeedsCustomer, want: order.ActionRequired, failure: "authentication_required",
		},
		"a payment that takes days":       {card: stripetest.Processing, want: order.Pending},
		"a cancellation in the Dashboard": {cancel: true, want: order.Canceled},
	}
	for claim, refused := range refusals() {
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
						refused.cause(m)
					})
				}})
				if result.Verdict != order.Done || result.Reason != order.ReasonSettled || result.Status != tt.want {
					t.Errorf("got %s, %s, %q (%v), want %s, %s, %q", result.Verdict, result.Reason, result.Status,
						result.Err, order.Done, order.ReasonSettled, tt.want)
				}
				r, err := store.Load(t.Context(), o.ID())
				if err != nil || r.Status != tt.want || r.Failure != tt.failure || r.Intent != "pi_000001" {
					t.Errorf("record: got %q, failure %q, intent %q, %v, want %q, failure %q, intent pi_000001",
						r.Status, r.Failure, r.Intent, err, tt.want, tt.failure)
				}
				if got := len(ledger(s, o.ID(), stripetest.Charged)); got != tt.charges {
					t.Errorf("got %d charges, want %d", got, tt.charges)
				}
			})
		}
	}
}

func TestARefusedConfirmationIsRecordedWithStripesCode(t *testing.T) {
	t.Parallel()
	for claim, refused := range refusals() {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s := newStripe(t)
			p, o, store := newPayments(t, s.URL, nil), newOrder(t, "pm_1"), new(ordertest.Memory)
			result := process(t, s, store, o, beforeConfirm{p, func() { s.Machine(refused.cause) }})
			if result.Verdict != order.Park || result.Reason != order.ReasonRefused {
				t.Errorf("got %s, %s (%v), want %s, %s",
					result.Verdict, result.Reason, result.Err, order.Park, order.ReasonRefused)
			}
			want := cmp.Or(refused.code, "unexplained")
			r, err := store.Load(t.Context(), o.ID())
			if err != nil || r.Status != order.Refused || r.Failure != want || r.Intent != "pi_000001" {
				t.Errorf("record: got %q, failure %q, intent %q, %v, want %q, failure %q, intent pi_000001",
					r.Status, r.Failure, r.Intent, err, order.Refused, want)
			}
			if got := ledger(s, o.ID(), stripetest.Charged); len(got) != 0 {
				t.Errorf("got charges %v, want none", got)
			}
		})
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
