package charge_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/adapters/stripe/stripetest/rigtest"
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
		"the payment method was detached": {cause: func(m *stripetest.Machine) { m.DetachMethod("pm_1") }, code: ""},
	}
}

// The refusal does not show the intent's status. Only Read does.
func TestConfirmIsRefusedIfTheCustomerOrMethodIsGone(t *testing.T) {
	t.Parallel()
	for claim, refused := range refusals() {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			p := rigtest.Prepare(t, stripetest.Succeeds)
			p.Machine(refused.cause)
			got, err := p.Confirm(1)
			if rigtest.KindOf(t, err) != order.KindRefused || got != (order.Intent{}) {
				t.Errorf("Confirm: got %+v, %v, want %s", got, err, order.KindRefused)
			}
			if got := rigtest.PaymentError(t, err).Code; got != refused.code {
				t.Errorf("Confirm: got code %q, want %q", got, refused.code)
			}
			got, err = p.Payments.Prepare(t.Context(), p.Order, order.PrepareAgainKey(rigtest.Scope, p.Order.ID(), 1))
			if rigtest.KindOf(t, err) != order.KindRefused {
				t.Errorf("Prepare another: got %+v, %v, want %s", got, err, order.KindRefused)
			}
			if got, err := p.Read(); err != nil || got.State != order.NeedsConfirmation {
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

// settlement is the result of one delivery, and what the books hold afterwards.
type settlement struct {
	verdict order.Verdict
	reason  order.Reason
	status  order.Status
	failure string
	charges int
}

// Another worker may have confirmed the intent before Stripe refuses this worker's
// confirmation. Every outcome of the intent settles the order, not only a payment.
// Without an outcome, the order is parked with Stripe's code.
func TestARefusedConfirmationSettlesAsTheIntentShows(t *testing.T) {
	t.Parallel()
	for claim, refused := range refusals() {
		for before, tt := range map[string]struct {
			card   stripetest.Card // for the other worker's confirmation; "" if there is none
			cancel bool
			want   settlement
		}{
			"a payment": {card: stripetest.Succeeds, want: settlement{order.Done, order.ReasonSettled, order.Paid, "", 1}},
			"a decline": {
				card: stripetest.LostCard, want: settlement{order.Done, order.ReasonSettled, order.Declined, "lost_card", 0},
			},
			"an authentication request": {
				card: stripetest.NeedsCustomer,
				want: settlement{order.Done, order.ReasonSettled, order.ActionRequired, "authentication_required", 0},
			},
			"a payment that takes days": {
				card: stripetest.Processing, want: settlement{order.Done, order.ReasonSettled, order.Pending, "", 0},
			},
			"a cancellation in the Dashboard": {
				cancel: true, want: settlement{order.Done, order.ReasonSettled, order.Canceled, "", 0},
			},
			"nothing": {
				want: settlement{order.Park, order.ReasonRefused, order.Refused, cmp.Or(refused.code, "unexplained"), 0},
			},
		} {
			t.Run(claim+" after "+before, func(t *testing.T) {
				t.Parallel()
				s := rigtest.NewStripe(t)
				s.Machine(func(m *stripetest.Machine) { m.Card("pm_1", cmp.Or(tt.card, stripetest.Succeeds)) })
				p, o, store := charge.New(rigtest.Options(t, s.URL, nil)), rigtest.NewOrder(t, "pm_1"), new(ordertest.Memory)
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
				r, err := store.Load(t.Context(), o.ID())
				if err != nil || r.Intent != "pi_000001" || result.Verdict == order.Done && result.Status != r.Status {
					t.Errorf("got record %+v, %v, want it bound to pi_000001, with the status of %+v", r, err, result)
				}
				charges := len(rigtest.Ledger(s, o.ID(), stripetest.Charged))
				got := settlement{result.Verdict, result.Reason, r.Status, r.Failure, charges}
				if got != tt.want {
					t.Errorf("got %+v (%v), want %+v", got, result.Err, tt.want)
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
	processor := order.Processor{Claims: store, Payments: p, Scope: rigtest.Scope, Now: s.Now, ConfirmTime: time.Second}
	lease := order.Lease{Owner: "A", From: s.Now(), Until: s.Now().Add(time.Minute)}
	return processor.Process(t.Context(), o, s.Now(), lease)
}

// confirmElsewhere confirms the order's intent as another worker does.
func confirmElsewhere(t *testing.T, s *stripetest.Server, p *charge.Payments, o order.Order) {
	t.Helper()
	var id string
	s.Machine(func(m *stripetest.Machine) { id = m.Intents()[0].ID })
	if _, err := p.Confirm(t.Context(), order.IntentID(id), order.ConfirmKey(rigtest.Scope, o.ID(), 99)); err != nil {
		t.Error(err)
	}
}
