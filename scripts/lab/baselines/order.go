package baselines

import (
	"context"
	"encoding/json"
	"fmt"
)

// order is the body of a message. Unknown fields are ignored, as encoding/json does by
// default.
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

func parseOrder(m Message) (o order, err error) {
	if err := json.Unmarshal([]byte(m.Body), &o); err != nil {
		return order{}, fmt.Errorf("parse message %q: %w", m.ID, err)
	}
	return o, nil
}

func (o order) amount() (total int64) {
	for _, l := range o.Lines {
		total += l.Quantity * l.UnitAmount
	}
	return total
}

// Status is the status in an order's row.
type Status string

// The statuses of a row.
const (
	Paid    Status = "PAID"
	Failed  Status = "FAILED" // declined, or authentication required: no baseline distinguishes them
	Pending Status = "PENDING"
)

// The statuses of an idempotency record.
const (
	inProgress Status = "INPROGRESS"
	completed  Status = "COMPLETED"
)

type payment struct {
	status Status
	intent string
}

// StatusOf returns the status in the order's row, or "" if the row does not exist.
func StatusOf(ctx context.Context, t Table, orderID string) (Status, error) {
	row, err := t.Get(ctx, rowID(orderID))
	return row.Status, err
}

func rowID(orderID string) string { return "order#" + orderID }

// chargeAndSave charges the order and writes its row. idempotencyKey is Stripe's, or ""
// for a random one.
func chargeAndSave(ctx context.Context, e Env, o order, idempotencyKey string) error {
	p, err := e.Stripe.charge(ctx, o, idempotencyKey)
	if err != nil {
		return err
	}
	return saveRow(ctx, e, o, p)
}

func saveRow(ctx context.Context, e Env, o order, p payment) error {
	row := Item{ID: rowID(o.ID), Status: p.status, Intent: p.intent, Amount: o.amount()}
	return e.Table.Put(ctx, row, Condition{})
}
