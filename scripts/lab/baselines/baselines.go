// Package baselines holds common ways to charge an order once for an SQS message, each
// written against the same small table and the same Stripe client. The simulation and the
// storm run them beside the product: a search that finds no fault in them would prove
// nothing about the product. Where a text leaves a choice, the baseline takes the safer
// one. README.md shows where each fails.
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
	Handle Handler
}

// Handler handles one message. Nil deletes the message; after an error it is redelivered.
// A handler keeps no state between messages, starts no goroutine and sets no timer, and
// it reaches everything through Env.
type Handler func(context.Context, Env, Message) error

// Message is an SQS message. A redelivery has the same ID; a redrive, or a producer that
// sends the order again, has another one.
type Message struct{ ID, Body string }

// Env is what a handler may use.
type Env struct {
	Table    Table
	Stripe   *Stripe
	Now      func() time.Time  // the only clock
	Deadline time.Time         // when Lambda ends the invocation; never zero
	Warn     func(text string) // logs a warning; nil discards it
}

func (e Env) warn(text string) {
	if e.Warn != nil {
		e.Warn(text)
	}
}

// All returns every baseline, the simplest first.
func All() []Baseline {
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
	}
}
