package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

func TestStock(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	table := d.table.OpenStock(t)
	d.environ = append(d.environ, "STOCK_TABLE="+table)
	for _, step := range []struct {
		claim   string
		command stock
		printed string
		err     string
	}{
		{"an unknown article", stock{SKU: "MUG"}, "", "--add creates it"},
		{"pieces of a new article", stock{SKU: "MUG", Add: 5}, "article    MUG\navailable  5\nreserved   0\nsold       0\n", ""},
		{"more pieces", stock{SKU: "MUG", Add: 3}, "available  8\n", ""},
		{"fewer pieces", stock{SKU: "MUG", Add: -2}, "available  6\n", ""},
		{"fewer than there are", stock{SKU: "MUG", Add: -7}, "", order.ErrTooFewAvailable.Error()},
		{"the stock", stock{SKU: "MUG"}, "available  6\n", ""},
	} {
		var out strings.Builder
		err := step.command.Run(t.Context(), testShell(d.environ, "", &out))
		if (err == nil) != (step.err == "") || err != nil && !strings.Contains(err.Error(), step.err) {
			t.Errorf("%s: got error %v, want %q", step.claim, err, step.err)
		}
		if !strings.Contains(out.String(), step.printed) {
			t.Errorf("%s: got\n%s\nwant %q in it", step.claim, &out, step.printed)
		}
	}
	var out strings.Builder
	sh := testShell(d.environ, "", &out)
	sh.JSON = true
	must(t, stock{SKU: "MUG"}.Run(t.Context(), sh))
	if want := `{"sku":"MUG","available":6,"reserved":0,"sold":0}` + "\n"; out.String() != want {
		t.Errorf("got %s, want %s", &out, want)
	}
}

func TestStockRefusesWhatNoStockHas(t *testing.T) {
	t.Parallel()
	less, more := int64(-1), int64(maxPieces+1)
	for _, c := range []stock{
		{SKU: "MUG", Recount: &less},
		{SKU: "MUG", Recount: &more},
		{SKU: "two words"},
		{SKU: "MUG", Add: maxPieces + 1},
		{SKU: "MUG", Add: -maxPieces - 1},
	} {
		if err := c.Validate(); err == nil {
			t.Errorf("%+v: got no error, want one", c)
		}
	}
	if err := (stock{SKU: "MUG", Add: maxPieces}).Validate(); err != nil {
		t.Errorf("got %v, want no error", err)
	}
}

// A refused order may hold goods, and the index has it: no scan is needed to find it.
func TestListShowsOrdersThatHoldGoods(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	tracking := d.store.WithStock(d.table.OpenStock(t))
	for sku := range ordertest.Order("any").Goods() {
		_, err := tracking.AddStock(t.Context(), sku, 9)
		must(t, err)
	}
	for _, id := range []order.ID{"REFUSED", "UNBOUND"} {
		c, err := tracking.Begin(t.Context(), ordertest.Order(id), order.Lease{Owner: "w", From: noon(), Until: noon()})
		must(t, err)
		refusal := order.Outcome{Status: order.Refused}
		if id == "REFUSED" {
			refusal.Intent = "pi_1"
			must(t, tracking.Bind(t.Context(), c, order.Intent{ID: "pi_1", Mode: order.TestMode}, noon()))
		}
		must(t, tracking.Finish(t.Context(), c, refusal, noon()))
	}
	process(t, tracking, d.payments, "PENDING", "pm_usBankAccount_processing")
	process(t, d.store, d.payments, "NONE", "pm_usBankAccount_processing")
	for _, l := range []list{{Holding: true}, {Holding: true, Scan: true}} {
		var out strings.Builder
		must(t, l.Run(t.Context(), testShell(d.environ, "", &out)))
		var ids []string
		for line := range strings.Lines(out.String()) {
			ids = append(ids, strings.Fields(line)[0])
		}
		slices.Sort(ids)
		if !slices.Equal(ids, []string{"PENDING", "REFUSED"}) {
			t.Errorf("%+v: got %q, want PENDING and REFUSED:\n%s", l, ids, &out)
		}
	}
}

