package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Processor processes orders from claim to outcome. It has no state of its own: two
// Processors, in two processes and on two releases, may process the same order at the
// same time.
type Processor struct {
	Store    Store
	Payments Payments
	Scope    Scope
	Now      func() time.Time
	// ConfirmTime is the time that one Confirm, the Finish after it and the response to
	// the queue need. No Confirm starts with less of the lease left.
	ConfirmTime time.Duration
	// TracksStock reserves the stock of each order.
	TracksStock bool
}

var (
	errOutOfTime   = errors.New("too little of the lease is left to confirm")
	errUnconfirmed = errors.New("the intent still waits for confirmation")
)

// Process claims the order, charges it and records the outcome, or finds that another
// attempt did so. sent is when the order's message was first sent.
//
// Money moves only by confirming the intent that is bound to the record. A conditional
// write binds one intent, and an intent succeeds at most once, at any age. This holds
// without clocks, leases and the lifetime of idempotency keys.
func (p *Processor) Process(ctx context.Context, o Order, sent time.Time, l Lease) Result {
	var quantities Quantities
	if p.TracksStock {
		quantities = o.Quantities()
	}
	claim, err := Begin(ctx, p.Store, o, l, quantities)
	if err != nil {
		return ResultOf(err)
	}
	return p.attempt(ctx, &claim, sent)
}

// attempt charges a claimed order and records the outcome. Its claim is not in the frame
// of Process, with which a duplicate needed a larger stack and 5 % more CPU.
func (p *Processor) attempt(ctx context.Context, claim *Claim, sent time.Time) Result {
	takeover := claim.Intent != ""
	outcome, err := p.charge(ctx, claim, sent)
	if err == nil {
		err = claim.Finish(ctx, p.Store, outcome, p.Now())
	}
	r := ResultOf(err)
	r.Attempt, r.Takeover = claim.Attempt, takeover
	r.Trace = claim.Trace
	r.Intent = cmp.Or(claim.Intent, r.Intent)
	switch {
	case r.Verdict == Done:
		r.Status = outcome.Status
		return r
	case errors.Is(err, ErrClaimLost):
		r.Status = Open
		return r
	}
	return p.giveUp(ctx, *claim, r)
}

// giveUp ends the claim of an attempt that did not settle the order. It records a refused
// order as refused and releases any other, so that the next attempt need not wait for the
// lease to expire.
//
// Park only if that write succeeded: it proves that we still hold the claim. A worker
// that was frozen for a while may otherwise park an order that another attempt settled
// meanwhile.
func (p *Processor) giveUp(ctx context.Context, c Claim, r Result) Result {
	var err error
	if r.Status = Open; r.Reason == ReasonRefused {
		r.Status = Refused
		refusal := Outcome{Status: Refused, Intent: c.Intent, Failure: CodeOf(r.Err, "unexplained")}
		err = c.Finish(ctx, p.Store, refusal, p.Now())
	} else {
		err = c.Release(ctx, p.Store, r.Reason, p.Now())
	}
	if r.Verdict == Park && err != nil {
		instead := ResultOf(err)
		r.Verdict, r.Reason, r.Transient, r.Status = instead.Verdict, instead.Reason, instead.Transient, Open
	}
	r.Err = errors.Join(r.Err, err)
	return r
}

