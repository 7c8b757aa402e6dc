package simulation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// action is what the function's role allows, or its Stripe key.
type action string

// The actions that the product needs. A transaction needs those of its parts (DynamoDB
// developer guide, "Using IAM with DynamoDB transactions").
const (
	updateItem       action = "dynamodb:UpdateItem"
	putItem          action = "dynamodb:PutItem"
	query            action = "dynamodb:Query"
	sendMessage      action = "sqs:SendMessage"
	deleteMessage    action = "sqs:DeleteMessage"
	changeVisibility action = "sqs:ChangeMessageVisibility"
	writeIntents     action = "write of PaymentIntents"
	readIntents      action = "read of PaymentIntents"
)

func actions() []action {
	return []action{
		updateItem, putItem, query, sendMessage, deleteMessage, changeVisibility, writeIntents, readIntents,
	}
}

// denial is one action that nobody may take until somebody notices. The zero denial
// denies nothing.
type denial struct {
	of    action
	until time.Time
}

// How long a denial lasts: longer than a lease, and in some worlds longer than the 20
// deliveries after which an order that fails by itself is parked.
const (
	denialLasts     = 10 * time.Minute
	longDenialLasts = 4 * time.Hour
)

// errDenied is what AWS answers.
var errDenied = errors.New("AccessDeniedException: not authorized to perform this action")

// needs lists the actions without which a call is refused.
func (c call) needs() []action {
	switch c.name {
	case ordertest.Begin, ordertest.Bind, ordertest.Release:
		return []action{updateItem}
	case ordertest.Finish, settle:
		return []action{updateItem, putItem}
	case load:
		return []action{query}
	case park:
		return []action{sendMessage}
	case back:
		return []action{changeVisibility}
	case ordertest.Read, ordertest.Find:
		return []action{readIntents}
	case ordertest.Prepare, ordertest.Confirm:
		return []action{writeIntents}
	case reply:
		return needsOf(order.Verdict(c.subject))
	case stored, pays:
	}
	return nil
}

// needsOf lists what an answer to the queue needs. In a batch Lambda deletes what is
// done.
func needsOf(v order.Verdict) []action {
	switch v {
	case order.Park:
		return []action{sendMessage}
	case order.Redeliver:
		return []action{changeVisibility}
	case order.Done:
	}
	return []action{deleteMessage}
}

// denied reports whether a call is refused now. It is no answer about the order.
func (w *World) denied(c call) bool {
	return w.denying() && slices.Contains(c.needs(), w.denial.of)
}

func (w *World) denying() bool { return w.denial.of != "" && w.now.Before(w.denial.until) }

// deny takes an action away from everybody for a while.
func (w *World) deny(of action) {
	lasts := denialLasts
	if w.Restless && w.Variety%4 == 0 {
		lasts = longDenialLasts
	}
	w.denial = denial{of: of, until: w.now.Add(lasts)}
	w.happens("administrator", fmt.Sprintf("denies %s for %v", of, lasts))
}

// allow ends a denial early, because somebody has noticed.
func (w *World) allow() {
	w.happens("administrator", "allows "+string(w.denial.of)+" again")
	w.denial = denial{}
}

// denials lists the actions that can be denied next, those of Stripe's key included.
func (w *World) denials(ways []way) []way {
	if w.denial.of != "" {
		return ways // one denial in a world is enough
	}
	for i := range actions() {
		ways = append(ways, way{does: denies, n: i})
	}
	return ways
}
