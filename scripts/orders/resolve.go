package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

type resolveRefund struct {
	Order   string `arg:"" help:"The orderId."`
	Refund  string `arg:"" help:"The refundId."`
	Made    string `required:"" xor:"result" placeholder:"RE_ID" help:"It was made: Stripe's id of it, which starts with re_."`
	NotMade bool   `required:"" xor:"result" help:"It was not made, and is refused from now on."`
	Yes     bool   `help:"Do not ask, for scripts."`
}

// Run resolves one refund.
func (r resolveRefund) Run(ctx context.Context, d cloud.Deployment) error {
	d.Where()
	if err := r.resolve(ctx, d); err != nil {
		return fmt.Errorf("resolve refund %q of order %q: %w", r.Refund, r.Order, d.Explain(err))
	}
	return nil
}

var (
	errNoRefund     = errors.New("the order has no refund of this id")
	errNotUnknown   = errors.New("only a refund that is unknown, or open without an attempt for a day, ends so")
	errContradicted = errors.New("Stripe contradicts it") //nolint:staticcheck // ST1005: a name
)

// resolve ends the refund as the person decides, unless Stripe contradicts.
func (r resolveRefund) resolve(ctx context.Context, d cloud.Deployment) error {
	a, err := d.Refresher().Refresh(ctx, order.ID(r.Order))
	if err != nil {
		return err
	}
	i, found := a.Item(refund.ID(r.Refund))
	if !found {
		return errNoRefund
	}
	if i.Status == refund.Open && !i.Abandoned(d.Now()) {
		return fmt.Errorf("%w: %s is open: its message comes back, or redrive it from the dead-letter queue",
			errNotUnknown, i.ID)
	}
	session := d.Refunds().Open(ctx)
	defer session.Close()
	ledger, err := session.Read(ctx, a.Intent)
	if err != nil {
		return err
	}
	fmt.Fprint(d.People(), view.Account(a), view.Ledger(ledger), "\n")
	outcome, err := r.outcome(ctx, d, session, a, i, ledger)
	if err != nil {
		return err
	}
	if !undecided(i) {
		fmt.Fprintf(d.People(), "nothing to resolve: refund %s is %s at Stripe, as you say\n", i.ID, i.Status)
		return d.Record(view.NewAccountJSON(a))
	}
	if !r.Yes && !d.Confirms("Type the refund id to resolve it: ", r.Refund) {
		return shell.ErrNotConfirmed
	}
	// Save compares the refund with what the person saw: a worker may have claimed it since.
	after, err := refund.Settled(a, i.ID, outcome, d.Now())
	if err == nil {
		a, err = d.Accounts().Save(ctx, a, after)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(d.People(), "resolved: refund %s is %s\n\n%s", i.ID, outcome.Status, view.Account(a))
	return d.Record(view.NewAccountJSON(a))
}

// undecided reports whether a refund waits for a person's decision. An open one does only
// if it is abandoned.
func undecided(i refund.Item) bool { return i.Status == refund.Unknown || i.Status == refund.Open }

// outcome returns the outcome that the person gives the refund, or an error if Stripe
// contradicts it.
func (r resolveRefund) outcome(
	ctx context.Context, d cloud.Deployment, s refund.Session, a refund.Account, i refund.Item, l refund.Ledger,
) (refund.Outcome, error) {
	if r.NotMade {
		return notMade(d, a, i, l)
	}
	switch {
	case i.Refund == refund.ProviderID(r.Made) && !undecided(i):
		return refund.Outcome{}, nil
	case !undecided(i):
		return refund.Outcome{}, fmt.Errorf("%w: %s is %s, %s", errNotUnknown, i.ID, i.Status, i.Refund)
	}
	made, err := s.ReadRefund(ctx, refund.ProviderID(r.Made))
	if err != nil {
		return refund.Outcome{}, err
	}
	if err := refund.Verify(made, d.Scope, a, i); err != nil {
		return refund.Outcome{}, fmt.Errorf("%w: %s: %w", errContradicted, made.ID, err)
	}
	return refund.Outcome{Status: made.Status, Refund: made.ID, Failure: made.Failure}, nil
}

// notMade returns the outcome of a refund that was not made, after a warning.
func notMade(d cloud.Deployment, a refund.Account, i refund.Item, l refund.Ledger) (refund.Outcome, error) {
	for _, made := range l.Refunds {
		if made.For == i.ID && made.OrderID == a.OrderID {
			return refund.Outcome{}, fmt.Errorf("%w: %s of it is %s", errContradicted, made.ID, made.Status)
		}
	}
	if !undecided(i) {
		return refund.Outcome{}, fmt.Errorf("%w: %s is %s", errNotUnknown, i.ID, i.Status)
	}
	outcome := refund.Outcome{Status: refund.Refused, Failure: view.ResolvedByOperator}
	if i.SentAt.IsZero() {
		fmt.Fprint(d.People(), "Stripe was asked for nothing, or refused each time: it was not made.\n\n")
		return outcome, nil
	}
	amount := order.Money{Amount: i.Amount, Currency: a.Charged.Currency}
	fmt.Fprintf(d.People(), "WARNING: a request for %s was sent at %s and lost. "+
		"Stripe may still execute it, even days later.\n"+
		"If you give the amount back again before that, the customer gets it twice.\n\n",
		amount, i.SentAt.UTC().Format(time.RFC3339))
	return outcome, nil
}
