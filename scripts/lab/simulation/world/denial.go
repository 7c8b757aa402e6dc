package world

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"orderonce/domain/order"
	"orderonce/scripts/lab/simulation/oracle"
)

// permission is an action that the function's role allows, or its Stripe key.
type permission string

// The permissions that the product needs. A transaction needs those of its parts
// (DynamoDB developer guide, "Using IAM with DynamoDB transactions").
const (
	updateItem       permission = "dynamodb:UpdateItem"
	putItem          permission = "dynamodb:PutItem"
	query            permission = "dynamodb:Query"
	sendMessage      permission = "sqs:SendMessage"
	deleteMessage    permission = "sqs:DeleteMessage"
	changeVisibility permission = "sqs:ChangeMessageVisibility"
	writeIntents     permission = "write of PaymentIntents"
	readIntents      permission = "read of PaymentIntents"
	putEvents        permission = "events:PutEvents" // of a world with a stream
)

func permissions() []permission {
	return []permission{
		updateItem, putItem, query, sendMessage, deleteMessage, changeVisibility, writeIntents, readIntents,
		putEvents,
	}
}

// denial is a permission that is missing for a while. The zero denial denies nothing.
type denial struct {
	of    permission
	until time.Time
}

// How long a denial lasts: longer than a lease, and in some worlds longer than the
// deliveries after which an order that fails by itself is parked.
const (
	denialLasts     = 10 * time.Minute
	longDenialLasts = 4 * time.Hour
)

// errDenied is the error of AWS.
var errDenied = errors.New("AccessDeniedException: not authorized to perform this action")

// denied reports whether a call lacks a permission. In a batch Lambda deletes what is
// done.
func (w *World) denied(c oracle.Call) bool {
	needs := w.lab.specs[c.Name].needs
	if c.Name == oracle.Reply {
		needs = []permission{deleteMessage}
		switch order.Verdict(c.Subject) {
		case order.Park:
			needs[0] = sendMessage
		case order.Redeliver:
			needs[0] = changeVisibility
		case order.Done:
		}
	}
	return w.denying() && slices.Contains(needs, w.incidents.denial.of)
}

func (w *World) denying() bool {
	d := w.incidents.denial
	return d.of != "" && w.Now.Before(d.until)
}

// deny denies a permission to every worker for a while.
func (w *World) deny(of permission) {
	lasts := denialLasts
	if w.setup.Restless && w.setup.Variety%4 == 0 {
		lasts = longDenialLasts
	}
	w.incidents.denial = denial{of: of, until: w.Now.Add(lasts)}
	w.happens("administrator", fmt.Sprintf("denies %s for %v", of, lasts))
}

// allow ends a denial early, because a person has noticed.
func (w *World) allow() {
	w.happens("administrator", "allows "+string(w.incidents.denial.of)+" again")
	w.incidents.denial = denial{}
}

// denials returns the permissions that can be denied next. One denial in a world is
// enough.
func (w *World) denials(options []option) []option {
	if w.incidents.denial.of != "" {
		return options
	}
	for i, p := range permissions() {
		if p == putEvents && !w.setup.Publish {
			continue
		}
		options = append(options, option{kind: deny, n: i})
	}
	return options
}