// charge finds or creates the order's one intent, binds it to the claim and confirms it
// if it has no outcome yet. An order whose stock is short gets no intent. If it has one,
// as after Restore, it is refused, because a Confirm of an earlier attempt may still
// arrive.
func (p *Processor) charge(ctx context.Context, c *Claim, sent time.Time) (Outcome, error) {
	intent, err := p.boundIntent(ctx, c, sent)
	switch {
	case errors.Is(err, errShort):
		return Outcome{Status: OutOfStock, Failure: c.Short}, nil
	case err != nil:
		return Outcome{}, err
	}
	if outcome, settled := OutcomeOf(intent); settled {
		return outcome, nil
	}
	if err := c.checkStock(); errors.Is(err, errShort) {
		return Outcome{}, &PaymentError{Kind: KindRefused, Code: string(OutOfStock), Err: err}
	} else if err != nil {
		return Outcome{}, err
	}
	if p.Now().Add(p.ConfirmTime).After(c.Until) {
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

// boundIntent returns the intent that is bound to the order's record: the current state
// of the one that an earlier attempt bound, or a new one. Only this intent may be
// confirmed.
func (p *Processor) boundIntent(ctx context.Context, c *Claim, sent time.Time) (Intent, error) {
	if c.Intent != "" {
		return p.read(ctx, *c)
	}
	prepare := p.prepare
	if c.Suspect != "" || c.CreatedAt.Sub(sent) > recordLate {
		prepare = p.findOrPrepare
	}
	intent, err := prepare(ctx, *c)
	if err != nil {
		if lost, ok := errors.AsType[*RecordLostError](err); ok {
			c.Found = lost.Intent
		}
		return Intent{}, err
	}
	if err := c.Bind(ctx, p.Store, intent, p.Now()); err != nil {
		return Intent{}, err
	}
	c.Intent = intent.ID
	return intent, nil
}

// recordLate is the age difference between message and record from which the record may
// replace a lost one, for example after a restore from backup. Idempotency keys protect
// younger orders. After this time the provider's search finds every intent.
const recordLate = 24 * time.Hour

// findOrPrepare prepares an order only if the provider has no intent for it, as for an
// order that waited out a long outage. It uses a single intent that still waits, unless
// the stock is short: an attempt that died before Bind left it. Any other intent was
// bound to a record that the store lost.
//
// An intent that an earlier attempt found stays found, whatever the search returns now
// and however young the message is. Only that intent may still be used.
func (p *Processor) findOrPrepare(ctx context.Context, c Claim) (Intent, error) {
	found, err := p.Payments.Find(ctx, c.Order.ID())
	if err != nil {
		return Intent{}, asMisconfigured(asPaymentError(err))
	}
	lost := c.Suspect
	if lost == "" && len(found) > 0 {
		lost = found[0].ID
	}
	switch {
	case lost == "":
		return p.prepare(ctx, c)
	case len(found) == 1 && c.Short == "" && found[0].ID == lost && found[0].State == NeedsConfirmation &&
		found[0].Fingerprint == c.Order.Fingerprint():
		return found[0], Verify(found[0], p.Scope, c.Order.ID(), c.Order.Total())
	}
	return Intent{}, &RecordLostError{Intent: lost}
}

// prepare creates the intent under the order's own key, so that an attempt that dies
// before Bind leaves no second intent. It uses a new key if the first one holds a stored
// failure, or an intent that was canceled before it was bound. It never replaces a key
// that was used with other parameters: another attempt may charge, or have charged, an
// order that the store lost.
//
// It prepares none for an order whose stock is short.
func (p *Processor) prepare(ctx context.Context, c Claim) (Intent, error) {
	if err := c.checkStock(); err != nil {
		return Intent{}, err
	}
	intent, err := p.prepareUnder(ctx, c, PrepareKey(p.Scope, c.Order.ID()))
	if KindOf(err) == KindReplayed {
		return p.prepareUnder(ctx, c, PrepareAgainKey(p.Scope, c.Order.ID(), c.Attempt))
	}
	return intent, err
}

var (
	errShort      = errors.New("out of stock")
	errUnknownSKU = errors.New("unknown SKU: the stock has no such SKU")
)

// checkStock returns errShort for a claim whose stock is short, and errUnknownSKU for an
// SKU that somebody may have forgotten to add.
func (c Claim) checkStock() error {
	switch {
	case c.Short == "":
		return nil
	case c.Unlisted:
		return fmt.Errorf("%w: %s", errUnknownSKU, c.Short)
	}
	return fmt.Errorf("%w: %s", errShort, c.Short)
}

var errCanceledUnbound = errors.New("the prepared intent was canceled before it was bound")

func (p *Processor) prepareUnder(ctx context.Context, c Claim, k Key) (Intent, error) {
	intent, err := p.verified(c, 2, func() (Intent, error) { return p.Payments.Prepare(ctx, c.Order, k) })
	if err == nil && intent.State == IntentCanceled {
		return Intent{}, &PaymentError{Kind: KindReplayed, Err: errCanceledUnbound}
	}
	return intent, err
}

// read returns the current state of the bound intent. Its money may have moved even if
// the provider does not show it, so a refusal never parks the order.
func (p *Processor) read(ctx context.Context, c Claim) (Intent, error) {
	intent, err := p.verified(c, 2, func() (Intent, error) { return p.Payments.Read(ctx, c.Intent) })
	return intent, asMisconfigured(err)
}

// confirm moves the money. It reads the intent if the provider refused to confirm it or
// answered about another order: neither proves that no money moved. The provider also
// refuses an intent that another attempt has settled meanwhile.
func (p *Processor) confirm(ctx context.Context, c Claim) (Intent, error) {
	key := ConfirmKey(p.Scope, c.Order.ID(), c.Attempt)
	intent, err := p.verified(c, 1, func() (Intent, error) { return p.Payments.Confirm(ctx, c.Intent, key) })
	_, mismatch := errors.AsType[*MismatchError](err)
	refused := KindOf(err) == KindRefused
	if !refused && !mismatch {
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

// verified makes a call to the provider, at most so many times while the response is
// about another order: one wrong response does not park this one. No intent is used
// unless it belongs to the order.
func (p *Processor) verified(c Claim, tries int, call func() (Intent, error)) (Intent, error) {
	intent, err := call()
	if err != nil {
		return Intent{}, asPaymentError(err)
	}
	err = Verify(intent, p.Scope, c.Order.ID(), c.Order.Total())
	if err != nil && tries > 1 {
		return p.verified(c, tries-1, call)
	}
	return intent, err
}

// asMisconfigured turns a refusal of a call that only reads into Misconfigured: the order
// is not at fault.
func asMisconfigured(err error) error {
	e, ok := errors.AsType[*PaymentError](err)
	if !ok || e.Kind != KindRefused && e.Kind != KindKeyReused {
		return err
	}
	return &PaymentError{Kind: KindMisconfigured, Code: e.Code, RequestID: e.RequestID, Err: e.Err}
}

// asPaymentError treats an error that is not a *PaymentError as Unknown: money may have
// moved.
func asPaymentError(err error) error {
	if KindOf(err) != "" {
		return err
	}
	return &PaymentError{Kind: KindUnknown, Err: err}
}
