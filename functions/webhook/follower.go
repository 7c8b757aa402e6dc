package main

import (
	"time"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/stripe"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// newFollower returns what follows hints: of a charge, then of its disputes, then of its
// refunds.
func newFollower(
	scope order.Scope, store *dynamodb.Store, payments *stripe.Payments, refunds *stripe.Refunds,
) *refund.Follower {
	orders := order.DisputeFollower{
		Follower: order.Follower{Records: store, Payments: payments, Scope: scope, Now: time.Now},
		Disputes: payments, Recorder: store,
	}
	return &refund.Follower{
		Orders: orders.Follow, Refresher: refund.Refresher{
			Records: dynamodb.NewRefunds(store), Provider: refunds, Scope: scope, Now: time.Now,
		},
	}
}
