package ordertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/settle"
)

// TestStore tests the contract of order.Store. open may return the same store each time,
// or a new one: no two tests of one run use the same order. Stores keep times to the
// millisecond.
func TestStore(t *testing.T, open func(t *testing.T) order.Store) {
	t.Helper()
	TestSaves(t, func(t *testing.T) Saves[order.Record] {
		t.Helper()
		return recordSaves(open(t))
	})
	t.Run("an event is added once, with its change", func(t *testing.T) { addsEvents(t, open(t)) })
}

// storeTest is one order in the store under test.
type storeTest struct {
	*testing.T
	order.Store

	order order.Order
}

// recordSaves returns a store for TestSaves. A change of stock needs a table of its own;
// TestStock has it.
func recordSaves(s order.Store) Saves[order.Record] {
	return Saves[order.Record]{
		Load: func(ctx context.Context, id order.ID) (order.Record, error) {
			r, err := s.Load(ctx, id)
			if errors.Is(err, order.ErrNotFound) {
				return order.Record{}, nil
			}
			return r, err
		},
		Save:    s.Save,
		Missing: func(order.ID) order.Record { return order.Record{} },
		Bare: func(id order.ID) order.Record {
			return order.Record{
				OrderID: id, Total: order.Money{Amount: 1, Currency: "usd"}, Fingerprint: "v1:bare", Status: order.Open,
				Attempt: 1, CreatedAt: at(0), UpdatedAt: at(0),
			}
		},
		Full: func(id order.ID) order.Record {
			return order.Record{
				OrderID: id, CustomerID: "CUST", Total: order.Money{Amount: 2, Currency: "eur"}, Fingerprint: "v1:full",
				Status: order.Refused, Owner: "owner", Attempt: 2, Until: at(time.Minute), Intent: "pi_1",
				Suspect: "pi_2", Mode: order.TestMode, Failure: "failure", LastError: "last",
				ParkedAt: at(2 * time.Minute),
				Dispute:  order.Dispute{ID: "du_1", Status: order.DisputeOpen, CreatedAt: at(3 * time.Minute)}, Seq: 7,
				CreatedAt: at(4 * time.Minute), UpdatedAt: at(5 * time.Minute), DueAt: at(6 * time.Minute),
				Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
			}
		},
		Fields: FieldsBut[order.Record]("OrderID", "Stock", "Events"),
		Stale: AnyOf(
			[]string{"Status", "Owner", "Attempt", "Until", "Intent", "Seq", "ParkedAt"},
			[]string{"UpdatedAt", "Trace"},
		),
	}
}

func (x storeTest) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatalf("got error %v, want none", err)
	}
}

func (x storeTest) load() order.Record {
	x.Helper()
	r, err := x.Load(x.Context(), x.order.ID())
	x.must(err)
	return r
}

// begin claims the order without stock.
func (x storeTest) begin(owner string, from time.Time) order.Claim {
	x.Helper()
	c, err := order.Begin(x.Context(), x, x.order, lease(owner, from), nil)
	x.must(err)
	return c
}

// addsEvents writes two changes with their events, each twice, as after a lost answer,
// and one that another writer was faster than.
func addsEvents(t *testing.T, s order.Store) {
	t.Helper()
	saves := recordSaves(s)
	opened := saves.Bare(idOf(t.Name()))
	settled := func(r order.Record, to order.Status) order.Record {
		r.Intent = "pi_1"
		r = r.With(order.Event{From: r.Status, To: to, Intent: r.Intent, Failure: "why", At: at(time.Hour)})
		r.Status = to
		return r
	}
	declined := settled(opened, order.Declined)
	paid := settled(declined, order.Paid)
	for _, write := range []struct {
		before, after order.Record
		want          error
	}{
		{order.Record{}, opened, nil},
		{opened, declined, nil},
		{opened, declined, nil},
		{opened, settled(opened, order.Canceled), order.ErrStale},
		{declined, paid, nil},
		{declined, paid, nil},
	} {
		if _, err := s.Save(t.Context(), write.before, write.after); !errors.Is(err, write.want) {
			t.Errorf("from %s to %s: got %v, want %v", write.before.Status, write.after.Status, err, write.want)
		}
	}
	if got, err := s.Load(t.Context(), opened.OrderID); err != nil || diff(got, paid) != "" {
		t.Errorf("load: %v:%s", err, diff(got, paid))
	}
}

