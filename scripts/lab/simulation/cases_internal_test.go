package simulation

import (
	"fmt"
	"testing"

	"orderonce/scripts/lab/simulation/world"
)

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
		seen := map[string]map[string]bool{"currencies": {}, "payers": {}, "customers": {}, "lines": {}, "amounts": {}}
		for _, c := range all {
			for _, m := range c.Messages {
				if m.Poison != "" {
					continue
				}
				lines := 0
				for _, l := range m.Lines {
					lines += int(min(l.Quantity, 1))
				}
				seen["currencies"][m.Currency], seen["payers"][m.Payer], seen["customers"][m.Customer] = true, true, true
				seen["lines"][fmt.Sprint(lines)], seen["amounts"][fmt.Sprint(m.Amount(), m.Currency)] = true, true
			}
		}
		for what, least := range map[string]int{
			"currencies": len(world.Prices()), "payers": 3, "customers": 2, "lines": world.MaxLines, "amounts": 20,
		} {
			if got := len(seen[what]); got < least {
				t.Errorf("%s: got %d %s, want at least %d", name, got, what, least)
			}
		}
	}
}