// Somebody edited an article's item, or deleted it.
func TestRecountStock(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	table := d.table.OpenStock(t)
	tracking := d.store.WithStock(table)
	for sku := range ordertest.Order("any").Goods() {
		_, err := tracking.AddStock(t.Context(), sku, 9)
		must(t, err)
	}
	process(t, tracking, d.payments, "SOLD", "pm_card_visa")
	process(t, tracking, d.payments, "DECLINED", "pm_card_chargeDeclined")
	process(t, tracking, d.payments, "PENDING", "pm_usBankAccount_processing")
	must(t, cancel{ID: "DECLINED", Yes: true}.Run(t.Context(), testShell(append(d.environ, "STOCK_TABLE="+table), "", io.Discard)))
	process(t, tracking, d.payments, "ASKED", "pm_card_authenticationRequired")
	recount := func(pieces int64, environ ...string) (string, error) {
		var out strings.Builder
		s := stock{SKU: "MUG", Recount: &pieces}
		must(t, s.Validate())
		err := s.Run(t.Context(), testShell(append(d.environ, append([]string{"STOCK_TABLE=" + table}, environ...)...), "", &out))
		return out.String(), err
	}
	_, err := tracking.AddStock(t.Context(), "MUG", -3) // of 6, by mistake
	must(t, err)
	if got, err := recount(8); err != nil || got != "article    MUG\navailable  6\nreserved   2\nsold       1\n" {
		t.Errorf("a wrong number: got %q, %v, want 6 available, 2 reserved and what was sold", got, err)
	}
	if got, err := recount(2); err != nil || !strings.Contains(got, "available  0\nreserved   2\n") {
		t.Errorf("as many as orders hold: got %q, %v, want none available", got, err)
	}
	_, err = recount(8)
	must(t, err)
	if _, err := recount(1); !errors.Is(err, order.ErrTooFewAvailable) || !strings.Contains(err.Error(), "orders hold 2") {
		t.Errorf("fewer than orders hold: got %v, want %v", err, order.ErrTooFewAvailable)
	}
	if _, err := recount(8, "ORDERS_TABLE="); err == nil || !strings.Contains(err.Error(), "ORDERS_TABLE: want") {
		t.Errorf("without the orders table: got %v", err)
	}
	deleteItem := func() {
		_, err := d.table.Client.DeleteItem(t.Context(), &sdk.DeleteItemInput{
			TableName: &table, Key: dynamodb.Item{"sku": dynamodb.Text("MUG")},
		})
		must(t, err)
	}
	for _, tt := range []struct {
		claim     string
		meanwhile func()
	}{
		{"an order reserves a piece", func() { process(t, tracking, d.payments, "LATER", "pm_usBankAccount_processing") }},
		{"goods come in", func() {
			_, err := tracking.AddStock(t.Context(), "MUG", 10)
			must(t, err)
		}},
		{"the article is deleted", deleteItem},
	} {
		var once sync.Once
		d.table.Proxy.Before(func(c dynamodbtest.Call) {
			if c.Operation == "Scan" {
				once.Do(tt.meanwhile)
				if !strings.Contains(string(c.Request), `"ConsistentRead":true`) {
					t.Error("the count may miss what orders have just reserved")
				}
			}
		})
		if _, err := recount(8); !errors.Is(err, order.ErrStale) || !strings.Contains(err.Error(), "stop processing") {
			t.Errorf("%s meanwhile: got %v, want %v", tt.claim, err, order.ErrStale)
		}
	}
	if got, err := recount(5); err != nil || got != "article    MUG\navailable  2\nreserved   3\nsold       0\n" {
		t.Errorf("a deleted article: got %q, %v, want what three orders hold reserved", got, err)
	}
}

// The operator's commands settle orders that hold goods, and refuse to without the table.
func TestCancelFreesGoods(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	table := d.table.OpenStock(t)
	tracking := d.store.WithStock(table)
	for sku := range ordertest.Order("ORD-1").Goods() {
		_, err := tracking.AddStock(t.Context(), sku, 1)
		must(t, err)
	}
	process(t, tracking, d.payments, "DECLINED", "pm_card_chargeDeclined")
	var out strings.Builder
	err := cancel{ID: "DECLINED", Yes: true}.Run(t.Context(), testShell(d.environ, "", &out))
	if err == nil || !strings.Contains(err.Error(), "set STOCK_TABLE") {
		t.Errorf("without the table: got %v, want what to set", err)
	}
	if !strings.Contains(out.String(), "holds      MUG 1, TSHIRT-M 1\n") {
		t.Errorf("got\n%s\nwant the goods that it holds", &out)
	}
	must(t, cancel{ID: "DECLINED", Yes: true}.Run(t.Context(), testShell(append(d.environ, "STOCK_TABLE="+table), "", &out)))
	if s, err := tracking.Stock(t.Context(), "MUG"); err != nil || s.Available != 1 || s.Reserved != 0 {
		t.Errorf("got %+v, %v, want the goods available", s, err)
	}
	if _, err := tracking.Stock(t.Context(), "NONE"); !errors.Is(err, order.ErrNotFound) {
		t.Errorf("got %v, want %v", err, order.ErrNotFound)
	}
}

// What a person does first with an order that had no goods.
func TestAnOrderThatIsOutOfStock(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	table := d.table.OpenStock(t)
	for sku := range ordertest.Order("SHORT").Goods() {
		_, err := d.store.WithStock(table).AddStock(t.Context(), sku, 0) // listed, without a piece
		must(t, err)
	}
	process(t, d.store.WithStock(table), d.payments, "SHORT", "pm_card_visa")
	environ := append(d.environ, "STOCK_TABLE="+table)
	var out strings.Builder
	must(t, list{Status: []order.Status{order.OutOfStock}, Scan: true}.Run(t.Context(), testShell(environ, "", &out)))
	if !strings.HasPrefix(out.String(), "SHORT ") || !strings.HasSuffix(out.String(), "  MUG\n") {
		t.Errorf("listed %q, want the order and the article that was short", &out)
	}
	for name, command := range map[string]interface {
		Run(ctx context.Context, sh shell.Shell) error
	}{
		"cancel": cancel{ID: "SHORT", Yes: true},
		"refund": makeRefund{Order: "SHORT", Amount: 100, Reason: "duplicate", Yes: true},
	} {
		err := command.Run(t.Context(), testShell(environ, "", &out))
		if err == nil || !strings.HasSuffix(cloud.Hint(err).Error(), "\n"+cloud.NeverCharged) {
			t.Errorf("%s: got %v, want that it was never charged", name, err)
		}
	}
}
