package simulation

import (
	"slices"
	"testing"

	"orderonce/domain/order"
)

// Each field by which two orders with one id can differ makes them a conflict, and only
// that one.
func TestEveryFieldIsPartOfTheFingerprint(t *testing.T) {
	t.Parallel()
	lab := NewLab()
	for n := range baskets {
		m := contentOf(n, "ORD-1", visa)
		mine := lab.order(m.body()).Fingerprint()
		for _, f := range fields() {
			other := m.but(f)
			if other == m || other.ID != m.ID {
				t.Errorf("basket %d, %s: got %+v, want another content under the same id", n, f, other)
			}
			if lab.order(other.body()).Fingerprint() == mine {
				t.Errorf("basket %d: the fingerprint leaves out %s", n, f)
			}
		}
	}
}

func TestWhatAnOrderCostsIsWhatTheProductCharges(t *testing.T) {
	t.Parallel()
	lab := NewLab()
	for n := range baskets {
		m := contentOf(n, "ORD-1", visa)
		got, want := lab.order(m.body()), order.Money{Amount: m.amount(), Currency: order.Currency(m.Currency)}
		if got.Total() != want || got.CustomerID() != m.Customer ||
			got.Payment() != (order.Payment{Customer: m.Payer, Method: m.Method}) {
			t.Errorf("basket %d: got %v by %s with %+v, want %v of %s", n, got.Total(), got.CustomerID(), got.Payment(), want, m.String())
		}
	}
}

// variety is what a list of worlds has of each kind.
type variety struct{ currencies, payers, customers, lines, amounts map[string]bool }

func varietyOf(all []Case) variety {
	v := variety{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, c := range all {
		for _, m := range c.Messages {
			if m.Poison == "" {
				v.currencies[m.Currency], v.payers[m.Payer], v.customers[m.Customer] = true, true, true
				v.lines[string(rune('0'+len(m.lines())))] = true
				v.amounts[order.Money{Amount: m.amount(), Currency: order.Currency(m.Currency)}.String()] = true
			}
		}
	}
	return v
}

func TestTheWorldsHaveEveryCurrencyAndManyAmountsAndPayers(t *testing.T) {
	t.Parallel()
	var drawn, searched []Case
	for seed := range uint64(1000) {
		c, _ := Drawn(seed)
		drawn = append(drawn, c)
	}
	for _, s := range Deep(2) {
		searched = append(searched, s.Case)
	}
	for name, all := range map[string][]Case{"drawn": drawn, "searched": searched} {
		v := varietyOf(all)
		for _, p := range prices() {
			if !v.currencies[p.currency] {
				t.Errorf("%s: no order is in %s", name, p.currency)
			}
		}
		if len(v.payers) < 3 || len(v.customers) < 2 || len(v.lines) != maxLines || len(v.amounts) < 20 {
			t.Errorf("%s: got %d payers, %d customers, %d numbers of lines and %d amounts", name,
				len(v.payers), len(v.customers), len(v.lines), len(v.amounts))
		}
	}
}

func TestSearchesHaveAConflictInEveryField(t *testing.T) {
	t.Parallel()
	differ := func(all []Search) (found []field) {
		for _, s := range all {
			for _, f := range fields() {
				if len(s.Messages) == 2 && s.Messages[1] == s.Messages[0].but(f) {
					found = append(found, f)
				}
			}
		}
		return found
	}
	for name, all := range map[string][]Search{"every day": Scenarios(), "make prove": Deep(2)} {
		found := differ(all)
		for _, f := range fields() {
			if !slices.Contains(found, f) {
				t.Errorf("%s: no conflict is about %s", name, f)
			}
		}
	}
}

// A name is what an interrupted run knows a search by, and what a finding is told by.
func TestSearchesHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, all := range [][]Search{Scenarios(), Deep(2), Deep(3)} {
		seen := map[string]bool{}
		for i, s := range all {
			if seen[s.key()] || s.place != i || s.list != all[0].list {
				t.Errorf("%s/%d: %q is there twice, or misplaced", s.list, s.place, s.key())
			}
			seen[s.key()] = true
		}
	}
}
