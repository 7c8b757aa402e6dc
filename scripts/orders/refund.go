package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/jobs"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

type makeRefund struct {
	Order    string        `arg:"" help:"The orderId."`
	Amount   int64         `required:"" type:"amount" xor:"amount" placeholder:"N" help:"In minor units: 1999 is 19.99 USD."`
	All      bool          `required:"" xor:"amount" help:"All that is left."`
	Reason   string        `required:"" enum:"duplicate,fraudulent,requested_by_customer" placeholder:"R" help:"${enum}."`
	RefundID string        `placeholder:"ID" help:"The refund's own id. Default: operator-N, or operator-all."`
	Yes      bool          `help:"Do not ask, for scripts."`
	Limit    time.Duration `default:"2m" help:"Fail if the refund is not settled by then."`
}

// Run makes one refund.
func (m makeRefund) Run(ctx context.Context, sh shell.Shell) error {
	d, err := cloud.Open(ctx, sh, "ORDERS_TABLE", "REFUND_QUEUE_URL", "SCOPE")
	if err != nil {
		return err
	}
	mode := "unknown"
	if r, err := d.Store().Load(ctx, order.ID(m.Order)); err == nil { // refund returns the error
		mode = cloud.ModeOf(r.Mode == order.LiveMode)
	}
	fmt.Fprintf(sh.People(), "table %s in %s, scope %s, Stripe in %s mode\nqueue %s\n\n",
		d.Table, d.AWS.Region, d.Scope, mode, d.RefundQueue)
	if err := newRefundPoster(d).refund(ctx, m); err != nil {
		return fmt.Errorf("refund order %q: %w", m.Order, d.Explain(err))
	}
	return nil
}

// refundPoster posts refunds and watches them.
type refundPoster struct {
	shell.Shell

	account func(context.Context, order.ID) (refund.Account, error)
	send    func(ctx context.Context, id order.ID, body string) error
	every   time.Duration
}

func newRefundPoster(d cloud.Deployment) refundPoster {
	queue := d.QueueAt(d.RefundQueue)
	return refundPoster{
		Shell: d.Shell, account: d.Accounts().Load, every: lookEvery,
		send: func(ctx context.Context, id order.ID, body string) error {
			return queue.Send(ctx, id, strconv.FormatInt(d.Now().UnixNano(), 10), body)
		},
	}
}

var (
	errNothingLeft = errors.New("nothing is left to refund")
	errIDTaken     = errors.New("refund id already used with another amount or reason: see --refund-id")
	errNotRefunded = errors.New("not refunded")
)

func (c refundPoster) refund(ctx context.Context, m makeRefund) error {
	a, err := c.account(ctx, order.ID(m.Order))
	if err != nil {
		return err
	}
	fmt.Fprintln(c.People(), view.Account(a))
	r, err := m.request(a)
	if err != nil {
		return err
	}
	if made, err := before(a, r, c.Now()); err != nil {
		return err
	} else if made {
		fmt.Fprintf(c.People(), "nothing posted: refund %s was made before; "+
			"another refund needs another --refund-id\n", r.ID())
		return c.Record(view.NewAccountJSON(a))
	}
	amount := order.Money{Amount: r.Amount(), Currency: a.Charged.Currency}
	for _, i := range alike(a, r) {
		fmt.Fprintf(c.People(), "WARNING: refund %s gives %s back as well: it is %s\n", i.ID, amount, i.Status)
	}
	ask := fmt.Sprintf("Refund %s gives %s back. Type the order id to make it: ", r.ID(), amount)
	if !m.Yes && !c.Confirms(ask, m.Order) {
		return shell.ErrNotConfirmed
	}
	if err := c.send(ctx, r.OrderID(), jobs.RefundBody(r)); err != nil {
		return err
	}
	return c.follow(ctx, r, m.Limit)
}

// request returns the refund. Its default id follows from the arguments alone.
func (m makeRefund) request(a refund.Account) (refund.Request, error) {
	id, amount := "operator-"+strconv.FormatInt(m.Amount, 10), m.Amount
	if m.All {
		id, amount = "operator-all", a.Left()
	}
	id = cmp.Or(m.RefundID, id)
	if i, known := a.Item(refund.ID(id)); known && m.All {
		amount = i.Amount
	}
	if m.All && amount <= 0 {
		return refund.Request{}, errNothingLeft
	}
	return refund.New(refund.Draft{OrderID: m.Order, RefundID: id, Amount: amount, Reason: m.Reason})
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
	return false, err
}

// alike returns the other refunds of the same amount that were made or may be: one of
// them may be what the person means.
func alike(a refund.Account, r refund.Request) (others []refund.Item) {
	for _, i := range a.Items {
		over := i.Status == refund.Failed || i.Status == refund.Refused
		if i.ID != r.ID() && i.Amount == r.Amount() && !over {
			others = append(others, i)
		}
	}
	return others
}

// follow waits until the refund is settled, and prints each change and the outcome.
func (c refundPoster) follow(ctx context.Context, r refund.Request, limit time.Duration) error {
	fmt.Fprintf(c.People(), "Posted refund %s, waiting up to %s ...\n", r.ID(), limit)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var printed string
	var a refund.Account
	var i refund.Item
	err := cloud.Until(ctx, c.every, func() (done bool, err error) {
		if a, err = c.account(ctx, r.OrderID()); err != nil {
			return false, err
		}
		i, _ = a.Item(r.ID())
		if s := view.Refund(i); s != printed {
			fmt.Fprintln(c.People(), "  "+s)
			printed = s
		}
		return i.Status != "" && i.Status != refund.Open, nil
	})
	switch {
	case ctx.Err() != nil && err != nil:
		return fmt.Errorf("refund %s: not settled after %s: %s: run the same command again, "+
			"or look for the message in the dead-letter queue", r.ID(), limit, cmp.Or(printed, "no answer of the table"))
	case err != nil:
		return err
	}
	fmt.Fprintln(c.People(), "\n"+view.Account(a))
	return errors.Join(c.Record(view.NewAccountJSON(a)), outcomeError(i))
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
