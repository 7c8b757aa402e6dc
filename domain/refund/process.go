package refund

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"orderonce/domain/order"
)

// Processor makes refunds, from claim to outcome. It has no state of its own: two
// Processors, in two processes and on two releases, may process the same refund at the
// same time.
type Processor struct {
	Store    Store
	Provider Provider
	Scope    order.Scope
	Now      func() time.Time
	// CreateTime is the time that one Create, the Finish after it and the response to the
	// queue need. No Create starts with less of the function's time left.
	CreateTime time.Duration
}

// The reasons of this package, beside those of package order.
const (
	ReasonNotCharged  order.Reason = "not_charged"        // the order is not paid
	ReasonExceeds     order.Reason = "refund_exceeds"     // more than is left of the charge
	ReasonTooMany     order.Reason = "refund_limit"       // the order has too many refunds
	ReasonUnknown     order.Reason = "refund_unknown"     // it may have been made; a person must look
	ReasonRefused     order.Reason = "refund_refused"     // the provider does not make it
	ReasonUnexplained order.Reason = "refund_unexplained" // the provider refuses it and does not say why
)

// Reasons lists every reason that this package adds.
func Reasons() []order.Reason {
	return []order.Reason{
		ReasonNotCharged, ReasonExceeds, ReasonTooMany, ReasonUnknown, ReasonRefused, ReasonUnexplained,
	}
}

// keyLife is how long the provider certainly remembers an idempotency key, less four
// hours for a request that is executed late. After it, a refund that may have been made
// is not repeated, because the provider would take the same key for a new one
// (docs.stripe.com/api/idempotent_requests: "at least 24 hours").
const keyLife = 20 * time.Hour

var (
	errOutOfTime   = errors.New("too little time is left to make a refund")
	errUnexplained = errors.New("refused, and nothing that the provider lists explains it")
)

// Process makes the refund and records the outcome, or finds that another attempt did so.
// l is the lease of the invocation: its end is when the function ends.
//
// The claim's own lease is the longest one. A request that was sent may be executed after
// the function has ended, so no other attempt takes the refund over before.
func (p *Processor) Process(ctx context.Context, r Request, l order.Lease) order.Result {
	a := attempt{Processor: p, until: l.Until}
	l.Until = l.From.Add(order.MaxLease)
	var err error
	if a.claim, err = Begin(ctx, p.Store, r, l); err != nil {
		return resultOf(err)
	}
	outcome, err := a.refund(ctx)
	if err == nil {
		err = a.claim.Finish(ctx, p.Store, outcome, p.Now())
	}
	result := resultOf(err)
	if err == nil {
		result = resultOfOutcome(outcome)
		if after, err := Settled(a.claim.Account, r.ID(), outcome, p.Now()); err == nil {
			result.Status = after.Status
		}
	} else if !errors.Is(err, order.ErrClaimLost) {
		result = a.giveUp(ctx, result)
	}
	result.Attempt, result.Takeover = a.claim.item().Attempt, a.claim.item().Attempt > 1
	result.Intent, result.Trace = a.claim.Account.Intent, a.claim.Account.Trace
	result.Status = cmp.Or(result.Status, a.claim.Account.Status)
	return result
}

// attempt is one Process with its claim.
type attempt struct {
	*Processor

	until  time.Time // the end of the function
	claim  Claim
	sent   bool // a Create may have had an unknown effect
	unsent bool // certainly every request of every attempt was turned down
}

// refund finds the refund at the provider or makes it.
func (a *attempt) refund(ctx context.Context) (Outcome, error) {
	session := a.Provider.Open(ctx)
	defer session.Close()
	ledger, err := a.read(ctx, session)
	if err != nil {
		return Outcome{}, err
	}
	if made, found := made(ledger.Refunds, a.Scope, a.claim); found {
		return outcomeOf(made), nil
	}
	a.unsent = a.claim.item().SentAt.IsZero()
	if err = a.mark(ctx, a.claim.item().KeySeq, ledger.Now); err != nil {
		return Outcome{}, err
	}
	if age := ledger.Now.Sub(a.claim.item().SentAt); age >= keyLife && !a.big(ledger) {
		return Outcome{Status: Unknown, Failure: "sent_" + a.claim.item().SentAt.UTC().Format(time.RFC3339)}, nil
	}
	return a.create(ctx, session, a.big(ledger))
}

// mark records that a request is about to be sent.
func (a *attempt) mark(ctx context.Context, keySeq int, now time.Time) error {
	marked, err := a.claim.Mark(ctx, a.Store, keySeq, now)
	if err == nil {
		a.claim = marked
	}
	return err
}

// big reports whether the refund is more than half of the charge. The provider refuses a
// second one at any age and under any key.
func (a *attempt) big(l Ledger) bool { return 2*a.claim.item().Amount > l.Charged }

// read returns the ledger of the order's intent.
func (a *attempt) read(ctx context.Context, s Session) (Ledger, error) {
	account := a.claim.Account
	ledger, err := s.Read(ctx, account.Intent)
	if err != nil {
		return Ledger{}, err
	}
	return ledger, order.Verify(ledger.Intent, a.Scope, account.OrderID, account.Charged)
}

// create makes the refund. A stored failure needs another read, and for a big refund
// another key; a small refund never gets another key, because the provider may complete
// the failed request days later.
func (a *attempt) create(ctx context.Context, s Session, big bool) (Outcome, error) {
	outcome, err := a.send(ctx, s)
	if order.KindOf(err) == order.KindRefused {
		return a.explain(ctx, s, err)
	}
	if order.KindOf(err) != order.KindReplayed {
		return outcome, err
	}
	ledger, readErr := a.read(ctx, s)
	if readErr != nil {
		return Outcome{}, readErr
	}
	if made, found := made(ledger.Refunds, a.Scope, a.claim); found {
		return outcomeOf(made), nil
	}
	if !big {
		return Outcome{}, err
	}
	if err = a.mark(ctx, a.claim.item().KeySeq+1, ledger.Now); err != nil {
		return Outcome{}, err
	}
	if outcome, err = a.send(ctx, s); order.KindOf(err) == order.KindRefused {
		return a.explain(ctx, s, err)
	}
	return outcome, err
}

