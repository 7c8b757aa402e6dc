package baselines

import (
	"context"
	"encoding/json"
	"fmt"
)

// order is a message's body as the articles read one: plain JSON, and what they do not know is dropped.
type order struct {
	ID       string `json:"orderId"`
	Currency string `json:"currency"`
	Lines    []struct {
		Quantity   int64 `json:"quantity"`
		UnitAmount int64 `json:"unitAmount"`
	} `json:"lines"`
	Payment struct {
		Customer string `json:"customer"`
		Method   string `json:"method"`
	} `json:"payment"`
}

func orderOf(m Message) (o order, err error) {
	if err := json.Unmarshal([]byte(m.Body), &o); err != nil {
		return order{}, fmt.Errorf("message %q: %w", m.ID, err)
	}
	return o, nil
}

func (o order) amount() (total int64) {
	for _, l := range o.Lines {
		total += l.Quantity * l.UnitAmount
	}
	return total
}

// Status is what a design tells the customer.
type Status string

// The statuses.
const (
	Paid    Status = "PAID"
	Failed  Status = "FAILED" // the card was declined, or the bank wants the customer: they do not look which
	Pending Status = "PENDING"
)

type payment struct {
	status Status
	intent string
}

// StatusOf is what the order's row says, or "" if there is none.
func StatusOf(ctx context.Context, t Table, orderID string) (Status, error) {
	row, err := t.Get(ctx, rowOf(orderID))
	s, _ := row["status"].(S)
	return Status(s), err
}

func rowOf(orderID string) string { return "order#" + orderID }

// work is what the message is for: the order is charged, under the Stripe key or none, and its row says so. Between the two
// lies every design's gap.
func work(ctx context.Context, e Env, o order, stripeKey string) error {
	p, err := e.Stripe.pay(ctx, o, stripeKey)
	if err != nil {
		return err
	}
	return save(ctx, e, o, p)
}

func save(ctx context.Context, e Env, o order, p payment) error {
	return e.Table.Put(ctx, Item{ID: S(rowOf(o.ID)), "status": S(p.status), "intent": S(p.intent), "amount": N(o.amount())})
}
