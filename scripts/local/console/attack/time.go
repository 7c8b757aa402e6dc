package attack

import (
	"context"
	"time"

	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/local/console"
)

const day = 24 * time.Hour

// jump moves the clocks of the queue and of Stripe, and then lets the function of the
// schedule look at every order that waits, as it would have in that time.
func (d *Desk) jump(ctx context.Context, t time.Duration) error {
	s := d.target()
	s.Advance(t)
	now := s.Stripe.Now()
	s.Stripe.Machine(func(m *stripetest.Machine) { m.PruneKeys(now) })
	return s.Look(ctx)
}

func (d *Desk) jumpDay(ctx context.Context) (console.Result, error) {
	const text = "25 hours have passed for the queue and for Stripe, which forgot its idempotency keys"
	return console.Result{Text: text}, d.jump(ctx, keysExpire)
}

// jumpWeeks moves the clocks in steps, each after the queue had time to deliver: a
// message that waits for weeks is delivered or parked before its queue forgets it.
func (d *Desk) jumpWeeks(ctx context.Context) (console.Result, error) {
	const steps = 4
	for range steps {
		if err := d.settle(ctx, 2*Visibility); err != nil {
			return console.Result{}, err
		}
		if err := d.jump(ctx, 20*day/steps); err != nil {
			return console.Result{}, err
		}
	}
	return console.Result{Text: "20 days have passed for the queues and for Stripe"}, nil
}

// settle waits until the order queue is empty, or for a time.
func (d *Desk) settle(ctx context.Context, limit time.Duration) error {
	s := d.target()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := s.Drained(ctx)
	if ctx.Err() != nil { // what still waits is delivered after the jump
		return nil
	}
	return err
}
