package receipt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"orderonce/domain/order"
)

// Processor sends receipts and records what the provider reports about them. It has no
// state of its own.
type Processor struct {
	Store  Store
	Payers Payers
	Mailer Mailer
	Render func(r Request, p Payer) (Mail, error)
	Now    func() time.Time
	// SendTime is the time that one Send and the Save after it need. No claim is made with
	// less of the function's time left.
	SendTime time.Duration
	// AtLeastOnce repeats a send whose result is unknown, instead of leaving it doubtful.
	AtLeastOnce bool
}

// Result is the result of one delivery.
type Result struct {
	order.Result

	Receipt Status // that this delivery wrote; "" if it wrote none
}

// The reasons of this package, beside those of package order.
const (
	ReasonDoubtful          order.Reason = "receipt_doubtful"   // it may have been sent; it is not repeated
	ReasonLost              order.Reason = "receipt_lost"       // a report names a receipt that does not exist
	ReasonNoAddress         order.Reason = "no_address"         // the payer has no usable e-mail address
	ReasonIgnored           order.Reason = "ignored"            // an event that asks for nothing
	ReasonMailUnavailable   order.Reason = "mail_unavailable"   // the e-mail service accepts no more for now
	ReasonMailMisconfigured order.Reason = "mail_misconfigured" // it does not accept our account or sender
	ReasonMailRefused       order.Reason = "mail_refused"       // it does not accept this message
	ReasonRender            order.Reason = "receipt_not_rendered"
)

// Reasons lists every reason that this package adds.
func Reasons() []order.Reason {
	return []order.Reason{
		ReasonDoubtful, ReasonLost, ReasonNoAddress, ReasonIgnored, ReasonMailUnavailable,
		ReasonMailMisconfigured, ReasonMailRefused, ReasonRender,
	}
}

// Abandoned is the Failure of a receipt whose worker ended without recording a result.
const Abandoned = "claim_abandoned"

// The Failure of a receipt that the provider's code does not explain.
const (
	failureNoResponse = "no_response"
	failureNoAddress  = "no_address"
)

var (
	errOutOfTime = errors.New("too little time is left to send an e-mail")
	errAbandoned = errors.New("a worker claimed the receipt and recorded no result: it may have been sent")
)

// Process sends the receipt, or finds that it was sent, is being sent, or is doubtful.
// l is the lease of the invocation.
//
// Everything that can fail without an effect happens before the claim, so that only a
// failure of the send itself, or of the write after it, leaves a doubt.
func (p *Processor) Process(ctx context.Context, r Request, l order.Lease) Result {
	seen, err := p.Store.Load(ctx, r.OrderID, r.Key)
	if err != nil {
		return failed(err)
	}
	result, ends := p.found(ctx, seen, p.Now())
	if ends {
		return result
	}
	mail, result, ready := p.prepare(ctx, r, seen)
	switch {
	case !ready:
		return result
	case p.Now().Add(p.SendTime).After(l.Until):
		return outOfTime()
	}
	claim := seen.claimed(l)
	if _, err := p.Store.Save(ctx, seen, claim); err != nil {
		return failed(err)
	}
	result = p.send(ctx, claim, mail)
	result.Attempt, result.Takeover = claim.Attempt, seen.Status == Sending
	result.Intent, result.Trace = r.Intent, r.Trace
	return result
}

// found returns the result of a delivery by what it finds. ends is false if the receipt
// may be claimed: there is none, it failed, or its send is repeated at least once.
func (p *Processor) found(ctx context.Context, seen Item, now time.Time) (result Result, ends bool) {
	switch seen.Status {
	case Sending:
		switch {
		case !seen.abandoned(now):
			return failed(&order.InProgressError{Until: seen.Until}), true
		case !p.AtLeastOnce:
			return p.doubt(ctx, seen, Abandoned, errAbandoned), true
		}
	case Sent, Delivered, Bounced:
		return done(order.ReasonDuplicate, ""), true
	case Doubtful:
		return done(order.ReasonDuplicate, ""), !p.AtLeastOnce
	case Failed:
	}
	return Result{}, false
}

func outOfTime() Result {
	return Result{Result: order.Result{
		Verdict: order.Redeliver, Reason: order.ReasonOutOfTime, Transient: true, Err: errOutOfTime,
	}}
}