// send sends one request for the refund.
func (a *attempt) send(ctx context.Context, s Session) (Outcome, error) {
	if a.Now().Add(a.CreateTime).After(a.until) {
		return Outcome{}, errOutOfTime
	}
	item, account := a.claim.item(), a.claim.Account
	a.sent = true
	made, err := s.Create(ctx, CreateParams{
		Intent: account.Intent, OrderID: account.OrderID, ID: item.ID, Amount: item.Amount, Reason: item.Reason,
		Key: Key(a.Scope, account.OrderID, item.ID, item.KeySeq),
	})
	if err != nil {
		a.sent = order.KindOf(err) == order.KindUnknown
		a.unsent = a.unsent && turnedDown(order.KindOf(err))
		return Outcome{}, err
	}
	if err := verify(made, a.Scope, a.claim); err != nil {
		return Outcome{}, err
	}
	return outcomeOf(made), nil
}

// turnedDown reports whether a request that failed so made nothing, and never will: the
// provider has answered it.
func turnedDown(k order.ErrorKind) bool {
	return k == order.KindMisconfigured || k == order.KindRefused
}

// explain finds out why the provider refused the refund: it was made before, other
// refunds leave too little, or the charge is disputed. It reads each refund of the list
// again, by its id, because the list may lag. A fraction that the currency does not have
// is refused at any time, so it needs no read.
//
// A dispute explains a refusal only while the provider would have answered with the
// refund if an earlier request had made it: under the first key, and while that key
// certainly lives. Otherwise the list may miss a refund that was made.
func (a *attempt) explain(ctx context.Context, s Session, refused error) (Outcome, error) {
	if a.claim.item().Amount%a.claim.Account.Charged.Currency.Step() != 0 {
		return Outcome{Status: Refused, Failure: order.CodeOf(refused, "refused")}, nil
	}
	ledger, err := a.read(ctx, s)
	if err != nil {
		return Outcome{}, err
	}
	var others int64
	for n, listed := range ledger.Refunds {
		if ledger.Refunds[n], err = s.ReadRefund(ctx, listed.ID); err != nil {
			return Outcome{}, err
		}
		if now := ledger.Refunds[n]; now.Status.Counts() {
			others += now.Total.Amount
		}
	}
	if made, found := made(ledger.Refunds, a.Scope, a.claim); found {
		return outcomeOf(made), nil
	}
	item := a.claim.item()
	young := ledger.Now.Sub(item.SentAt) < keyLife
	switch {
	case others+item.Amount > ledger.Charged, ledger.Disputed && young && item.KeySeq == 1:
		return Outcome{Status: Refused, Failure: order.CodeOf(refused, "refused")}, nil
	case !young:
		return Outcome{Status: Unknown, Failure: order.CodeOf(refused, "refused")}, nil
	}
	return Outcome{}, fmt.Errorf("%w: %w", errUnexplained, refused)
}

// giveUp ends the claim of an attempt that did not settle the refund, unless a request of
// it may still take effect: then the lease runs, and no attempt repeats the request
// before its end. Park only if the claim was still ours.
func (a *attempt) giveUp(ctx context.Context, r order.Result) order.Result {
	if a.sent {
		r.Verdict, r.NotBefore = order.Redeliver, a.claim.item().Until
		return r
	}
	claim := a.claim
	if a.unsent { // neither a wrong key nor a refusal uses up the time for a repetition
		claim = claim.unsent()
	}
	err := claim.Release(ctx, a.Store, r.Reason, a.Now())
	if r.Verdict == order.Park && err != nil {
		instead := resultOf(err)
		r.Verdict, r.Reason, r.Transient = instead.Verdict, instead.Reason, instead.Transient
	}
	r.Err = errors.Join(r.Err, err)
	return r
}

// made returns our refund for the claim among all refunds of the intent: one that counts,
// otherwise any. A refund with our ids and another amount is not ours.
func made(all []Refund, s order.Scope, c Claim) (r Refund, found bool) {
	for _, candidate := range all {
		if verify(candidate, s, c) == nil && (!found || !r.Status.Counts()) {
			r, found = candidate, true
		}
	}
	return r, found
}

// verify returns an *order.MismatchError unless the refund is the claim's.
func verify(r Refund, s order.Scope, c Claim) error { return Verify(r, s, c.Account, c.item()) }

// Verify returns an *order.MismatchError unless a refund at the provider was made for the
// item of the account.
func Verify(r Refund, s order.Scope, account Account, item Item) error {
	want := order.Money{Amount: item.Amount, Currency: account.Charged.Currency}
	for _, f := range [...]struct{ field, got, want string }{
		{"scope", string(r.Scope), string(s)},
		{"orderId", string(r.OrderID), string(account.OrderID)},
		{"refundId", string(r.For), string(item.ID)},
		{"intent", string(r.Intent), string(account.Intent)},
		{"amount", r.Total.String(), want.String()},
	} {
		if f.got != f.want {
			return &order.MismatchError{Intent: account.Intent, Field: "refund " + f.field, Got: f.got, Want: f.want}
		}
	}
	return nil
}

func outcomeOf(r Refund) Outcome { return Outcome{Status: r.Status, Refund: r.ID, Failure: r.Failure} }
