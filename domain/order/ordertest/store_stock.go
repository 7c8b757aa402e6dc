package ordertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"orderonce/domain/order"
)

// StockStore is a store that tracks stock.
type StockStore interface {
	Store
	// Stock returns the stock of an article, or order.ErrNotFound.
	Stock(ctx context.Context, sku string) (order.Stock, error)
	// AddStock adds n pieces, or takes some away if n is negative. It returns
	// order.ErrTooFewAvailable, changing nothing, if fewer are available.
	AddStock(ctx context.Context, sku string, n int64) (order.Stock, error)
}

// TestStock tests what order.Claims and order.Records promise of a store that tracks
// stock. For open see TestStore.
//
//nolint:tparallel // the caller calls t.Parallel
func TestStock(t *testing.T, open func(t *testing.T) StockStore) {
	t.Helper()
	for _, p := range stockPromises() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.test(newStockTest(t, open(t)))
		})
	}
}

// stockPromise is one sentence of the contract and its test.
type stockPromise struct {
	name string
	test func(stockTest)
}

func stockPromises() []stockPromise {
	return []stockPromise{
		{"begin of a new order reserves its goods", stockTest.beginReserves},
		{"lines of one article are added up", stockTest.linesAddUp},
		{"begin reserves all goods or none and names the article that is short", stockTest.allOrNone},
		{"an unknown article is short and unlisted", stockTest.unknownShort},
		{"an order of too many articles holds none", stockTest.tooMany},
		{"begin again by the same owner reserves once", stockTest.beginAgain},
		{"a takeover keeps the goods", stockTest.takeoverKeeps},
		{"an order that holds none reserves with its next claim", stockTest.reservesLater},
		{"an order that was bound before it held goods reserves with its next claim", stockTest.boundBefore},
		{"finish has the effect of its transition", stockTest.finishHasItsEffect},
		{"settle has the effect of its transition", stockTest.settleHasItsEffect},
		{"a refused order without an intent reserves again when it is reopened", stockTest.reopened},
		{"a refused order that holds goods is rechecked a day later", stockTest.refusedIsDue},
		{"an effect that is repeated happens once", stockTest.effectHappensOnce},
		{"a refused write changes no stock", stockTest.refusedWrites},
		{"settle of a record that got its goods since returns ErrStale", stockTest.goodsMakeStale},
		{"of fifty orders for the last ten pieces ten hold them", stockTest.lastPieces},
		{"fifty concurrent settles have one effect", stockTest.oneEffect},
		{"stock is added and taken away", stockTest.added},
	}
}

// stockTest is one order of two articles, which no other test uses, in a store with ten
// pieces of each.
type stockTest struct {
	storeTest
	stock StockStore
}

const pieces = 10

func newStockTest(tb testing.TB, s StockStore) stockTest {
	tb.Helper()
	x := stockTest{newStoreTest(tb, s), s}
	x = x.of(x.order.ID(), order.Goods{x.sku("a"): 2, x.sku("b"): 3})
	for sku := range x.order.Goods() {
		x.add(sku, pieces)
	}
	return x
}

// sku returns an article that is unique to the test.
func (x stockTest) sku(name string) string { return string(idOf(x.Name())) + "-" + name }

// of returns the test of another order in the same store.
func (x stockTest) of(id order.ID, goods order.Goods) stockTest {
	d := Draft(id)
	d.Lines = nil
	for _, sku := range goods.SKUs() {
		d.Lines = append(d.Lines, order.Line{SKU: sku, Quantity: goods[sku], UnitAmount: 100})
	}
	x.order = must(order.New(d))
	return x
}

func (x stockTest) add(sku string, n int64) {
	x.Helper()
	_, err := x.stock.AddStock(x.Context(), sku, n)
	x.must(err)
}

// wantHeld checks that record and claim hold the order's goods, or none.
func (x stockTest) wantHeld(c order.Claim, held bool) {
	x.Helper()
	var want order.Goods
	if held {
		want = x.order.Goods()
	}
	if r := x.mustLoad(); !maps.Equal(c.Stock, want) || !maps.Equal(r.Stock, want) {
		x.Errorf("got %v in the claim and %v in the record, want %v", c.Stock, r.Stock, want)
	}
}

// wantStock checks the stock of each article of the order, for a store that began with
// ten pieces: e is the effect on its goods, or "" if it holds none.
func (x stockTest) wantStock(e order.StockEffect) {
	x.Helper()
	for sku, n := range x.order.Goods() {
		want := order.Stock{SKU: sku, Available: pieces}
		if e != "" {
			want = order.Stock{SKU: sku, Available: pieces - n, Reserved: n}.After(e, n)
		}
		x.wantArticle(want)
	}
}