// TestDue tests the contract of settle.Waiting. open returns a store and its index, which
// must not lag. For open see TestStore.
func TestDue(t *testing.T, open func(t *testing.T) (order.Store, settle.Waiting)) {
	t.Helper()
	s, waiting := open(t)
	x := storeTest{t, s, Order(idOf(t.Name()))}
	due := func(when time.Time) (found bool) {
		for id, err := range waiting.Due(t.Context(), when) {
			x.must(err)
			found = found || id == x.order.ID()
		}
		return found
	}
	for _, step := range []struct {
		name string
		do   func()
		at   time.Time // zero: never
	}{
		{"an open order waits for a quarter of an hour", func() { x.begin("first", at(0)) }, at(15 * time.Minute)},
		{"a postponed one until then", func() {
			x.must(settle.Postpone(t.Context(), x, x.load(), at(5*time.Hour)))
		}, at(5 * time.Hour)},
		{"one whose recheck ended for nothing", func() {
			x.must(settle.Postpone(t.Context(), x, x.load(), time.Time{}))
		}, time.Time{}},
		{"a claimed one for a quarter of an hour again", func() {
			x.begin("second", at(6*time.Hour))
		}, at(6*time.Hour + 15*time.Minute)},
		{"a canceled one for nothing", func() {
			o := order.Outcome{Status: order.Canceled}
			x.must(order.Settle(t.Context(), x, x.load(), o, at(7*time.Hour)))
		}, time.Time{}},
	} {
		step.do()
		if step.at.IsZero() {
			if due(at(1000 * time.Hour)) {
				t.Errorf("%s: got it due", step.name)
			}
			continue
		}
		if due(step.at.Add(-time.Millisecond)) || !due(step.at) || !due(step.at.Add(1000*time.Hour)) {
			t.Errorf("%s: got it due before %v, or not at it", step.name, step.at)
		}
	}
}

// StockStore is a store that tracks stock.
type StockStore interface {
	order.Store
	// Stock returns the stock of a SKU, or order.ErrNotFound.
	Stock(ctx context.Context, sku string) (order.Stock, error)
	// AddStock adds n units, or takes some away if n is negative. It returns
	// order.ErrTooFewAvailable, changing nothing, if fewer are available.
	AddStock(ctx context.Context, sku string, n int64) (order.Stock, error)
}

// TestStock tests what order.Store promises of a store that tracks stock. For open see
// TestStore.
func TestStock(t *testing.T, open func(t *testing.T) StockStore) {
	t.Helper()
	for name, test := range map[string]func(stockTest){
		"a new order reserves its stock, once":                     stockTest.reserves,
		"begin reserves all stock or none and names what is short": stockTest.allOrNone,
		"an order of too many SKUs holds none":                     stockTest.tooMany,
		"an order that holds none reserves with its next claim":    stockTest.later,
		"every transition has its effect, once":                    stockTest.effects,
		"a refused write changes no stock":                         stockTest.refused,
		"of fifty orders for the last ten units ten hold them":     stockTest.lastUnits,
		"stock is added and taken away":                            stockTest.added,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			x := stockTest{storeTest{t, s, Order(idOf(t.Name()))}, s}
			x = x.of("", order.Quantities{x.sku("a"): 2, x.sku("b"): 3})
			for sku := range x.order.Quantities() {
				x.add(sku, units)
			}
			test(x)
		})
	}
}

// stockTest is one order of two SKUs, which no other test uses, in a store with ten
// units of each.
type stockTest struct {
	storeTest

	stock StockStore
}

const units = 10

// sku returns a SKU that is unique to the test.
func (x stockTest) sku(name string) string { return string(idOf(x.Name())) + "-" + name }

// of returns the test of another order in the same store.
func (x stockTest) of(name string, quantities order.Quantities) stockTest {
	d := Draft(idOf(x.Name() + name))
	d.Lines = nil
	for _, sku := range quantities.SKUs() {
		for range 2 { // lines of one SKU are added up
			d.Lines = append(d.Lines, order.Line{SKU: sku, Quantity: quantities[sku], UnitAmount: 100})
			if quantities[sku]%2 != 0 || len(quantities) > 2 {
				break
			}
			d.Lines[len(d.Lines)-1].Quantity /= 2
		}
	}
	x.order = must(order.New(d))
	return x
}

func (x stockTest) add(sku string, n int64) {
	x.Helper()
	_, err := x.stock.AddStock(x.Context(), sku, n)
	x.must(err)
}

func (x stockTest) claim(owner string, from time.Time) order.Claim {
	x.Helper()
	c, err := order.Begin(x.Context(), x, x.order, lease(owner, from), x.order.Quantities())
	x.must(err)
	return c
}

