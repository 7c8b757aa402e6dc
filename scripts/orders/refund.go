package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/jobs"
	"orderonce/scripts/orders/batch"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

type makeRefund struct {
	Order    string         `arg:"" help:"The orderId."`
	Amount   batch.Amount   `required:"" xor:"amount" placeholder:"N" help:"In the order's currency: 19.99, or the same in minor units, 1999."`
	All      bool           `required:"" xor:"amount" help:"All that is left."`
	Reason   string         `required:"" enum:"duplicate,fraudulent,requested_by_customer" placeholder:"R" help:"${enum}."`
	RefundID string         `placeholder:"ID" help:"The refund's own id. Default: operator-N, or operator-all."`
	Intent   order.IntentID `placeholder:"PI_ID" help:"The PaymentIntent of the order, although another one charged it as well."`
	Yes      bool           `help:"Do not ask, for scripts."`
	Limit    time.Duration  `default:"2m" help:"Fail if the refund is not settled by then."`
}

// Run makes one refund.
func (m makeRefund) Run(ctx context.Context, d cloud.Deployment) error {
	mode := "unknown"
	if r, err := d.Store().Load(ctx, order.ID(m.Order)); err == nil { // refund returns the error
		mode = cloud.ModeOf(r.Mode == order.LiveMode)
	}
	fmt.Fprintf(d.People(), "table %s in %s, scope %s, Stripe in %s mode\nqueue %s\n\n",
		d.Table, d.AWS.Region, d.Scope, mode, d.RefundQueue)
	if err := m.refund(ctx, d); err != nil {
		return fmt.Errorf("refund order %q: %w", m.Order, d.Explain(err))
	}
	return nil
}

const notRead = "Stripe was not read, without STRIPE_SECRET_KEY: an order that was charged twice is not recognized"

var (
	errNothingLeft  = errors.New("nothing is left to refund")
	errIDTaken      = errors.New("refund id already used with another amount or reason: see --refund-id")
	errNotRefunded  = errors.New("not refunded")
	errChargedTwice = errors.New("charged twice")
)

func (m makeRefund) refund(ctx context.Context, d cloud.Deployment) error {
	a, err := d.Accounts().Load(ctx, order.ID(m.Order))
	if err != nil {
		return err
	}
	fmt.Fprintln(d.People(), view.Account(a))
	if !a.Status.Charged() {
		return &refund.NotChargedError{Status: a.Status}
	}
	r, err := m.request(a)
	if err != nil {
		return err
	}
	if made, err := before(a, r, d.Now()); err != nil {
		return err
	} else if made {
		fmt.Fprintf(d.People(), "nothing posted: refund %s was made before; "+
			"another refund needs another --refund-id\n", r.ID())
		return d.Record(view.NewAccountJSON(a))
	}
	amount := order.Money{Amount: r.Amount(), Currency: a.Charged.Currency}
	for _, i := range alike(a, r) {
		fmt.Fprintf(d.People(), "WARNING: refund %s gives %s back as well: it is %s\n", i.ID, amount, i.Status)
	}
	if err := chargedOnce(ctx, d, a, m.Intent); err != nil {
		return err
	}
	left := order.Money{Amount: a.Left(), Currency: a.Charged.Currency}
	fmt.Fprintf(d.People(), "Refund %s gives back %s of %s left. ", r.ID(), amount, left)
	if !m.Yes && !d.Confirms("Type the order id to make it: ", m.Order) {
		return shell.ErrNotConfirmed
	}
	unique := strconv.FormatInt(d.Now().UnixNano(), 10)
	_, err = d.QueueAt(d.RefundQueue).Send(ctx, r.OrderID(), unique, jobs.RefundBody(r))
	if err != nil {
		return err
	}
	return m.follow(ctx, d, r)
}

// request returns the refund. Its default id follows from the arguments alone.
func (m makeRefund) request(a refund.Account) (refund.Request, error) {
	id, amount := "operator-all", a.Left()
	if !m.All {
		typed, err := m.Amount.In(a.Charged.Currency)
		if err != nil {
			return refund.Request{}, err
		}
		id, amount = "operator-"+strconv.FormatInt(typed.Amount, 10), typed.Amount
	}
	id = cmp.Or(m.RefundID, id)
	if i, known := a.Item(refund.ID(id)); known && m.All {
		amount = i.Amount
	}
	if m.All && amount <= 0 {
		return refund.Request{}, tooLittle(a, errNothingLeft)
	}
	return refund.New(refund.Draft{OrderID: m.Order, RefundID: id, Amount: amount, Reason: m.Reason})
}

