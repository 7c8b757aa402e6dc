package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/caarlos0/env/v11"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/refund"
)

// report is what is known about one order.
type report struct {
	id      order.ID
	now     time.Time
	record  *order.Record   // nil if the row does not exist
	account *refund.Account // nil if the order was not charged

	receipts []receipt.Item
	asked    bool           // Stripe was read
	intents  []order.Intent // every one of the order, newest first
	ledger   refund.Ledger  // of the bound intent, if it was charged
}

// readTable reads the row. A row that is missing is not an error.
func (f *report) readTable(ctx context.Context, c tableConfig, cfg aws.Config) error {
	r, err := c.store(cfg).Load(ctx, f.id)
	if errors.Is(err, order.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	f.record = &r
	if !r.Status.Charged() {
		return nil
	}
	a, err := c.refunds(cfg).Account(ctx, f.id)
	f.account = &a
	return err
}

// readReceipts reads the receipts of the order, if there is a table of them.
func (f *report) readReceipts(ctx context.Context, table string, cfg aws.Config) (err error) {
	if table == "" {
		return nil
	}
	if f.receipts, err = dynamodb.NewReceipts(cfg, table).OfOrder(ctx, f.id); err != nil {
		return fmt.Errorf("read the receipts of order %q: %w", f.id, err)
	}
	return nil
}

// readStripe reads every payment of the order at Stripe, if the environment has a key.
func (f *report) readStripe(ctx context.Context, environ []string) error {
	if env.ToMap(environ)["STRIPE_SECRET_KEY"] == "" {
		return nil
	}
	if err := f.readPayments(ctx, environ); err != nil {
		return fmt.Errorf("read the payments of order %q at Stripe: %w", f.id, err)
	}
	return nil
}

func (f *report) readPayments(ctx context.Context, environ []string) error {
	c, err := config.Read[stripeConfig](environ)
	if err != nil {
		return err
	}
	payments := c.payments()
	if f.intents, err = payments.Find(ctx, f.id); err != nil {
		return err
	}
	f.asked = true
	if f.record == nil || f.record.Intent == "" {
		return nil
	}
	bound := f.record.Intent
	if !slices.ContainsFunc(f.intents, func(i order.Intent) bool { return i.ID == bound }) {
		i, err := payments.Read(ctx, bound) // the search lags
		if err != nil {
			f.asked = false
			return err
		}
		f.intents = append(f.intents, i)
	}
	if f.account == nil {
		return nil
	}
	session := c.refunds().Open(ctx)
	defer session.Close()
	f.ledger, err = session.Read(ctx, bound)
	return err
}

// charges returns how often Stripe charged the order.
func (f *report) charges() (n int) {
	for _, i := range f.intents {
		if i.State == order.Succeeded {
			n++
		}
	}
	return n
}

// charged returns an intent that charged the order or, if none did, the newest one.
func (f *report) charged() order.IntentID {
	for _, i := range f.intents {
		if i.State == order.Succeeded {
			return i.ID
		}
	}
	return f.intents[0].ID
}

// surplus returns the intents that charged the order beside the one that is bound.
func (f *report) surplus() (ids []string) {
	for _, i := range f.intents {
		if i.State == order.Succeeded && i.ID != f.record.Intent {
			ids = append(ids, string(i.ID))
		}
	}
	return ids
}

// text formats the report for a person.
func (f *report) text() string {
	var b strings.Builder
	if f.record != nil {
		b.WriteString(describe(*f.record))
	}
	if a := f.account; a != nil && (len(a.Items) > 0 || a.Outside != 0) {
		b.WriteString(describeRefunds(*a))
	}
	for _, i := range f.receipts {
		fmt.Fprintf(&b, "receipt    %s  %s %s  %s\n",
			stamp(i.UpdatedAt), i.Key, i.Status, cmp.Or(i.Failure, string(i.Message), "-"))
	}
	if f.asked {
		b.WriteString(f.atStripe())
	}
	fmt.Fprintf(&b, "next       %s\n", f.next())
	return b.String()
}

// atStripe formats what Stripe has of the order.
func (f *report) atStripe() string {
	var b strings.Builder
	switch n := f.charges(); n {
	case 0:
		b.WriteString("charged    no\n")
	case 1:
		b.WriteString("charged    once\n")
	default:
		fmt.Fprintf(&b, "charged    %d TIMES\n", n)
	}
	for _, i := range f.intents {
		bound := ""
		if f.record == nil || f.record.Intent != i.ID {
			bound = ", not bound to the order"
		}
		fmt.Fprintf(&b, "at Stripe  %s, %s, %s%s\n           %s\n", i.ID, i.State, i.Total, bound, dashboard(i))
	}
	if len(f.ledger.Refunds) > 0 {
		b.WriteString(describeLedger(f.ledger))
	}
	return b.String()
}

// dashboard returns the address of a payment in Stripe's Dashboard.
func dashboard(i order.Intent) string {
	mode := ""
	if i.Mode == order.TestMode {
		mode = "test/"
	}
	return "https://dashboard.stripe.com/" + mode + "payments/" + string(i.ID)
}

// next returns what happens to the order by itself, or what a person must do.
func (f *report) next() string {
	switch r := f.record; {
	case r == nil:
		return "a message of this order prepares another payment: restore the row first (orders restore --help)"
	case r.Intent != "" && f.charges() > 1:
		return "refund " + strings.Join(f.surplus(), " and ") + " at Stripe, unless that was done: " +
			"docs/guides/runbooks.md#4-a-customer-says-they-were-charged-twice"
	case r.Status == order.Open && !r.ParkedAt.IsZero():
		return "nothing by itself: its message is in the dead-letter queue, because of " + r.LastError
	case r.Status == order.Open && order.Held(r.Until, f.now):
		return "a function works on it until " + stamp(r.Until)
	default:
		return nextOf(r.Status) + recheck(r.DueAt)
	}
}

func nextOf(s order.Status) string {
	switch s {
	case order.Open:
		return "its message comes back"
	case order.ActionRequired:
		return "the customer must authenticate"
	case order.Pending:
		return "the bank decides, within days"
	case order.Declined:
		return "nothing charges it, unless the customer pays the same PaymentIntent; sell again under a new orderId"
	case order.Canceled:
		return "nothing: it stays canceled"
	case order.OutOfStock:
		return "nothing: it is never charged; sell again under a new orderId when there are goods"
	case order.Refused:
		return "nothing by itself: correct the cause, then redrive its message"
	case order.Paid, order.PartiallyRefunded, order.Refunded:
	}
	return "nothing: it is settled"
}

func recheck(due time.Time) string {
	if due.IsZero() {
		return ""
	}
	return "; reconcile looks at it from " + stamp(due) + " on"
}
