package main

import (
	"context"
	"errors"

	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// unwired stands for Stripe until its adapter has refunds. Every refund waits in the
// queue.
type unwired struct{ refund.Session }

var errUnwired = errors.New("refunds are not wired in this release")

// Open implements refund.Provider.
func (u unwired) Open(context.Context) refund.Session { return u } //nolint:ireturn // as the port

// Read implements refund.Session. The other methods are not called after its error.
func (unwired) Read(context.Context, order.IntentID) (refund.Ledger, error) {
	return refund.Ledger{}, &order.PaymentError{Kind: order.KindUnavailable, Err: errUnwired}
}

// Close implements refund.Session.
func (unwired) Close() {}
