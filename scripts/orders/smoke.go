package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"orderonce/adapters/sqs/orders"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

type smoke struct {
	Customer string        `and:"payer" help:"An existing customer, instead of a new one in Stripe's test mode. Needs --method."`
	Method   string        `and:"payer" help:"A payment method of that customer, such as pm_card_visa where Stripe is pretend."`
	Limit    time.Duration `default:"2m" help:"Fail if the order is not settled by then."`
}

// Help explains the command beyond its one line.
func (smoke) Help() string {
	return `It compares the settings of the queues with what the function assumes, creates a customer in Stripe's
test mode, posts an order of 1.00 USD, and waits until its row is paid and Stripe agrees. Then it gives
0.40 USD back, which fails if something on the way to Stripe closes connections. It refuses a live key.

Examples:
  orders smoke
  orders smoke --customer cus_Me --method pm_card_visa`
}

// refundOfSmoke is what the smoke test gives back. A refund needs what a charge does not:
// a connection that outlives a request.
const refundOfSmoke = 40

// Run posts one order and returns an error unless it is paid, Stripe agrees, and a part
// of it goes back.
func (s smoke) Run(ctx context.Context, sh shell) error {
	c, cfg, err := connect[smokeConfig](ctx, sh)
	if err != nil {
		return err
	}
	if err := c.compareQueues(ctx, cfg, sh.people()); err != nil {
		return err
	}
	id := newID(sh.now())
	who := payer{Customer: s.Customer, Method: s.Method}
	if who == (payer{}) {
		if who, err = newPayers(c.Stripe).create(ctx, c.Stripe.Scope+"/smoke/"+id); err != nil {
			return err
		}
		fmt.Fprintf(
			sh.people(), "Created customer %s with payment method %s in Stripe's test mode\n",
			who.Customer, who.Method,
		)
	}
	body, o, err := compose(id, who)
	if err != nil {
		return err
	}
	queue := newQueue(cfg, c.Queue)
	p := probe{
		send: queue.send, load: c.Stripe.Orders.store(cfg).Load, read: c.Stripe.payments().Read,
		scope: order.Scope(c.Stripe.Scope), now: sh.now, every: 500 * time.Millisecond, out: sh.people(),
	}
	if err := p.follow(ctx, o, body, s.Limit); err != nil {
		return err
	}
	return c.Stripe.Orders.cashier(cfg, queue, sh).refund(ctx, makeRefund{
		Order: id, Amount: refundOfSmoke, Reason: string(refund.RequestedByCustomer), Yes: true, Limit: s.Limit,
	})
}

// newID returns a new orderId that shows its purpose.
func newID(now time.Time) string {
	return "SMOKE-" + now.UTC().Format("20060102-150405-") + strings.ToLower(rand.Text()[:6])
}

// compose encodes the message, and decodes it as the function does.
func compose(id string, who payer) (string, order.Order, error) {
	body, err := json.Marshal(map[string]any{
		"orderId": id, "customerId": "smoke", "currency": "usd",
		"lines":   []map[string]any{{"sku": "SMOKE", "quantity": 1, "unitAmount": 100}},
		"payment": map[string]string{"customer": who.Customer, "method": who.Method},
	})
	if err != nil {
		return "", order.Order{}, err
	}
	o, err := orders.NewDecoder().Decode(string(body))
	return string(body), o, err
}