// chargedOnce returns an error if another payment charged the order as well, and holds
// money: the person may mean that one. named is the payment that they insist on.
func chargedOnce(ctx context.Context, d cloud.Deployment, a refund.Account, named order.IntentID) error {
	switch named {
	case "":
	case a.Intent:
		return nil
	default:
		return fmt.Errorf("--intent %s: the order's own payment is %s; refund another one in Stripe's Dashboard",
			named, a.Intent)
	}
	f, err := d.PaymentsOf(ctx, a)
	switch insist := fmt.Sprintf("to give back %s all the same: --intent %s", a.Intent, a.Intent); {
	case errors.Is(err, cloud.ErrNoKey):
		fmt.Fprintln(d.People(), notRead)
	case err != nil:
		return fmt.Errorf("%w\n%s", err, insist)
	case f.Charges() > 1:
		return fmt.Errorf("%w: refund the other payment in Stripe's Dashboard, see orders show %s\n%s",
			errChargedTwice, a.OrderID, insist)
	}
	if back := f.BackElsewhere(); back != "" {
		fmt.Fprintf(d.People(), "WARNING: %s: the customer may have what you want to give back\n", back)
	}
	return nil
}

// before reports whether the refund was made before, and returns an error if it cannot be
// made. A refund that is open is posted again: the first message may be lost, and a
// second one does no harm.
func before(a refund.Account, r refund.Request, now time.Time) (made bool, err error) {
	err = refund.CheckBegin(a, r, order.Lease{From: now})
	if errors.Is(err, order.ErrConflict) {
		return false, errIDTaken
	}
	if _, running := errors.AsType[*order.InProgressError](err); running {
		return false, nil
	}
	if settled, ok := errors.AsType[*refund.SettledError](err); ok {
		return settled.Item.Status.Counts(), outcomeError(settled.Item)
	}
	if _, exceeds := errors.AsType[*refund.ExceedsError](err); exceeds {
		return false, tooLittle(a, err)
	}
	return false, err
}

// tooLittle returns the error that too little is left, with what may free more.
func tooLittle(a refund.Account, err error) error {
	if a.Refunded() == 0 {
		return err
	}
	return fmt.Errorf("%w: if a refund may have failed since, orders refresh %s", err, a.OrderID)
}

// alike returns the other refunds of the same amount that were made or may be: one of
// them may be what the person means.
func alike(a refund.Account, r refund.Request) []refund.Item {
	return slices.DeleteFunc(slices.Clone(a.Items), func(i refund.Item) bool {
		over := i.Status == refund.Failed || i.Status == refund.Refused
		return i.ID == r.ID() || i.Amount != r.Amount() || over
	})
}

// follow waits until the refund is settled, and prints each change and the outcome.
func (m makeRefund) follow(ctx context.Context, d cloud.Deployment, r refund.Request) error {
	fmt.Fprintf(d.People(), "Posted refund %s, waiting up to %s ...\n", r.ID(), m.Limit)
	ctx, cancel := context.WithTimeout(ctx, m.Limit)
	defer cancel()
	var printed string
	var a refund.Account
	var i refund.Item
	err := cloud.Until(ctx, lookEvery, func() (done bool, err error) {
		if a, err = d.Accounts().Load(ctx, r.OrderID()); err != nil {
			return false, err
		}
		i, _ = a.Item(r.ID())
		if s := view.Refund(i); s != printed {
			fmt.Fprintln(d.People(), "  "+s)
			printed = s
		}
		return i.Status != "" && i.Status != refund.Open, nil
	})
	switch {
	case ctx.Err() != nil && err != nil:
		return fmt.Errorf("refund %s: not settled after %s: %s: run the same command again. "+
			"If processing is stopped, it waits in the refund queue. It may be parked: orders dead-letters show %s",
			r.ID(), m.Limit, cmp.Or(printed, "no answer of the table"), r.OrderID())
	case err != nil:
		return err
	}
	fmt.Fprintln(d.People(), "\n"+view.Account(a))
	return errors.Join(d.Record(view.NewAccountJSON(a)), outcomeError(i))
}

// outcomeError returns an error unless the refund was made, with what to do next.
func outcomeError(i refund.Item) error {
	switch i.Status {
	case refund.Pending, refund.Succeeded:
		return nil
	case refund.Unknown:
		return fmt.Errorf("%w: refund %s may have been made: see `orders refund resolve --help`",
			errNotRefunded, i.ID)
	case refund.Failed, refund.Refused, refund.Open:
	}
	return fmt.Errorf("%w: refund %s is %s (%s): another try needs another --refund-id",
		errNotRefunded, i.ID, i.Status, i.Failure)
}
