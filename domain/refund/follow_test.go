package refund_test

import (
	"context"
	"testing"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/settle"
)

// staleOnce is a store in which another event is faster than the first write.
type staleOnce struct {
	refund.Store

	stale bool
}

func (s *staleOnce) Save(ctx context.Context, before, after refund.Account) (refund.Account, error) {
	if !s.stale {
		s.stale = true
		before.Seq++
		return before, order.ErrStale
	}
	return s.Store.Save(ctx, before, after)
}

func TestFollow(t *testing.T) {
	dashboard := func(w *world) { w.bank.InDashboard("pi_1", order.Money{Amount: total, Currency: "usd"}) }
	hint := settle.Hint{Intent: "pi_1", Status: order.Paid, Refunded: true}
	for claim, tt := range map[string]struct {
		card   ordertest.Card
		before func(*world)
		hint   settle.Hint
		want   settle.Followed
		status order.Status
	}{
		"a refund in the Dashboard": {ordertest.Pays, dashboard, hint, settle.HintRefunded, order.Refunded},
		"nothing new":               {ordertest.Pays, func(*world) {}, hint, settle.HintAgrees, order.Paid},
		"a hint of a charge alone": {
			ordertest.Pays, dashboard, settle.Hint{Intent: "pi_1", Status: order.Paid}, settle.HintAgrees, order.Paid,
		},
		"a refund of an order whose charge is not recorded": {
			ordertest.TakesDays, func(w *world) { w.bank.Intents.Clear("pi_1"); dashboard(w) }, hint,
			settle.HintRefunded, order.Refunded,
		},
		"a charge that is not recorded, without a refund": {
			ordertest.TakesDays, func(w *world) { w.bank.Intents.Clear("pi_1") }, hint, settle.HintSettled, order.Paid,
		},
		"another scope": {
			ordertest.Pays, dashboard, settle.Hint{Scope: "other", Intent: "pi_1", Refunded: true}, settle.HintForeign, order.Paid,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			w := newWorldWith(t, tt.card)
			tt.before(w)
			refunds := refund.Refresher{Store: &staleOnce{Store: w.store}, Provider: w.bank, Scope: scope, Now: noon}
			f := settle.Follower{
				Store: w.orders, Payments: w.bank.Intents, Scope: scope, Now: noon, Refunds: refunds.Seq,
			}
			got, _, err := f.Follow(t.Context(), tt.hint)
			if err != nil || got != tt.want || w.account().Status != tt.status {
				t.Errorf("got %s, %v and the order %s, want %s and %s", got, err, w.account().Status, tt.want, tt.status)
			}
		})
	}
}
