package dynamodb_test

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestStock(t *testing.T) {
	t.Parallel()
	store := openStock(t, 0).Store
	ordertest.TestStock(t, func(*testing.T) ordertest.StockStore { return store })
}

// openStock is open with a stock table that has so many units of each SKU.
func openStock(t *testing.T, units int64) fixture {
	t.Helper()
	f := open(t)
	f.Store, f.stocked = f.WithStock(f.OpenStock(t)), true
	for sku := range ordertest.Order("O1").Quantities() {
		f.add(sku, units)
	}
	f.Proxy.Reset()
	return f
}

func (f fixture) add(sku string, n int64) {
	f.Helper()
	_, err := f.AddStock(f.Context(), sku, n)
	f.must(err)
}

func (f fixture) wantStock(want order.Stock) {
	f.Helper()
	got, err := f.Stock(f.Context(), want.SKU)
	f.must(err)
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("stock (-want +got):\n%s", diff)
	}
}

// released claims the order, in the store without stock if tracked is false, and ends the
// claim. It binds an intent of the bank if there is one.
func (f fixture) released(bank *ordertest.Bank, tracked bool) {
	f.Helper()
	if !tracked {
		f.Store, f.stocked = dynamodb.New(f.Config, f.Table), false
	}
	c := f.claimed("O1")
	if bank != nil {
		i, err := bank.Prepare(f.Context(), c.Order, order.PrepareKey("test", "O1"))
		f.must(err)
		f.must(c.Bind(f.Context(), f, i, at(1)))
	}
	f.must(c.Release(f.Context(), f, order.ReasonStore, at(1)))
}

