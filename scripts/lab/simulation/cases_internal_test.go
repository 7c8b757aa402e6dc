package simulation

import (
	"slices"
	"testing"

	"orderonce/adapters/sqs/orders"
	"orderonce/domain/order"
	"orderonce/scripts/lab/simulation/oracle"
	"orderonce/scripts/lab/simulation/report"
	"orderonce/scripts/lab/simulation/world"
)

func decoded(t *testing.T, d *orders.Decoder, m world.Message) order.Order {
	t.Helper()
	o, err := d.Decode(m.Body())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestEveryFieldIsPartOfTheFingerprint(t *testing.T) {
	t.Parallel()
	d := orders.NewDecoder()
	for n := range baskets {
		m := contentOf(n, "ORD-1", world.Visa)
		mine := decoded(t, d, m).Fingerprint()
		for _, f := range world.Fields() {
			other := m.With(f)
			if other == m || other.ID != m.ID {
				t.Errorf("basket %d, %s: got %+v, want another content under the same id", n, f.Name, other)
			}
			if decoded(t, d, other).Fingerprint() == mine {
				t.Errorf("basket %d: the fingerprint leaves out %s", n, f.Name)
			}
		}
	}
}

func TestTheAmountOfAMessageIsWhatTheProductCharges(t *testing.T) {
	t.Parallel()
	d := orders.NewDecoder()
	for n := range baskets {
		m := contentOf(n, "ORD-1", world.Visa)
		got, want := decoded(t, d, m), order.Money{Amount: m.Amount(), Currency: order.Currency(m.Currency)}
		if got.Total() != want || got.CustomerID() != m.Customer ||
			got.Payment() != (order.Payment{Customer: m.Payer, Method: m.Method}) {
			t.Errorf("basket %d: got %v by %s with %+v, want %v of %s",
				n, got.Total(), got.CustomerID(), got.Payment(), want, m.String())
		}
	}
}

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

func TestSearchesHaveAConflictInEveryField(t *testing.T) {
	t.Parallel()
	for name, all := range map[string][]Search{"every day": Scenarios(), "make prove": Deep(2)} {
		for _, f := range world.Fields() {
			if !slices.ContainsFunc(all, func(s Search) bool {
				return len(s.Messages) == 2 && s.Messages[1] == s.Messages[0].With(f)
			}) {
				t.Errorf("%s: no conflict is about %s", name, f.Name)
			}
		}
	}
}

// An interrupted run knows a search by its name, and a finding by its list and place.
func TestSearchesHaveUniqueNames(t *testing.T) {
	t.Parallel()
	for _, all := range [][]Search{Scenarios(), Deep(2), Deep(3)} {
		seen := map[string]bool{}
		for i, s := range all {
			if seen[s.key()] || s.place != i || s.list != all[0].list {
				t.Errorf("%s/%d: duplicate or misplaced %q", s.list, s.place, s.key())
			}
			seen[s.key()] = true
		}
	}
}

func TestAPlainerCaseLacksOneOddity(t *testing.T) {
	t.Parallel()
	m := contentOf(1, "ORD-1", world.Declined)
	c := world.Case{Messages: []world.Message{m, m}, Gap: 10 * oracle.Visibility, KeyLife: -1, Receives: 3, Batch: 2, FIFO: true}
	c.Webhooks, c.Reconcile, c.Publish = true, true, true
	before := report.Oddities(c)
	for _, plain := range plainer(c) {
		if after := report.Oddities(plain); len(after) >= len(before) {
			t.Errorf("got %q, want less than %q", after, before)
		}
	}
	if got := len(plainer(c)); got != 9 {
		t.Errorf("got %d cases, want one for the gap, the keys, the receives, the group, each actor and each method", got)
	}
	if c.Messages[0].Method != world.Declined || c.Gap != 10*oracle.Visibility {
		t.Error("the case itself has changed")
	}
}
