package ordertest_test

import (
	"bytes"
	"errors"
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

func TestBankDisputes(t *testing.T) {
	t.Parallel()
	ordertest.TestDisputes(t, func(*testing.T) ordertest.DisputesUnderTest {
		b := &ordertest.Bank{Scope: "test"}
		return disputesUnderTest(b, b)
	})
}

// disputesUnderTest returns the controls of b for the port d.
func disputesUnderTest(b *ordertest.Bank, d order.Disputes) ordertest.DisputesUnderTest {
	return ordertest.DisputesUnderTest{
		PaymentsUnderTest: underTest(b, b), Disputes: d, Dispute: b.Dispute, Close: b.CloseDispute,
	}
}

// provider is a Bank, or a broken one.
type provider interface {
	order.Payments
	order.Canceler
}

// underTest returns the controls of b for the ports of p.
func underTest(b *ordertest.Bank, p provider) ordertest.PaymentsUnderTest {
	return ordertest.PaymentsUnderTest{
		Payments: p, Canceler: p, Scope: b.Scope, Method: ordertest.PaymentMethod, Charges: b.Charges, Declines: b.Declines,
		Fail: b.Fail, ForgetKeys: b.ForgetKeys, CatchUp: func() {}, CustomerPays: b.CustomerPays,
		Clear: b.Clear, Cancel: b.Cancel,
	}
}

// lifeCycle returns the steps of an order from its first claim to its last settlement.
func lifeCycle(t *testing.T, m *ordertest.Memory, id order.ID) []func() error {
	t.Helper()
	var (
		ctx  = t.Context()
		from = time.UnixMilli(1_767_225_600_000)
		c    order.Claim
	)
	begin := func(owner string, from time.Time) func() error {
		return func() (err error) {
			l := order.Lease{Owner: owner, From: from, Until: from.Add(time.Minute)}
			c, err = m.Begin(ctx, ordertest.Order(id), l)
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
		func() error {
			r, err := m.Load(ctx, id)
			if err != nil {
				return err
			}
			return m.RecordDispute(ctx, r, order.Dispute{ID: "du_1", Status: order.DisputeOpen}, from.Add(3*time.Hour))
		},
		func() error { return m.SetFingerprint(ctx, id, "v2:0") },
	}
}

func TestMemoryStatesAreEqualIfAndOnlyIfHistoriesAre(t *testing.T) {
	t.Parallel()
	one, two := new(ordertest.Memory), new(ordertest.Memory)
	again := lifeCycle(t, two, "ORD-1")
	seen := map[string]bool{"": true}
	for i, step := range lifeCycle(t, one, "ORD-1") {
		before := one.Clone()
		state := one.AppendState(nil)
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		after := one.AppendState(nil)
		if seen[string(after)] {
			t.Errorf("step %d: got a state that an earlier step had, want a new one", i)
		}
		seen[string(after)] = true
		if !bytes.Equal(before.AppendState(nil), state) {
			t.Errorf("step %d changed an earlier clone", i)
		}
		if err := again[i](); err != nil || !bytes.Equal(two.AppendState(nil), after) {
			t.Errorf("step %d: the same history (error %v) has another state", i, err)
		}
	}
}

func TestMemoryStateDoesNotDependOnTheOrderOfWrites(t *testing.T) {
	t.Parallel()
	one, two := new(ordertest.Memory), new(ordertest.Memory)
	for _, err := range []error{
		lifeCycle(t, one, "ORD-1")[0](), lifeCycle(t, one, "ORD-2")[0](),
		lifeCycle(t, two, "ORD-2")[0](), lifeCycle(t, two, "ORD-1")[0](),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(one.AppendState(nil), two.AppendState(nil)) {
		t.Error("got different states for the same records, want equal ones")
	}
}

func TestMemorySetFingerprintOfAnUnknownOrderIsNotFound(t *testing.T) {
	t.Parallel()
	err := new(ordertest.Memory).SetFingerprint(t.Context(), "ORD-1", "v2:0")
	if !errors.Is(err, order.ErrNotFound) {
		t.Errorf("got %v, want %v", err, order.ErrNotFound)
	}
}

func TestMemoryIndexesWhatWaits(t *testing.T) {
	t.Parallel()
	ordertest.TestWaiting(t, func(*testing.T) ordertest.WaitingStore { return new(ordertest.Memory) })
}

func TestMemoryTracksStock(t *testing.T) {
	t.Parallel()
	ordertest.TestStock(t, func(*testing.T) ordertest.StockStore { return ordertest.NewMemoryWithStock() })
}

func TestMemoryWithStockIsAStore(t *testing.T) {
	t.Parallel()
	for name, pieces := range map[string]int64{"with goods": 1000, "without goods": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ordertest.TestStore(t, func(t *testing.T) ordertest.Store {
				t.Helper()
				m := ordertest.NewMemoryWithStock()
				for sku := range ordertest.Order("ORD-1").Goods() {
					if _, err := m.AddStock(t.Context(), sku, pieces); err != nil {
						t.Fatal(err)
					}
				}
				return m
			})
		})
	}
}
