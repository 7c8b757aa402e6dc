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

// Process claims the order, charges it and settles it, or finds that another attempt did. sent
// is when the order's message was first sent.
//
// Money moves only by confirming the intent that is bound to the record. It is bound once, by a
// conditional write, and an intent succeeds at most once, at any age. The argument needs no
// clock, no lease and no lifetime of an idempotency key.
func (p *Processor) Process(ctx context.Context, o Order, sent time.Time, l Lease) Result {
	claim, err := p.Claims.Begin(ctx, o, l)
	if err != nil {
		return conclude(err)
	}
	takeover := claim.Intent != ""
	outcome, err := p.charge(ctx, &claim, sent)
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
	if errors.Is(err, ErrClaimLost) {
		return r
	}
	// Letting go is a courtesy to the next attempt, which would otherwise wait for the lease to end. But to park is for
	// whoever holds the order alone, and only a release that went through proves that: a worker that was frozen may have
	// seen what others left behind when they settled it.
	released := p.Claims.Release(ctx, claim, r.Reason, p.Now())
	if r.Verdict == Park && released != nil {
		instead := conclude(released)
		r.Verdict, r.Reason, r.Transient = instead.Verdict, instead.Reason, instead.Transient
	}
	r.Err = errors.Join(r.Err, released)
	return r
}

// charge finds or makes the order's one intent, notes it in the claim and brings it to an outcome.
func (p *Processor) charge(ctx context.Context, c *Claim, sent time.Time) (Outcome, error) {
	intent, err := p.boundIntent(ctx, c, sent)
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

// boundIntent returns the intent that is bound to the order's record: the one that an earlier
// attempt bound, as the provider has it now, or a new one. Only this intent may be confirmed.
func (p *Processor) boundIntent(ctx context.Context, c *Claim, sent time.Time) (Intent, error) {
	if c.Intent != "" {
		return p.read(ctx, *c)
	}
	prepare := p.prepare
	if c.CreatedAt.Sub(sent) > recordLate {
		prepare = p.findOrPrepare
	}
	intent, err := prepare(ctx, *c)
	if err != nil {
		return Intent{}, err
	}
	if err := p.Claims.Bind(ctx, *c, intent, p.Now()); err != nil {
		return Intent{}, err
	}
	c.Intent = intent.ID
	return intent, nil
}

// recordLate is how much younger than its message a record is when it may replace one that was
// lost, for example by a restore from backup. Idempotency keys protect younger orders, and by
// then the provider's search has caught up.
const recordLate = 24 * time.Hour

// findOrPrepare prepares an order only if the provider knows no intent of it: an order that
// merely waited out a long outage. One intent that still waits is what an attempt left that died
// before Bind, so it is used. Anything else was bound to a record that the store lost.
func (p *Processor) findOrPrepare(ctx context.Context, c Claim) (Intent, error) {
	found, err := p.Payments.Find(ctx, c.Order.ID())
	switch {
	case err != nil:
		return Intent{}, asPaymentError(err)
	case len(found) == 0:
		return p.prepare(ctx, c)
	case len(found) == 1 && found[0].State == NeedsConfirmation && found[0].Fingerprint == c.Order.Fingerprint():
		return p.verified(c)(found[0], nil)
	}
	return Intent{}, &RecordLostError{Intent: found[0].ID}
}

// prepare makes an intent under the order's own key, so that an attempt that dies before Bind
// leaves no stray intent. It uses a new key if the first one holds a stored failure, or an
// intent that somebody canceled before it was bound. A key that the provider knows for other
// content is never replaced: some attempt may have charged, or may be about to charge, an
// order that the store lost.
func (p *Processor) prepare(ctx context.Context, c Claim) (Intent, error) {
	intent, err := p.prepareUnder(ctx, c, PrepareKey(p.Scope, c.Order.ID()))
	if kindOf(err) == Replayed {
		return p.prepareUnder(ctx, c, PrepareAgainKey(p.Scope, c.Order.ID(), c.Attempt))
	}
	return intent, err
}

var errCanceledUnbound = errors.New("the prepared intent was canceled before it was bound")

func (p *Processor) prepareUnder(ctx context.Context, c Claim, k Key) (Intent, error) {
	intent, err := p.verifiedTwice(c, func() (Intent, error) { return p.Payments.Prepare(ctx, c.Order, k) })
	if err == nil && intent.State == IntentCanceled {
		return Intent{}, &PaymentError{Kind: Replayed, Err: errCanceledUnbound}
	}
	return intent, err
}

// read returns the bound intent as the provider has it now. If the provider refuses to show it,
// its money may still have moved, so the refusal is treated as our mistake and never parks the order.
func (p *Processor) read(ctx context.Context, c Claim) (Intent, error) {
	intent, err := p.verifiedTwice(c, func() (Intent, error) { return p.Payments.Read(ctx, c.Intent) })
	if e, ok := errors.AsType[*PaymentError](err); ok && (e.Kind == Refused || e.Kind == KeyReused) {
		return Intent{}, &PaymentError{Kind: Misconfigured, RequestID: e.RequestID, Err: e.Err}
	}
	return intent, err
}

// confirm moves the money. A refusal does not prove that no money moved: the provider also
// refuses an intent that was settled meanwhile. Nor does an answer about another order. In both
// cases the intent itself is read.
func (p *Processor) confirm(ctx context.Context, c Claim) (Intent, error) {
	intent, err := p.verified(c)(p.Payments.Confirm(ctx, c.Intent, ConfirmKey(p.Scope, c.Order.ID(), c.Attempt)))
	refused := kindOf(err) == Refused
	if !refused && !isMismatch(err) {
		return intent, err
	}
	now, readErr := p.read(ctx, c)
	if readErr != nil {
		return Intent{}, readErr
	}
	if _, settled := OutcomeOf(now); refused && !settled {
		return Intent{}, err
	}
	return now, nil
}

// verifiedTwice asks the provider again if the answer is about another order, so that one wrong
// answer does not park the order.
func (p *Processor) verifiedTwice(c Claim, ask func() (Intent, error)) (Intent, error) {
	check := p.verified(c)
	intent, err := check(ask())
	if isMismatch(err) {
		return check(ask())
	}
	return intent, err
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

func isMismatch(err error) bool {
	_, mismatch := errors.AsType[*MismatchError](err)
	return mismatch
}

// asPaymentError holds a provider to its promise: an error that says nothing of money may be about moved money.
func asPaymentError(err error) error {
	if kindOf(err) != "" {
		return err
	}
	return &PaymentError{Kind: Unknown, Err: err}
}

func kindOf(err error) ErrorKind {
	if e, ok := errors.AsType[*PaymentError](err); ok {
		return e.Kind
	}
	return ""
}
