package simulation

import (
	"slices"
	"testing"

	"orderonce/domain/order"
	"orderonce/scripts/lab/simulation/world"
)

// variety is what a list of cases has of each kind.
type variety struct{ currencies, payers, customers, amounts map[string]bool }

func varietyOf(all []world.Case) variety {
	v := variety{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, c := range all {
		for _, m := range c.Messages {
			if m.Poison == "" {
				v.currencies[m.Currency], v.payers[m.Payer], v.customers[m.Customer] = true, true, true
				v.amounts[order.Money{Amount: m.Amount(), Currency: order.Currency(m.Currency)}.String()] = true
			}
		}
	}
	return v
}

func TestTheCasesHaveEveryCurrencyAndManyAmountsAndPayers(t *testing.T) {
	t.Parallel()
	var drawn, searched []world.Case
	for seed := range uint64(1000) {
		c, _ := Drawn(seed)
		drawn = append(drawn, c)
	}
	for _, s := range Deep(2) {
		searched = append(searched, s.Case)
	}
	for name, all := range map[string][]world.Case{"drawn": drawn, "searched": searched} {
		v := varietyOf(all)
		for _, p := range world.Prices() {
			if !v.currencies[p.Currency] {
				t.Errorf("%s: no order is in %s", name, p.Currency)
			}
		}
		for lines := range world.MaxLines {
			if !slices.ContainsFunc(all, func(c world.Case) bool { return linesOf(c.Messages[0]) == lines+1 }) {
				t.Errorf("%s: no order has %d lines", name, lines+1)
			}
		}
		if len(v.payers) < 3 || len(v.customers) < 2 || len(v.amounts) < 20 {
			t.Errorf("%s: got %d payers, %d customers and %d amounts", name, len(v.payers), len(v.customers), len(v.amounts))
		}
	}
}

func linesOf(m world.Message) (n int) {
	for _, l := range m.Lines {
		n += int(min(l.Quantity, 1))
	}
	return n
}