// What an order costs is how many calls it makes. Fewer than no units are no stock table.
func TestProcessWithStock(t *testing.T) {
	t.Parallel()
	transactions := func(n, updates int) map[string]int {
		counts := map[string]int{"TransactWriteItems": n, "UpdateItem": updates}
		maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
		return counts
	}
	for claim, tt := range map[string]struct {
		units  int64
		before func(fixture, *ordertest.Bank)
		want   order.Status
		calls  map[string]int
	}{
		"a new order without a stock table costs three calls": {
			-1, func(fixture, *ordertest.Bank) {}, order.Paid, transactions(1, 2),
		},
		"a duplicate without a stock table costs one call": {
			-1, func(f fixture, _ *ordertest.Bank) { f.settled("O1") }, order.Paid, transactions(0, 1),
		},
		"a new order costs as many calls as without stock": {
			1, func(fixture, *ordertest.Bank) {}, order.Paid, transactions(2, 1),
		},
		"a new order without stock costs three calls": {
			0, func(fixture, *ordertest.Bank) {}, order.OutOfStock, transactions(2, 1),
		},
		"a duplicate of a settled order costs one call": {
			1, func(f fixture, _ *ordertest.Bank) { f.settled("O1") }, order.Paid, transactions(1, 0),
		},
		"a takeover costs one call more": {
			1, func(f fixture, _ *ordertest.Bank) { f.released(nil, true) }, order.Paid, transactions(2, 2),
		},
		"a takeover of an order that holds nothing yet costs one call more": {
			1, func(f fixture, _ *ordertest.Bank) { f.released(nil, false) }, order.Paid, transactions(3, 1),
		},
		"an order whose intent was bound before is not charged without stock": {
			0, func(f fixture, b *ordertest.Bank) { f.released(b, false) }, order.Refused, transactions(3, 1),
		},
		"an order whose intent was bound before is charged with its stock": {
			1, func(f fixture, b *ordertest.Bank) { f.released(b, false) }, order.Paid, transactions(3, 0),
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			f, bank := open(t), &ordertest.Bank{Scope: "test"}
			if tt.units >= 0 {
				f = openStock(t, tt.units)
			}
			tt.before(f, bank)
			f.Proxy.Reset()
			p := order.Processor{
				Store: f.Store, Payments: bank, Scope: "test", Now: func() time.Time { return at(0) },
				ConfirmTime: time.Second, TracksStock: f.stocked,
			}
			if r := p.Process(t.Context(), ordertest.Order("O1"), at(0), lease("second")); r.Status != tt.want {
				t.Errorf("got %+v, want %s", r, tt.want)
			}
			if diff := cmp.Diff(tt.calls, f.Proxy.Counts()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStockSurvivesTransientErrors fails each call of an order once. Its retry reserves
// and sells once. AddStock has no key of its own, and a retry of the SDK adds once.
func TestStockSurvivesTransientErrors(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]dynamodbtest.Kind{
		"a conflict on a hot SKU": dynamodbtest.TransactionConflict,
		"a lost request":          dynamodbtest.LoseBefore,
		"a lost response":         dynamodbtest.LoseAfter,
		"an internal error after": dynamodbtest.InternalErrorAfter,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := openStock(t, 3)
			once := dynamodbtest.Fault{Kind: kind, Times: 1}
			f.Proxy.Fail(once)
			c := f.bound("O1")
			f.wantStock(order.Stock{SKU: "MUG", Available: 2, Reserved: 1})
			f.Proxy.Fail(once)
			f.must(c.Finish(t.Context(), f, asPaid(), at(2)))
			f.Proxy.Fail(once)
			f.add("MUG", 100)
			f.wantStock(order.Stock{SKU: "MUG", Available: 102, Sold: 1})
		})
	}
}

// TestARepeatedSaveReservesOnce repeats the transaction that reserves stock as another
// request, as after a response that was lost for too long.
func TestARepeatedSaveReservesOnce(t *testing.T) {
	t.Parallel()
	f := openStock(t, 3)
	tracking := f.Store
	f.Store, f.stocked = dynamodb.New(f.Config, f.Table), false
	quantities := f.claimed("O1").Order.Quantities()
	before := f.loaded("O1")
	after := before
	after.Stock = quantities
	for range 2 {
		held, err := tracking.Save(t.Context(), before, after)
		f.must(err)
		if diff := cmp.Diff(quantities, held.Stock); diff != "" {
			t.Errorf("stock of the record (-want +got):\n%s", diff)
		}
	}
	f.Store = tracking
	f.wantStock(order.Stock{SKU: "MUG", Available: 2, Reserved: 1})
}

func TestAStoreWithoutStockLeavesStockAlone(t *testing.T) {
	t.Parallel()
	f := openStock(t, 1)
	c := f.bound("O1")
	f.Store = dynamodb.New(f.Config, f.Table)
	f.Proxy.Reset()
	for method, err := range map[string]error{
		"finish": c.Finish(t.Context(), f, asPaid(), at(2)),
		"settle": order.Settle(t.Context(), f, f.loaded("O1"), asPaid(), at(2)),
	} {
		if err == nil || isDomain(err) || !strings.Contains(err.Error(), "set STOCK_TABLE") {
			t.Errorf("%s: got %v, want a store error that says what to set", method, err)
		}
	}
	if diff := cmp.Diff(map[string]int{"Query": 1}, f.Proxy.Counts()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestStockThatWasDeletedOrEditedIsCorrupt(t *testing.T) {
	t.Parallel()
	f := open(t)
	table := f.OpenStock(t)
	f.Store, f.stocked = f.WithStock(table), true
	f.add("MUG", 1)
	f.add("TSHIRT-M", 1)
	c := f.bound("O1")
	_, err := f.Client.DeleteItem(t.Context(), &sdk.DeleteItemInput{TableName: &table, Key: row{"sku": text("MUG")}})
	f.must(err)
	err = c.Finish(t.Context(), f, asPaid(), at(2))
	if !errors.Is(err, order.ErrCorrupt) || !strings.Contains(err.Error(), `stock of "MUG"`) {
		t.Errorf("got %v, want %v that names the SKU", err, order.ErrCorrupt)
	}
	if r := f.loaded("O1"); r.Status != order.Open || len(r.Stock) != 2 {
		t.Errorf("got %+v, want an open order with its stock", r)
	}
	_, err = f.Client.PutItem(t.Context(), &sdk.PutItemInput{
		TableName: &table, Item: row{"sku": text("MUG"), "available": text("ten")},
	})
	f.must(err)
	_, err = f.Stock(t.Context(), "MUG")
	if _, rowErr := dynamodb.DecodeOrder(row{"stock": text("MUG")}); !errors.Is(err, order.ErrCorrupt) ||
		!errors.Is(rowErr, order.ErrCorrupt) {
		t.Errorf("got %v, and %v of a row, want %v", err, rowErr, order.ErrCorrupt)
	}
}

// Another transaction of the same order commits its items one by one: the SKU may
// have its effect already while the row is still held.
func TestAnSKUThatRefusesWhileTheRowIsHeldDecidesNothing(t *testing.T) {
	t.Parallel()
	const held = `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","CancellationReasons":[` +
		`{"Code":"TransactionConflict"},{"Code":"ConditionalCheckFailed"},{"Code":"None"}]}`
	claimed := order.Record{OrderID: "O1", Status: order.Open, Owner: "first", Attempt: 1}
	holds := claimed
	holds.Stock = ordertest.Order("O1").Quantities()
	sold := claimed
	sold.Status, sold.Intent = order.Paid, "pi_1"
	for name, change := range map[string][2]order.Record{
		"begin": {{}, holds}, "reserve": {claimed, holds}, "sell": {holds, sold},
	} {
		table := alwaysResponds(http.StatusBadRequest, held)
		_, err := newStore(table).WithStock("stock").Save(t.Context(), change[0], change[1])
		if calls := table.calls; err == nil || isDomain(err) || errors.Is(err, order.ErrCorrupt) || calls != 1 {
			t.Errorf("%s: got %d calls and error %v, want 1 and a store error", name, calls, err)
		}
	}
}
