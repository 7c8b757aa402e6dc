package main

import (
	"time"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/adapters/stripe/dispute"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// newFollower returns what follows hints: of a charge, then of its disputes, then of its
// refunds.
func newFollower(scope order.Scope, store *dynamodb.Store, o stripe.Options) *refund.Follower {
	orders := order.DisputeFollower{
		Follower: order.Follower{Records: store, Payments: charge.New(o), Scope: scope, Now: time.Now},
		Disputes: dispute.New(o), Recorder: store,
	}
	return &refund.Follower{
		Orders: orders.Follow, Refresher: refund.Refresher{
			Records: dynamodb.NewRefunds(store), Provider: striperefund.New(o), Scope: scope, Now: time.Now,
		},
	}
}
