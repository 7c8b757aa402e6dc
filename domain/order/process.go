package order

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// Processor carries orders from claimed to settled. It holds no state of its own: two of them, in two processes,
// on two releases, may be given the same order at the same instant.
type Processor struct {
	Claims   Claims
	Payments Payments
	Scope    Scope
	Now      func() time.Time
	// ConfirmTime is how long one Confirm may take, together with all that follows it within the lease: Finish, and the
	// answer to the queue. None is started with less time left, because its answer would come to a worker that has nothing
	// left to do with it.
	ConfirmTime time.Duration
}

var (
	errOutOfTime   = errors.New("too little of the lease is left to confirm")
	errUnconfirmed = errors.New("the intent still waits for confirmation")
)

// Process claims the order, charges it and settles it, or finds that somebody did.
//
// Money moves only by confirming the intent that is bound to the record. It is bound once, by a conditional write,
// and an intent succeeds once, for ever. No clock, no key's life and no lease is in that argument.
func (p *Processor) Process(ctx context.Context, o Order, l Lease) Result {
	claim, err := p.Claims.Begin(ctx, o, l)
	if err != nil {
		return conclude(err)
	}
	takeover := claim.Intent != ""
	outcome, err := p.charge(ctx, &claim)
	if err == nil {
		err = p.Claims.Finish(ctx, claim, outcome, p.Now())
	}
	r := conclude(err)
	r.Attempt, r.Takeover, r.Intent = claim.Attempt, takeover, cmp.Or(claim.Intent, r.Intent)
	if r.Verdict == Done {
		r.Status = outcome.Status
		return r
	}
	r.Status = Open
	if errors.Is(err, ErrFenced) {
		return r
	}
	// Letting go is a courtesy to the next attempt, which would otherwise wait for the lease to end. But to park is for
	// whoever holds the order alone, and only a release that went through proves that: a worker that was frozen may have
	// seen what others left behind when they settled it.
	released := p.Claims.Release(ctx, claim, r.Reason, p.Now())
	if r.Verdict == Park && released != nil {
		instead := conclude(released)
		r.Verdict, r.Reason, r.Patient = instead.Verdict, instead.Reason, instead.Patient
	}
	r.Err = errors.Join(r.Err, released)
	return r
}

// charge finds or makes the order's one intent, notes it in the claim and brings it to an outcome.
func (p *Processor) charge(ctx context.Context, c *Claim) (Outcome, error) {
	intent, err := p.boundIntent(ctx, c)
	if err != nil {
		return Outcome{}, err
	}
	if outcome, settled := OutcomeOf(intent); settled {
		return outcome, nil
	}
	if p.Now().Add(p.ConfirmTime).After(c.Lease.Until) {
		return Outcome{}, errOutOfTime
	}
	intent, err = p.confirm(ctx, *c)
	if err != nil {
		return Outcome{}, err
	}
	outcome, settled := OutcomeOf(intent)
	if !settled {
		return Outcome{}, errUnconfirmed
	}
	return outcome, nil
}

// boundIntent returns the intent that is bound to the order's record: what an earlier attempt bound, as the
// provider has it now, or a new one. Only what comes out of here may be confirmed.
func (p *Processor) boundIntent(ctx context.Context, c *Claim) (Intent, error) {
	if c.Intent != "" {
		return p.read(ctx, *c)
	}
	intent, err := p.prepare(ctx, *c)
	if err != nil {
		return Intent{}, err
	}
	if err := p.Claims.Bind(ctx, *c, intent.ID, p.Now()); err != nil {
		return Intent{}, err
	}
	c.Intent = intent.ID
	return intent, nil
}

// prepare makes an intent under the order's own key, so that an attempt that died before Bind leaves no stray one behind. If
// that key can only ever repeat a failure, a fresh one must do. A key that the provider knows for something else is never
// got around: it means that an order was charged, or is about to be, which the store has forgotten.
func (p *Processor) prepare(ctx context.Context, c Claim) (Intent, error) {
	check := p.verified(c)
	intent, err := check(p.Payments.Prepare(ctx, c.Order, PrepareKey(p.Scope, c.Order.ID())))
	if troubleOf(err) == Replayed {
		return check(p.Payments.Prepare(ctx, c.Order, PrepareAgainKey(p.Scope, c.Order.ID(), c.Attempt)))
	}
	return intent, err
}

// read asks how far the bound intent is. That the provider refuses to tell says nothing about the order, whose money may have
// moved: so it is no reason to give the order up.
func (p *Processor) read(ctx context.Context, c Claim) (Intent, error) {
	intent, err := p.verified(c)(p.Payments.Read(ctx, c.Intent))
	if e, ok := errors.AsType[*PaymentError](err); ok && (e.Trouble == Refused || e.Trouble == KeyReused) {
		return Intent{}, &PaymentError{Trouble: Misconfigured, RequestID: e.RequestID, Err: e.Err}
	}
	return intent, err
}

// confirm moves the money. A refusal is no proof that none moved: an intent that somebody else settled meanwhile
// refuses too, so the provider is asked before anybody is told.
func (p *Processor) confirm(ctx context.Context, c Claim) (Intent, error) {
	intent, err := p.verified(c)(p.Payments.Confirm(ctx, c.Intent, ConfirmKey(p.Scope, c.Order.ID(), c.Attempt)))
	if troubleOf(err) != Refused {
		return intent, err
	}
	now, readErr := p.read(ctx, c)
	if readErr != nil {
		return Intent{}, readErr
	}
	if _, settled := OutcomeOf(now); !settled {
		return Intent{}, err
	}
	return now, nil
}

// verified wraps a call to the provider: no intent is used before it is known to be this order's.
func (p *Processor) verified(c Claim) func(Intent, error) (Intent, error) {
	return func(i Intent, err error) (Intent, error) {
		if err != nil {
			return Intent{}, asPaymentError(err)
		}
		return i, verify(i, p.Scope, c.Order.ID(), c.Order.Total())
	}
}

// asPaymentError holds a provider to its promise: an error that says nothing of money may be about moved money.
func asPaymentError(err error) error {
	if troubleOf(err) != "" {
		return err
	}
	return &PaymentError{Trouble: Unknown, Err: err}
}

func troubleOf(err error) Trouble {
	if e, ok := errors.AsType[*PaymentError](err); ok {
		return e.Trouble
	}
	return ""
}
