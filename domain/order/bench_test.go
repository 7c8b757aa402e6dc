package order_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

// costs has Process over the store and the bank in memory. Each call to a port allocates
// at least its closure, so a call more exceeds the budget.
func costs(tb testing.TB) []ordertest.Cost {
	tb.Helper()
	fingerprint := func(lines int) func() error {
		d := ordertest.Draft("ORD-1")
		d.Lines = slices.Repeat(d.Lines, lines/len(d.Lines))
		return func() error { _ = order.FingerprintV1(d); return nil }
	}
	o, l := ordertest.Order("ORD-1"), order.Lease{Owner: "worker 1", From: noon(), Until: noon().Add(time.Minute)}
	process := func(s order.Store, want order.Reason) error {
		ports := ordertest.Intercepted{Store: s, Payments: &ordertest.Bank{Scope: "test"}, Intercept: noFault}
		p := order.Processor{Store: ports, Payments: ports, Scope: "test", ConfirmTime: confirmTime, Now: noon}
		if r := p.Process(tb.Context(), o, noon(), l); r.Reason != want {
			return fmt.Errorf("got %s, want %s: %w", r.Reason, want, r.Err)
		}
		return nil
	}
	settled := new(ordertest.Memory)
	_ = process(settled, order.ReasonSettled) // if it fails, so does the duplicate
	duplicate := func() error { return process(settled, order.ReasonDuplicate) }
	fresh := func() error { return process(new(ordertest.Memory), order.ReasonSettled) }
	return []ordertest.Cost{
		{Name: "step=fingerprint/lines=2", Objects: 19, Bytes: 500, Call: fingerprint(2)},
		{Name: "step=fingerprint/lines=100", Objects: 215, Bytes: 2_100, Call: fingerprint(100)},
		{Name: "step=process/order=fresh", Objects: 88, Bytes: 8_700, Call: fresh},
		{Name: "step=process/order=duplicate", Objects: 25, Bytes: 3_300, Call: duplicate},
	}
}

func TestOrdersKeepTheirBudget(t *testing.T) { ordertest.TestCosts(t, costs(t)) }
func BenchmarkOrder(b *testing.B)            { ordertest.BenchmarkCosts(b, costs(b)) }
