package ordertest_test

import (
	"bytes"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
)

func TestMemory(t *testing.T) {
	ordertest.TestStore(t, func(*testing.T) order.Store { return new(ordertest.Memory) })
}

func TestMemoryIndexesWhatWaits(t *testing.T) {
	m := new(ordertest.Memory)
	ordertest.TestDue(t, func(*testing.T) (order.Store, settle.Waiting) { return m, m })
}

func TestMemoryTracksStock(t *testing.T) {
	ordertest.TestStock(t, func(*testing.T) ordertest.StockStore { return ordertest.NewMemoryWithStock() })
}

func TestBank(t *testing.T) {
	ordertest.TestPayments(t, func(*testing.T) ordertest.PaymentsUnderTest {
		return underTest(&ordertest.Bank{Scope: "test"})
	})
}

func TestBankDisputes(t *testing.T) {
	ordertest.TestDisputes(t, func(*testing.T) ordertest.DisputesUnderTest {
		b := &ordertest.Bank{Scope: "test"}
		return ordertest.DisputesUnderTest{
			PaymentsUnderTest: underTest(b), Disputes: b, Dispute: b.Dispute, Close: b.CloseDispute,
		}
	})
}

func underTest(b *ordertest.Bank) ordertest.PaymentsUnderTest {
	return ordertest.PaymentsUnderTest{
		Payments: b, Canceler: b, Scope: b.Scope, Method: ordertest.PaymentMethod, Charges: b.Charges, Declines: b.Declines,
		Fail: b.Fail, ForgetKeys: b.ForgetKeys, CatchUp: func() {}, CustomerPays: b.CustomerPays,
		Clear: b.Clear, Cancel: b.Cancel,
	}
}

func TestBus(t *testing.T) {
	ordertest.TestBus(t, func(*testing.T) ordertest.BusUnderTest {
		b := new(ordertest.Bus)
		return ordertest.BusUnderTest{Bus: b, Accepted: b.Accepted, Refuse: b.Refuse, Fail: b.Fail}
	})
}

// The lab's search merges states that are equal, so each field of a record must be part
// of them, in an encoding that does not depend on the order of the writes.
func TestMemoryStatesAreEqualIfAndOnlyIfRecordsAre(t *testing.T) {
	from := time.UnixMilli(1_767_225_600_000)
	base := order.Record{OrderID: "ORD-1", Status: order.Open, Attempt: 1}
	full := order.Record{
		Fingerprint: "v1:x", Status: order.Refused, Owner: "x", Intent: "x", Mode: "x", Failure: "x", LastError: "x", Suspect: "x",
		Dispute: order.Dispute{ID: "x"}, Attempt: 2, Seq: 2, Until: from, CreatedAt: from, UpdatedAt: from, DueAt: from,
		ParkedAt: from, Stock: order.Quantities{"MUG": 1},
	}
	changes := map[string]func(*order.Record){
		"nothing":        func(*order.Record) {},
		"dispute status": func(r *order.Record) { r.Dispute.Status = order.DisputeWon },
		"disputed":       func(r *order.Record) { r.Dispute.CreatedAt = from },
		"an event":       func(r *order.Record) { r.Seq, r.Events = 1, []order.Event{{Seq: 1, To: order.Paid, At: from}} },
	}
	for _, f := range ordertest.FieldsBut[order.Record]("OrderID", "CustomerID", "Total", "Trace", "Events") {
		changes[f.Name] = func(r *order.Record) { f.Copy(r, full) }
	}
	seen := map[string]bool{}
	for name, change := range changes {
		one, two := ordertest.NewMemoryWithStock(), ordertest.NewMemoryWithStock()
		r, other := base, base
		change(&r)
		other.OrderID = "ORD-2"
		save := func(m *ordertest.Memory, r order.Record) {
			if _, err := m.AddStock(t.Context(), "MUG", 1); err != nil {
				t.Fatal(err)
			}
			if _, err := m.Save(t.Context(), order.Record{}, r); err != nil {
				t.Fatal(err)
			}
		}
		save(one, r)
		before := one.Clone().AppendState(nil)
		save(one, other)
		save(two, other)
		save(two, r)
		state := one.AppendState(nil)
		if seen[string(state)] || bytes.Equal(state, before) {
			t.Errorf("%s: got the state of other records", name)
		}
		if seen[string(state)] = true; !bytes.Equal(state, two.AppendState(nil)) {
			t.Errorf("%s: the same records have another state in another order of writes", name)
		}
	}
}