// prepare looks up the address and renders the message. ok is false if there is nothing
// to send; then result is the result of the delivery.
func (p *Processor) prepare(ctx context.Context, r Request, seen Item) (m Mail, result Result, ok bool) {
	payer, err := p.Payers.Payer(ctx, r.Intent)
	if errors.Is(err, ErrNoAddress) {
		return Mail{}, p.noAddress(ctx, seen), false
	}
	if err != nil {
		return Mail{}, failed(err), false
	}
	m, err = p.Render(r, payer)
	if err != nil {
		return Mail{}, Result{Result: order.Result{Verdict: order.Park, Reason: ReasonRender, Err: err}}, false
	}
	return m, Result{}, true
}

// noAddress records that there is nobody to send to. It is done, because a repetition
// would find the same; a request for the receipt tries again. An earlier attempt may have
// sent it, at least once; then it stays a doubt.
func (p *Processor) noAddress(ctx context.Context, seen Item) Result {
	r := done(ReasonNoAddress, "")
	if seen.Failure == failureNoAddress {
		return r
	}
	s := Failed
	if seen.Status == Sending || seen.Status == Doubtful {
		s = Doubtful
	}
	return p.write(ctx, seen, s, failureNoAddress, r.Result)
}

// send makes the one request and records its result. It makes none after the lease: the
// process may have been frozen since the claim, and a person may have decided meanwhile
// that nothing was sent. Round drops the monotonic clock, which may stop in that time.
func (p *Processor) send(ctx context.Context, claim Item, m Mail) Result {
	if p.Now().Round(0).After(claim.Until) {
		return p.write(ctx, claim, Failed, string(order.ReasonOutOfTime), outOfTime().Result)
	}
	m.Attempt = claim.Attempt
	id, err := p.Mailer.Send(ctx, m)
	if err == nil {
		return p.record(ctx, claim, Report{Message: id, Status: Sent, Attempt: claim.Attempt})
	}
	failure, known := errors.AsType[*SendError](err)
	if !known {
		failure = &SendError{Kind: order.KindUnknown}
	}
	r := order.Result{Verdict: order.Redeliver, Transient: true, Err: err}
	switch failure.Kind { //nolint:exhaustive // a mailer returns four kinds
	case order.KindUnavailable:
		r.Reason = ReasonMailUnavailable
	case order.KindMisconfigured:
		r.Reason = ReasonMailMisconfigured
	case order.KindRefused:
		r.Verdict, r.Transient, r.Reason = order.Park, false, ReasonMailRefused
	default:
		return p.doubt(ctx, claim, cmp.Or(failure.Code, failureNoResponse), err)
	}
	return p.write(ctx, claim, Failed, cmp.Or(failure.Code, string(r.Reason)), r)
}

// record writes that the message was sent. Another delivery may have found the lease
// expired, and the provider's own event may be faster; neither changes what is known now.
func (p *Processor) record(ctx context.Context, claim Item, r Report) Result {
	err := p.follow(ctx, claim, r)
	if errors.Is(err, errKnown) {
		return done(order.ReasonSettled, "")
	}
	if err != nil {
		return failed(fmt.Errorf("e-mail %s was sent and is not recorded: %w", r.Message, err))
	}
	return done(order.ReasonSettled, Sent)
}

// doubt records that the e-mail may have been sent. At least once, it is sent again.
func (p *Processor) doubt(ctx context.Context, i Item, why string, cause error) Result {
	r := order.Result{Verdict: order.Done, Reason: ReasonDoubtful, Err: cause}
	if p.AtLeastOnce {
		r.Verdict, r.Transient = order.Redeliver, true
	}
	return p.write(ctx, i, Doubtful, why, r)
}

// write ends an attempt with another status of the receipt, and returns its result. If
// the write of a claim fails, its lease ends, and the receipt is doubtful.
func (p *Processor) write(ctx context.Context, i Item, s Status, why string, r order.Result) Result {
	if _, err := p.Store.Save(ctx, i, i.next(s, why, p.Now())); err != nil {
		return failed(errors.Join(r.Err, err))
	}
	return Result{r, s}
}

func done(why order.Reason, wrote Status) Result {
	return Result{order.Result{Verdict: order.Done, Reason: why}, wrote}
}

// failed is the result of an attempt that wrote nothing, or does not know whether it did.
func failed(err error) Result {
	if errors.Is(err, order.ErrStale) {
		err = fmt.Errorf("%w: %w", order.ErrClaimLost, err)
	}
	return Result{Result: order.ResultOf(err)}
}
