package refundtest_test

import (
	"sync/atomic"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund/refundtest"
)

func TestBank(t *testing.T) {
	refundtest.TestProvider(t, func(*testing.T) refundtest.ProviderUnderTest {
		var ahead atomic.Int64
		now := func() time.Time { return time.Unix(1_767_225_600, 0).Add(time.Duration(ahead.Load())) }
		intents := &ordertest.Bank{Scope: refundtest.Scope}
		b := &refundtest.Bank{Intents: intents, Now: now, KeyLife: 24 * time.Hour, Lag: time.Minute}
		return refundtest.ProviderUnderTest{
			Provider: b, Payments: intents, Scope: refundtest.Scope, Now: now, Lag: b.Lag,
			Advance: func(d time.Duration) { ahead.Add(int64(d)) },
			Method:  ordertest.PaymentMethod,
			PendingMethod: func() string {
				b.Takes = true
				return ordertest.PaymentMethod(ordertest.Pays)
			},
			Fail: b.Fail, ForgetKeys: func() { ahead.Add(int64(b.KeyLife)) }, Complete: b.Complete,
			Settle: b.Settle, Return: b.Return, Dispute: b.Dispute,
			InDashboard: func(id order.IntentID, amount int64) {
				b.InDashboard(id, order.Money{Amount: amount, Currency: "usd"})
			},
			Made: func(id order.IntentID) (all []int64) {
				for _, r := range b.Refunds() {
					if r.Intent == id && r.Status.Counts() {
						all = append(all, r.Total.Amount)
					}
				}
				return all
			},
		}
	})
}