func (x stockTest) finish(s order.Status) order.Claim {
	x.Helper()
	c := x.claim("first", at(0))
	x.must(c.Bind(x.Context(), x, order.Intent{ID: "pi_1"}, at(1)))
	x.must(c.Finish(x.Context(), x, order.Outcome{Status: s, Intent: "pi_1"}, at(2*time.Second)))
	return c
}

// wantHeld checks that claim and record hold the order's stock, or none.
func (x stockTest) wantHeld(c order.Claim, held bool) {
	x.Helper()
	var want order.Quantities
	if held {
		want = x.order.Quantities()
	}
	if r := x.load(); !maps.Equal(c.Stock, want) || !maps.Equal(r.Stock, want) {
		x.Errorf("got %v in the claim and %v in the record, want %v", c.Stock, r.Stock, want)
	}
}

// wantStock checks the stock of each SKU of the order, for a store that began with
// ten units: e is the effect on its stock, or "" if it holds none.
func (x stockTest) wantStock(e order.StockEffect) {
	x.Helper()
	for sku, n := range x.order.Quantities() {
		want := order.Stock{SKU: sku, Available: units}
		if e != "" {
			want = stockAfter(order.Stock{SKU: sku, Available: units - n, Reserved: n}, e, n)
		}
		x.wantSKU(want)
	}
}

