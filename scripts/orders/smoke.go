package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"orderonce/adapters/sqs/orders"
	"orderonce/adapters/stripe"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

type smoke struct {
	Customer string        `and:"payer" help:"An existing customer, instead of a new one in Stripe's test mode. Needs --method."`
	Method   string        `and:"payer" help:"A payment method of that customer, such as pm_card_visa where Stripe is pretend."`
	Limit    time.Duration `default:"2m" help:"Fail if the order is not settled by then."`
}

// refundOfSmoke is what the smoke test gives back. A refund needs what a charge does not:
// a connection that outlives a request.
const refundOfSmoke = "0.40"

var errLiveKey = errors.New("STRIPE_SECRET_KEY: want a test key, which starts with sk_test_ or rk_test_; " +
	"got a live one, which refuses the smoke test's card")

// Run posts one order and returns an error unless it is paid, Stripe agrees, and a part
// of it goes back.
func (s smoke) Run(ctx context.Context, sh shell.Shell) error {
	d, err := cloud.OpenStripe(ctx, sh, "QUEUE_URL", "DEAD_LETTER_QUEUE_URL")
	if err != nil {
		return err
	}
	if stripe.Live(d.Key.Reveal()) {
		return errLiveKey
	}
	if err := d.CompareQueues(ctx); err != nil {
		return err
	}
	id := newID(d.Now())
	who := order.Payment{Customer: s.Customer, Method: s.Method}
	if who == (order.Payment{}) {
		if who, err = cloud.NewPayers(d.Env).Create(ctx, string(d.Scope)+"/smoke/"+id); err != nil {
			return err
		}
		fmt.Fprintf(d.People(), "Created customer %s with payment method %s in Stripe's test mode\n",
			who.Customer, who.Method)
	}
	draft := order.Draft{
		ID: id, CustomerID: "smoke", Currency: "usd", Payment: who,
		Lines: []order.Line{{SKU: "SMOKE", Quantity: 1, UnitAmount: 100}},
	}
	o, err := order.New(draft)
	if err != nil {
		return err
	}
	if err := d.QueueAt(d.Queue).Send(ctx, o.ID(), id, orders.Encode(draft)); err != nil {
		return err
	}
	fmt.Fprintf(d.People(), "Posted order %s, waiting up to %s ...\n", id, s.Limit)
	if err := follow(ctx, d, o, s.Limit); err != nil {
		return err
	}
	if d.RefundQueue == "" {
		fmt.Fprintln(d.People(), "nothing refunded: REFUND_QUEUE_URL is not set")
		return nil
	}
	return newRefundPoster(d).refund(ctx, makeRefund{
		Order: id, Amount: refundOfSmoke, Reason: string(refund.RequestedByCustomer), Yes: true, Limit: s.Limit,
	})
}

// newID returns a new orderId that shows its purpose.
func newID(now time.Time) string {
	return "SMOKE-" + now.UTC().Format("20060102-150405-") + strings.ToLower(rand.Text()[:6])
}

// lookEvery is the time between two looks at a row that a command waits for.
const lookEvery = 500 * time.Millisecond

// follow waits until an order is settled, and returns an error unless the row is paid and
// the intent at Stripe matches it.
func follow(ctx context.Context, d cloud.Deployment, o order.Order, limit time.Duration) error {
	r, err := await(ctx, d, o.ID(), limit)
	if err != nil {
		return err
	}
	bound := cmp.Or(string(r.Intent), "no intent bound")
	fmt.Fprintf(d.People(), "row     %s, %s, attempt %d, %s\n", r.Status, r.Total, r.Attempt, bound)
	var intent order.Intent
	if r.Intent != "" {
		if intent, err = d.Payments().Read(ctx, r.Intent); err != nil {
			return err
		}
		fmt.Fprintf(d.People(), "charge  %s, %s, %s\n", intent.State, intent.Total, intent.ID)
	}
	return compare(d.Scope, o, r, intent)
}

// await loads the row until it is settled, and prints each change.
func await(ctx context.Context, d cloud.Deployment, id order.ID, limit time.Duration) (order.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began, printed, store := d.Now(), "", d.Store()
	var r order.Record
	err := cloud.Until(ctx, lookEvery, func() (done bool, err error) {
		now, err := store.Load(ctx, id)
		if err != nil && !errors.Is(err, order.ErrNotFound) {
			return false, fmt.Errorf("load order %q: %w", id, err)
		}
		r = now
		if s := summary(r); s != printed {
			fmt.Fprintf(d.People(), "  %5.1f s  %s\n", d.Now().Sub(began).Seconds(), s)
			printed = s
		}
		return r.Status != "" && r.Status != order.Open, nil
	})
	if err != nil && ctx.Err() != nil {
		took := d.Now().Sub(began).Round(time.Second)
		err = fmt.Errorf("order %q: not settled after %s: %s%s", id, took, summary(r), advice(r))
	}
	return r, err
}

// summary describes a row in one line.
func summary(r order.Record) string {
	if r.Status == "" {
		return "no row yet"
	}
	words := []string{string(r.Status)}
	if r.Failure != "" {
		words = append(words, r.Failure)
	}
	if r.Status == order.Open {
		words = append(words, fmt.Sprintf("attempt %d", r.Attempt), cmp.Or(string(r.Intent), "no intent bound"))
	}
	if r.LastError != "" {
		words = append(words, "last error "+r.LastError)
	}
	return strings.Join(words, ", ")
}

// advice says where to look next.
func advice(r order.Record) string {
	switch {
	case r.Status == "":
		return ": check the function's log, that its event source mapping is enabled, " +
			"and that ORDERS_TABLE is its table"
	case r.LastError != "":
		return ": see docs/reference/failures.md"
	}
	return ""
}

// compare returns an error unless the order, its row and its intent agree.
func compare(s order.Scope, o order.Order, r order.Record, i order.Intent) error {
	switch {
	case !r.Status.Charged():
		return fmt.Errorf("order %q: status %s: want paid", o.ID(), summary(r))
	case r.Total != o.Total():
		return fmt.Errorf("order %q: amount mismatch: the row has %s, want %s", o.ID(), r.Total, o.Total())
	case i.State != order.Succeeded:
		return fmt.Errorf("order %q: ledger mismatch: intent %s is %s: want %s",
			o.ID(), i.ID, i.State, order.Succeeded)
	}
	if err := order.Verify(i, s, o.ID(), o.Total()); err != nil {
		return fmt.Errorf("order %q: ledger mismatch: %w", o.ID(), err)
	}
	return nil
}
