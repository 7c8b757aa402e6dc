package ordertest_test

import (
	"bytes"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	ordertest.TestStore(t, func(*testing.T) ordertest.Store { return new(ordertest.Memory) })
}

func TestBank(t *testing.T) {
	t.Parallel()
	ordertest.TestPayments(t, func(*testing.T) ordertest.PaymentsUnderTest {
		b := &ordertest.Bank{Scope: "test"}
		return underTest(b, b)
	})
}

// underTest is a port whose provider is b.
func underTest(b *ordertest.Bank, p order.Payments) ordertest.PaymentsUnderTest {
	return ordertest.PaymentsUnderTest{
		Payments: p, Scope: b.Scope, Method: ordertest.PaymentMethod, Charges: b.Charges, Declines: b.Declines, Fail: b.Fail,
		ForgetKeys: b.ForgetKeys, CatchUp: func() {}, CustomerPays: b.CustomerPays, Clear: b.Clear, Cancel: b.Cancel,
	}
}

// life is an order's way through a store, one step after the other.
func life(t *testing.T, m *ordertest.Memory, id order.ID) []func() error {
	t.Helper()
	var (
		ctx  = t.Context()
		from = time.UnixMilli(1_767_225_600_000)
		c    order.Claim
	)
	begin := func(owner string, from time.Time) func() error {
		return func() (err error) {
			c, err = m.Begin(
				ctx,
				ordertest.Order(id),
				order.Lease{Owner: owner, From: from, Until: from.Add(time.Minute)},
			)
			return err
		}
	}
	return []func() error{
		begin("first", from),
		func() error { return m.Release(ctx, c, order.ReasonUnavailable, from.Add(time.Second)) },
		begin("second", from.Add(time.Hour)),
		func() error { return m.Bind(ctx, c, order.Intent{ID: "pi_1"}, from.Add(time.Hour)) },
		func() error {
			o := order.Outcome{Status: order.Declined, Intent: "pi_1", Failure: "lost_card"}
			return m.Finish(ctx, c, o, from.Add(time.Hour))
		},
		func() error {
			r, err := m.Load(ctx, id)
			if err != nil {
				return err
			}
			return m.Settle(ctx, r, order.Outcome{Status: order.Paid, Intent: "pi_1"}, from.Add(2*time.Hour))
		},
		func() error { return m.SetFingerprint(ctx, id, "v2:0") },
	}
}

func TestMemoryStatesAreEqualExactlyForEqualHistories(t *testing.T) {
	t.Parallel()
	one, two := new(ordertest.Memory), new(ordertest.Memory)
	again := life(t, two, "ORD-1")
	seen := map[string]bool{"": true}
	for i, step := range life(t, one, "ORD-1") {
		before := one.Clone()
		state := one.AppendState(nil)
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		after := one.AppendState(nil)
		if seen[string(after)] {
			t.Errorf("step %d left a state that was there before", i)
		}
		seen[string(after)] = true
		if !bytes.Equal(before.AppendState(nil), state) {
			t.Errorf("step %d changed the clone that was made before it", i)
		}
		if err := again[i](); err != nil || !bytes.Equal(two.AppendState(nil), after) {
			t.Errorf("step %d: the same history (%v) has another state", i, err)
		}
	}
}

func TestMemoryStatesDoNotDependOnTheOrderOfOrders(t *testing.T) {
	t.Parallel()
	one, two := new(ordertest.Memory), new(ordertest.Memory)
	for _, err := range []error{
		life(t, one, "ORD-1")[0](), life(t, one, "ORD-2")[0](), life(t, two, "ORD-2")[0](), life(t, two, "ORD-1")[0](),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(one.AppendState(nil), two.AppendState(nil)) {
		t.Error("the same records, made in another order, are another state")
	}
}

func TestMemoryRewritesOnlyWhatItHas(t *testing.T) {
	t.Parallel()
	if err := new(ordertest.Memory).SetFingerprint(t.Context(), "ORD-1", "v2:0"); err == nil {
		t.Error("a record was made out of nothing")
	}
}