func (x stockTest) wantSKU(want order.Stock) {
	x.Helper()
	got, err := x.stock.Stock(x.Context(), want.SKU)
	if err != nil || got != want {
		x.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func (x stockTest) reserves() {
	for range 2 {
		c := x.claim("first", at(0))
		x.wantHeld(c, true)
		if c.Short != "" || c.Attempt != 1 {
			x.Errorf("got claim %+v, want attempt 1 that is short of nothing", c)
		}
	}
	x.wantHeld(x.claim("second", at(time.Hour)), true)
	x.wantStock(order.StockKept)
}

func (x stockTest) allOrNone() {
	for _, tt := range []struct {
		quantities order.Quantities
		short      string
		unlisted   bool
	}{
		{order.Quantities{x.sku("a"): 1, x.sku("b"): units + 1}, x.sku("b"), false},
		{order.Quantities{x.sku("a"): 1, x.sku("unknown"): 1}, x.sku("unknown"), true},
	} {
		many := x.of(tt.short, tt.quantities)
		for n, owner := range []string{"first", "second"} {
			c := many.claim(owner, at(time.Duration(n)*time.Hour))
			many.wantHeld(c, false)
			if c.Short != tt.short || c.Unlisted != tt.unlisted || c.Attempt != n+1 {
				x.Errorf("got claim %d of %q as short, unlisted: %t, want %q", c.Attempt, c.Short, c.Unlisted, tt.short)
			}
		}
	}
	x.wantStock("")
	if s, err := x.stock.Stock(x.Context(), x.sku("unknown")); !errors.Is(err, order.ErrNotFound) {
		x.Errorf("got %+v, %v, want %v", s, err, order.ErrNotFound)
	}
	exact := x.of("exact", order.Quantities{x.sku("a"): units})
	exact.wantHeld(exact.claim("first", at(0)), true)
}

func (x stockTest) tooMany() {
	quantities := order.Quantities{}
	for i := range order.MaxSKUs + 1 {
		sku := x.sku(fmt.Sprintf("n%03d", i))
		quantities[sku] = 1
		x.add(sku, units)
	}
	many := x.of("many", quantities)
	c := many.claim("first", at(0))
	many.wantHeld(c, false)
	if c.Short != order.TooManySKUs {
		x.Errorf("got %q as short, want %q", c.Short, order.TooManySKUs)
	}
	many.wantStock("")
	delete(quantities, x.sku("n000"))
	most := x.of("most", quantities)
	most.finish(order.Paid) // the largest transaction
	most.wantStock(order.StockSold)
}

func (x stockTest) later() {
	x = x.of("later", order.Quantities{x.sku("a"): units + 1})
	lost := order.Record{
		OrderID: x.order.ID(), Total: x.order.Total(), Fingerprint: x.order.Fingerprint(), Intent: "pi_1",
	}
	x.must(settle.Recreate(x.Context(), x, lost, at(0)))
	seen := x.load()
	x.wantHeld(x.claim("first", at(time.Minute)), false)
	x.add(x.sku("a"), 1)
	c := x.claim("second", at(time.Hour))
	x.wantHeld(c, true)
	if c.Short != "" || c.Attempt != 3 || c.Intent != "pi_1" {
		x.Errorf("got claim %+v, want attempt 3 with pi_1 that is short of nothing", c)
	}
	canceled := order.Outcome{Status: order.Canceled, Intent: "pi_1"}
	if err := order.Settle(x.Context(), x, seen, canceled, at(time.Hour)); !errors.Is(err, order.ErrStale) {
		x.Errorf("settle of a record that got its stock since: got %v, want ErrStale", err)
	}
	x.wantSKU(order.Stock{SKU: x.sku("a"), Reserved: units + 1})
}

func (x stockTest) effects() {
	add := func(name string) stockTest {
		y := x.of(name, order.Quantities{x.sku(name): 4})
		y.add(x.sku(name), units)
		return y
	}
	for _, s := range order.Open.Next() {
		y, e := add(string(s)), order.StockEffectOf(s, "pi_1")
		c := y.finish(s)
		if c.Stock = nil; e == order.StockKept {
			c.Stock = y.order.Quantities()
		}
		y.wantHeld(c, e == order.StockKept)
		y.wantStock(e)
	}
	later := add("later")
	later.finish(order.Declined)
	r := later.load()
	canceled := order.Outcome{Status: order.Canceled, Intent: "pi_1"}
	for range 2 {
		x.must(order.Settle(x.Context(), x, r, canceled, at(time.Hour)))
	}
	later.wantStock(order.StockReleased)
	replaced := add("replaced") // by the lost record of another content
	replaced.claim("first", at(0))
	lost := order.Record{OrderID: replaced.order.ID(), Total: x.order.Total()}
	lost.Fingerprint, lost.Intent = "v1:lost", "pi_1"
	x.must(settle.Recreate(x.Context(), x, lost, at(time.Hour)))
	replaced.wantStock(order.StockReleased)
	unbound := add("unbound")
	refused := order.Outcome{Status: order.Refused}
	x.must(unbound.claim("first", at(0)).Finish(x.Context(), x, refused, at(1)))
	unbound.wantStock(order.StockReleased)
	unbound.wantHeld(unbound.claim("second", at(time.Hour)), true)
	unbound.wantStock(order.StockKept)
}

func (x stockTest) refused() {
	lost := x.claim("first", at(0))
	current := x.claim("second", at(time.Hour))
	canceled := order.Outcome{Status: order.Canceled}
	if err := lost.Finish(x.Context(), x, canceled, at(time.Hour)); !errors.Is(err, order.ErrClaimLost) {
		x.Errorf("finish without the claim: got %v, want ErrClaimLost", err)
	}
	x.wantStock(order.StockKept)
	x.must(current.Finish(x.Context(), x, canceled, at(time.Hour)))
	x.wantStock(order.StockReleased)
	third := lease("third", at(2*time.Hour))
	if _, err := order.Begin(x.Context(), x, x.order, third, x.order.Quantities()); err == nil {
		x.Errorf("begin of a canceled order: got no error, want a SettledError")
	}
	x.wantStock(order.StockReleased)
}

func (x stockTest) lastUnits() {
	claims := make([]order.Claim, Racers)
	for i, err := range Race(func(i int) (err error) {
		o := x.of(fmt.Sprint(i), order.Quantities{x.sku("a"): 1}).order
		claims[i], err = order.Begin(x.Context(), x, o, lease("first", at(0)), o.Quantities())
		return err
	}) {
		if err != nil {
			x.Errorf("racer %d: got an unexpected error: %v", i, err)
		}
	}
	held, short := 0, 0
	for _, c := range claims {
		switch {
		case c.Stock != nil:
			held++
		case c.Short == x.sku("a"):
			short++
		}
	}
	if held != units || short != Racers-units {
		x.Errorf("got %d orders with stock and %d without, want %d and %d", held, short, units, Racers-units)
	}
	x.wantSKU(order.Stock{SKU: x.sku("a"), Reserved: units})
}

func (x stockTest) added() {
	for _, tt := range []struct {
		add, available int64
		want           error
	}{
		{5, units + 5, nil},
		{-5, units, nil},
		{-units - 1, units, order.ErrTooFewAvailable},
		{-units, 0, nil},
	} {
		if _, err := x.stock.AddStock(x.Context(), x.sku("a"), tt.add); !errors.Is(err, tt.want) {
			x.Errorf("add %d: got %v, want %v", tt.add, err, tt.want)
		}
		x.wantSKU(order.Stock{SKU: x.sku("a"), Available: tt.available})
	}
	if _, err := x.stock.AddStock(x.Context(), x.sku("unknown"), -1); !errors.Is(err, order.ErrTooFewAvailable) {
		x.Errorf("take away from nothing: got %v, want ErrTooFewAvailable", err)
	}
}
