package system

import (
	"context"

	"orderonce/adapters/lambda/lambdatest"
)

func (s *System) refundPair() pair { return pair{s.named(RefundQueue), s.named(DeadRefunds)} }

// firstRefundInstance is the number of the refund function's first instance, less one.
const firstRefundInstance = 100

// startRefund starts the function of the refund queue.
func (s *System) startRefund(context.Context) (err error) {
	observe := s.Options.ObserveInstance
	if observe != nil {
		observe = func(e lambdatest.Event) {
			e.Instance += firstRefundInstance
			s.Options.ObserveInstance(e)
		}
	}
	tables := s.tables()
	delete(tables, "STOCK_TABLE")
	s.Refund, err = s.startConsumer(s.Options.Refund, observe,
		tables, s.stripe(StripeWaits), s.consumes(s.refundPair(), OrderBudget))
	return err
}
