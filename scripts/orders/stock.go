package main

import (
	"context"
	"errors"
	"fmt"

	"orderonce/domain/order"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

// maxPieces bounds one change of the stock, so that no sum overflows.
const maxUnits = 1_000_000_000

type stock struct {
	SKU     string `arg:"" name:"sku" help:"The SKU."`
	Add     int64  `placeholder:"N" xor:"change" help:"Add N units; --add=-N takes N available units away."`
	Recount *int64 `placeholder:"N" xor:"change" help:"Correct the numbers: N units are in store, without the sold ones."`
}

// Validate returns an error for a SKU or a number that no stock has.
func (s stock) Validate() error {
	if !order.ValidSKU(s.SKU) {
		return fmt.Errorf("sku %s: want %s", order.Quote(s.SKU), order.SKURule)
	}
	if s.Recount != nil && (*s.Recount < 0 || *s.Recount > maxUnits) {
		return fmt.Errorf("--recount %d: want 0 to %d units", *s.Recount, maxUnits)
	}
	if s.Add < -maxUnits || s.Add > maxUnits {
		return fmt.Errorf("--add %d: want at most %d units at once", s.Add, maxUnits)
	}
	return nil
}

// Run prints the stock of one SKU, after it has added units.
func (s stock) Run(ctx context.Context, sh shell.Shell) error {
	d, err := cloud.Open(ctx, sh, "STOCK_TABLE")
	if err != nil {
		return err
	}
	store := d.Store()
	var now order.Stock
	switch {
	case s.Recount != nil && d.Table == "":
		return errors.New("--recount: ORDERS_TABLE: want the name of the orders table")
	case s.Recount != nil:
		now, err = store.Recount(ctx, s.SKU, *s.Recount)
	case s.Add != 0:
		now, err = store.AddStock(ctx, s.SKU, s.Add)
	default:
		now, err = store.Stock(ctx, s.SKU)
	}
	switch {
	case errors.Is(err, order.ErrStale):
		return fmt.Errorf("%w: an order changed the stock: stop processing, then run it again", err)
	case errors.Is(err, order.ErrNotFound):
		return fmt.Errorf("no SKU %q in table %q: --add creates it", s.SKU, d.StockTable)
	case err != nil:
		return err
	}
	text := fmt.Sprintf("SKU        %s\navailable  %d\nreserved   %d\nsold       %d\n",
		now.SKU, now.Available, now.Reserved, now.Sold)
	return d.Result(text, stockJSON{now.SKU, now.Available, now.Reserved, now.Sold})
}

type stockJSON struct {
	SKU       string `json:"sku"`
	Available int64  `json:"available"`
	Reserved  int64  `json:"reserved"`
	Sold      int64  `json:"sold"`
}