func (x stockTest) wantArticle(want order.Stock) {
	x.Helper()
	got, err := x.stock.Stock(x.Context(), want.SKU)
	if err != nil || got != want {
		x.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func (x stockTest) beginReserves() {
	c := x.mustBegin(lease("first", at(0)))
	x.wantHeld(c, true)
	x.wantStock(order.StockKept)
	if c.Short != "" || c.Attempt != 1 || !c.CreatedAt.Equal(at(0)) {
		x.Errorf("got claim %+v, want attempt 1 that is short of nothing, created at %v", c, at(0))
	}
	x.wantRecord(order.Record{
		OrderID: x.order.ID(), CustomerID: x.order.CustomerID(), Total: x.order.Total(),
		Fingerprint: x.order.Fingerprint(), Status: order.Open, Owner: "first", Attempt: 1,
		Until: c.Lease.Until, CreatedAt: at(0), UpdatedAt: at(0), DueAt: dueAfter(order.Open, at(0)),
		Stock: x.order.Goods(),
	})
}

func (x stockTest) linesAddUp() {
	d := Draft(x.order.ID())
	d.Lines = nil
	for range 3 {
		d.Lines = append(d.Lines, order.Line{SKU: x.sku("a"), Quantity: 2, UnitAmount: 100})
	}
	x.order = must(order.New(d))
	x.wantHeld(x.mustBegin(lease("first", at(0))), true)
	x.wantArticle(order.Stock{SKU: x.sku("a"), Available: 4, Reserved: 6})
}

// wantShort checks that a claim holds nothing and names the article that is short.
func (x stockTest) wantShort(c order.Claim, sku string) {
	x.Helper()
	x.wantHeld(c, false)
	if c.Short != sku || c.Unlisted {
		x.Errorf("got %q as short, unlisted: %t, want %q, listed", c.Short, c.Unlisted, sku)
	}
}

func (x stockTest) allOrNone() {
	many := x.of(x.order.ID(), order.Goods{x.sku("a"): 1, x.sku("b"): pieces + 1})
	c := many.mustBegin(lease("first", at(0)))
	many.wantShort(c, x.sku("b"))
	x.wantStock("")
	x.must(x.Finish(x.Context(), c, order.Outcome{Status: order.OutOfStock, Failure: c.Short}, at(1)))
	x.wantStock("")
	_, err := many.Begin(x.Context(), many.order, lease("second", at(time.Hour)))
	if e, ok := errors.AsType[*order.SettledError](err); !ok || e.Record.Status != order.OutOfStock {
		x.Errorf("begin again: got %v, want a SettledError that is out of stock", err)
	}
	exact := x.of(x.order.ID()+"-2", order.Goods{x.sku("a"): pieces})
	exact.wantHeld(exact.mustBegin(lease("first", at(0))), true)
}

func (x stockTest) unknownShort() {
	x = x.of(x.order.ID(), order.Goods{x.sku("unknown"): 1})
	c := x.mustBegin(lease("first", at(0)))
	if c.Short != x.sku("unknown") || !c.Unlisted {
		x.Errorf("got %q as short, unlisted: %t, want %q, unlisted", c.Short, c.Unlisted, x.sku("unknown"))
	}
	x.wantHeld(c, false)
	x.must(x.Release(x.Context(), c, order.ReasonUnknownSKU, at(time.Second)))
	if c := x.mustBegin(lease("second", at(time.Minute))); !c.Unlisted {
		x.Errorf("claimed again: got %q as short and listed, want unlisted", c.Short)
	}
	if s, err := x.stock.Stock(x.Context(), x.sku("unknown")); !errors.Is(err, order.ErrNotFound) {
		x.Errorf("got %+v, %v, want %v", s, err, order.ErrNotFound)
	}
}

func (x stockTest) tooMany() {
	goods := order.Goods{}
	for i := range order.MaxArticles + 1 {
		goods[x.sku(fmt.Sprintf("n%03d", i))] = 1
	}
	for sku := range goods {
		x.add(sku, pieces)
	}
	many := x.of(x.order.ID()+"-many", goods)
	many.wantShort(many.mustBegin(lease("first", at(0))), order.TooManyArticles)
	many.wantStock("")

	delete(goods, x.sku("n000"))
	most := x.of(x.order.ID()+"-most", goods)
	most.mustFinish(order.Paid) // the largest transaction
	most.wantStock(order.StockSold)
}

func (x stockTest) beginAgain() {
	first := x.mustBind("pi_1")
	x.wantUnchanged(func() { x.wantHeld(x.mustBegin(first.Lease), true) })
	x.wantStock(order.StockKept)
}

func (x stockTest) takeoverKeeps() {
	_, c := x.mustTakeOver()
	x.wantHeld(c, true)
	x.wantStock(order.StockKept)

	unbound := x.of(x.order.ID()+"-2", order.Goods{x.sku("a"): 1})
	unbound.mustBegin(lease("first", at(0)))
	unbound.wantHeld(unbound.mustBegin(lease("second", at(time.Hour))), true)
	x.wantArticle(order.Stock{SKU: x.sku("a"), Available: pieces - 3, Reserved: 3})
}

func (x stockTest) reservesLater() {
	x = x.of(x.order.ID(), order.Goods{x.sku("a"): pieces + 1})
	c := x.mustBegin(lease("first", at(0)))
	x.must(x.Release(x.Context(), c, order.ReasonStore, at(time.Second)))
	x.wantShort(x.mustBegin(lease("second", at(time.Minute))), x.sku("a"))
	x.add(x.sku("a"), 1)
	c = x.mustBegin(lease("third", at(time.Hour)))
	x.wantHeld(c, true)
	if c.Short != "" || c.Attempt != 3 {
		x.Errorf("got claim %+v, want attempt 3 that is short of nothing", c)
	}
	x.wantArticle(order.Stock{SKU: x.sku("a"), Reserved: pieces + 1})
}

func (x stockTest) boundBefore() {
	x = x.of(x.order.ID(), order.Goods{x.sku("a"): pieces + 1})
	x.must(x.Recreate(x.Context(), x.lost(), at(0)))
	c := x.mustBegin(lease("first", at(time.Minute)))
	x.wantShort(c, x.sku("a"))
	x.must(x.Finish(x.Context(), c, outcome(order.Refused, "pi_1"), at(time.Minute)))
	x.add(x.sku("a"), 1)
	c = x.mustBegin(lease("second", at(time.Hour)))
	x.wantHeld(c, true)
	if c.Short != "" || c.Intent != "pi_1" {
		x.Errorf("got claim %+v, want one with pi_1 that is short of nothing", c)
	}
	x.must(x.Finish(x.Context(), c, outcome(order.Paid, "pi_1"), at(time.Hour)))
	x.wantArticle(order.Stock{SKU: x.sku("a"), Sold: pieces + 1})
}

func (x stockTest) refusedIsDue() {
	c := x.mustBind("pi_1")
	x.must(x.Finish(x.Context(), c, outcome(order.Refused, "pi_1"), at(time.Minute)))
	x.wantDue(at(time.Minute + 24*time.Hour))
	x.must(x.Settle(x.Context(), x.mustLoad(), outcome(order.Canceled, "pi_1"), at(time.Hour)))
	x.wantDue(time.Time{})

	unbound := x.of(x.order.ID()+"-2", order.Goods{x.sku("a"): 1})
	c = unbound.mustBegin(lease("first", at(0)))
	x.must(x.Finish(x.Context(), c, outcome(order.Refused, ""), at(time.Minute)))
	unbound.wantDue(time.Time{})
}

func (x stockTest) wantDue(want time.Time) {
	x.Helper()
	if r := x.mustLoad(); !r.DueAt.Equal(want) {
		x.Errorf("%s, which holds %v, is due at %v, want %v", r.Status, r.Stock, r.DueAt, want)
	}
}

// heldAfter returns whether an order in this status still holds its goods, and their
// effect.
func heldAfter(s order.Status, i order.IntentID) (held bool, e order.StockEffect) {
	e = order.StockEffectOf(s, i)
	return e == order.StockKept, e
}

func (x stockTest) finishHasItsEffect() {
	for _, s := range order.Open.Next() {
		x := x.of(x.order.ID()+order.ID("-"+s), order.Goods{x.sku(string(s)): 4})
		x.add(x.sku(string(s)), pieces)
		c := x.mustFinish(s)
		held, e := heldAfter(s, "pi_1")
		if c.Stock = nil; held {
			c.Stock = x.order.Goods()
		}
		x.wantHeld(c, held)
		x.wantStock(e)
	}
}

func (x stockTest) settleHasItsEffect() {
	for _, from := range []order.Status{order.ActionRequired, order.Pending, order.Refused, order.Declined} {
		for _, to := range from.Next() {
			if to == order.Open {
				continue
			}
			name := string(from + "-" + to)
			x := x.of(x.order.ID()+order.ID("-"+name), order.Goods{x.sku(name): 4})
			x.add(x.sku(name), pieces)
			x.mustFinish(from)
			x.must(x.Settle(x.Context(), x.mustLoad(), outcome(to, "pi_1"), at(time.Hour)))
			_, e := heldAfter(to, "pi_1")
			x.wantStock(e)
		}
	}
}

func (x stockTest) reopened() {
	c := x.mustBegin(lease("first", at(0)))
	x.must(x.Finish(x.Context(), c, outcome(order.Refused, ""), at(time.Second)))
	x.wantStock(order.StockReleased)
	c = x.mustBegin(lease("second", at(time.Hour)))
	x.wantHeld(c, true)
	x.wantStock(order.StockKept)
	x.must(x.Settle(x.Context(), x.mustLoad(), order.Outcome{Status: order.Canceled}, at(2*time.Hour)))
	x.wantStock(order.StockReleased)
}

func (x stockTest) effectHappensOnce() {
	c := x.mustFinish(order.Declined)
	loaded := x.mustLoad()
	for range 2 {
		x.must(x.Settle(x.Context(), loaded, outcome(order.Paid, "pi_1"), at(time.Hour)))
	}
	x.must(x.Finish(x.Context(), c, outcome(order.Paid, "pi_1"), at(time.Hour)))
	x.wantStock(order.StockSold)
}

func (x stockTest) refusedWrites() {
	lost, current := x.mustTakeOver()
	x.wantError(x.Finish(x.Context(), lost, outcome(order.Canceled, "pi_1"), at(time.Hour)), order.ErrClaimLost)
	stale := x.mustLoad()
	stale.Seq++
	x.wantError(x.Settle(x.Context(), stale, outcome(order.Paid, "pi_1"), at(time.Hour)), order.ErrStale)
	x.wantStock(order.StockKept)
	x.must(x.Finish(x.Context(), current, outcome(order.Paid, "pi_1"), at(time.Hour)))
	if _, err := x.Begin(x.Context(), x.order, lease("third", at(2*time.Hour))); err == nil {
		x.Errorf("begin of a paid order: got no error, want a SettledError")
	}
	x.wantStock(order.StockSold)
}

func (x stockTest) goodsMakeStale() {
	x = x.of(x.order.ID(), order.Goods{x.sku("a"): pieces + 1})
	c := x.mustBegin(lease("first", at(0)))
	loaded := x.mustLoad()
	x.must(x.Release(x.Context(), c, order.ReasonStore, at(time.Second)))
	x.add(x.sku("a"), 1)
	x.mustBegin(lease("second", at(time.Minute)))
	canceled := order.Outcome{Status: order.Canceled}
	x.wantError(x.Settle(x.Context(), loaded, canceled, at(time.Hour)), order.ErrStale)
	x.wantArticle(order.Stock{SKU: x.sku("a"), Reserved: pieces + 1})
}

func (x stockTest) lastPieces() {
	claims := make([]order.Claim, racers)
	for i, err := range race(func(i int) (err error) {
		o := x.of(x.order.ID()+order.ID(fmt.Sprintf("-%d", i)), order.Goods{x.sku("a"): 1}).order
		claims[i], err = x.Begin(x.Context(), o, lease("first", at(0)))
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
	if held != pieces || short != racers-pieces {
		x.Errorf("got %d orders with goods and %d without, want %d and %d", held, short, pieces, racers-pieces)
	}
	x.wantArticle(order.Stock{SKU: x.sku("a"), Reserved: pieces})
}

func (x stockTest) oneEffect() {
	x.mustFinish(order.Declined)
	loaded := x.mustLoad()
	to := []order.Status{order.Paid, order.Canceled}
	x.winners(race(func(i int) error {
		return x.Settle(x.Context(), loaded, outcome(to[i%2], "pi_1"), at(time.Hour))
	}), func(err error) bool { return errors.Is(err, order.ErrStale) })
	_, e := heldAfter(x.mustLoad().Status, "pi_1")
	x.wantStock(e)
}

func (x stockTest) added() {
	sku := x.sku("a")
	for _, tt := range []struct {
		add, available int64
		want           error
	}{
		{5, pieces + 5, nil},
		{-5, pieces, nil},
		{-pieces - 1, pieces, order.ErrTooFewAvailable},
		{-pieces, 0, nil},
	} {
		_, err := x.stock.AddStock(x.Context(), sku, tt.add)
		x.wantError(err, tt.want)
		x.wantArticle(order.Stock{SKU: sku, Available: tt.available})
	}
	_, err := x.stock.AddStock(x.Context(), x.sku("unknown"), -1)
	x.wantError(err, order.ErrTooFewAvailable)
}
