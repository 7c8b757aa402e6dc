// Package baselines holds common ways to charge an order once for an SQS message, each
// written against the same small table and the same Stripe client. The storm runs them
// beside the product: if it found no fault in them, it would show nothing about it. Where
// a text leaves a choice, the baseline takes the safer one. README.md shows what each
// does to an order.
package baselines

import (
	"context"
	"time"
)

// Baseline is one way to handle an order message.
type Baseline struct {
	Name   string
	Does   string // what it does, in a few words
	Fails  string // where it fails
	FIFO   bool   // it needs a FIFO queue
	Handle Handler
}

// Handler handles one message. Nil deletes the message; after an error it is redelivered.
// A handler keeps no state, starts no goroutine, and reaches everything through Env.
type Handler func(context.Context, Env, Message) error

// Message is an SQS message. A redelivery has the same ID; a redrive, or a producer that
// sends the order again, has another one.
type Message struct{ ID, Body string }

// Env is what a handler may use.
type Env struct {
	Table    Table
	Stripe   *Stripe
	Now      func() time.Time // the only clock
	Deadline time.Time        // when Lambda ends the invocation; never zero
}

// All returns every baseline, the simplest first, and those with the bind last.
func All() []Baseline { return append(usual(), withBind()...) }

func usual() []Baseline {
	return []Baseline{
		{
			Name: "check-then-act", Handle: parsed(checkThenAct),
			Does:  "read the order's row; if there is none, charge and put the row",
			Fails: "two concurrent deliveries find no row; a crash or timeout before the put hides the charge",
		},
		{
			Name: "message-id-before", Handle: parsed(messageIDBefore),
			Does:  "put the messageId if it is absent, then charge",
			Fails: "a charge that fails after the put is never retried; a redrive has another messageId",
		},
		{
			Name: "message-id-after", Handle: parsed(messageIDAfter),
			Does:  "charge, then put the messageId",
			Fails: "two concurrent deliveries; a crash or timeout before the put",
		},
		{
			Name: "short-lock", Handle: parsed(shortLock),
			Does:  "lock the messageId for five seconds; log a warning if it is locked; charge",
			Fails: "every duplicate is charged: the lock stops no one",
		},
		{
			Name: "stripe-key", Handle: parsed(stripeKey),
			Does:  "one call with the orderId as Stripe's idempotency key",
			Fails: "a retry after 24 h; a 500 that Stripe stored under the key",
		},
		{
			Name: "idempotency-record-24h", Handle: parsed(idempotencyRecord),
			Does:  "an idempotency record by orderId for 24 h with payload check, and a Stripe key",
			Fails: "a redrive after 24 h; a crash between charge and record, retried after 24 h",
		},
		{
			Name: "look-up", Handle: parsed(lookUp),
			Does:  "look for the order's PaymentIntent in Stripe's list; if there is none, charge",
			Fails: "two concurrent deliveries find no intent",
		},
		{
			Name: "fifo", Handle: parsed(fifo), FIFO: true,
			Does:  "a FIFO queue and a random Stripe key: charge each message",
			Fails: "a message that comes again, after a crash, a timeout or an error",
		},
		{
			Name: "step-functions", Handle: stepFunctions(chargeTasks),
			Does: "a standard workflow with the orderId as name, and the tasks charge, with a Stripe key, and save: " +
				"a model of its documents",
			Fails: "a redrive after 24 h of a task charge that did not return",
		},
	}
}

func withBind() []Baseline {
	const fails = "a 500 to create that Stripe stored under the key waits for 24 h"
	return []Baseline{
		{
			Name: "stripe-key + bind", Handle: parsed(bound), Fails: fails,
			Does: "create an intent with the orderId as key, write its id to the row unless it has one, " +
				"confirm that of the row",
		},
		{Name: "fifo + bind", Handle: parsed(bound), FIFO: true, Fails: fails, Does: "the same from a FIFO queue"},
		{
			Name: "step-functions + bind", Handle: stepFunctions(bindTasks), Fails: fails,
			Does: "the workflow of step-functions with the same in its tasks",
		},
	}
}

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

func rowID(orderID string) string { return "order#" + orderID }

// chargeAndSave charges the order and writes its row. idempotencyKey is Stripe's, or ""
// for a random one.
func chargeAndSave(ctx context.Context, e Env, o order, idempotencyKey string) error {
	status, err := e.Stripe.charge(ctx, o, idempotencyKey)
	if err != nil {
		return err
	}
	return saveRow(ctx, e, o, status)
}

func saveRow(ctx context.Context, e Env, o order, s Status) error {
	return e.put(ctx, Item{ID: rowID(o.ID), Status: s, Amount: o.amount()})
}

// put puts an item in any case.
func (e Env) put(ctx context.Context, item Item) error {
	_, err := e.Table.Put(ctx, item, Condition{})
	return err
}
