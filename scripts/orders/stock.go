package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

// maxUnits bounds one change of the stock, so that no sum overflows.
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
		now, err = recount(ctx, store, d.StockTable, s.SKU, *s.Recount)
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

// recount corrects the item of a SKU of which units are in store, sold ones apart: those
// that orders hold are reserved, and the others are available.
//
// It returns order.ErrTooFewAvailable if orders hold more, and order.ErrStale if the item
// changed meanwhile. Stock that an order reserves and releases during the scan may escape
// both, so stop what settles orders first.
func recount(
	ctx context.Context, store *dynamodb.Store, table, sku string, units int64,
) (order.Stock, error) {
	seen, err := store.Stock(ctx, sku)
	condition, values := "attribute_not_exists(sku)", dynamodb.Item{}
	if err == nil {
		condition = "available = :available AND reserved = :reserved AND sold = :sold"
		values[":available"], values[":reserved"] = dynamodb.Number(seen.Available), dynamodb.Number(seen.Reserved)
		values[":sold"] = dynamodb.Number(seen.Sold)
	} else if !errors.Is(err, order.ErrNotFound) {
		return order.Stock{}, err
	}
	held, err := heldBy(ctx, store, sku)
	if err == nil && held > units {
		err = fmt.Errorf("%w: orders hold %d", order.ErrTooFewAvailable, held)
	}
	if err == nil {
		values[":free"], values[":held"] = dynamodb.Number(units-held), dynamodb.Number(held)
		values[":sales"] = dynamodb.Number(seen.Sold)
		_, err = dynamodb.Update(ctx, store.DB, &sdk.UpdateItemInput{
			TableName: &table, Key: dynamodb.Item{"sku": dynamodb.Text(sku)}, ConditionExpression: &condition,
			UpdateExpression:          aws.String("SET available = :free, reserved = :held, sold = :sales"),
			ExpressionAttributeValues: values,
		})
	}
	if _, refused := dynamodb.Refused(err); refused {
		err = order.ErrStale
	}
	if err != nil {
		return order.Stock{}, fmt.Errorf("recount %q: %w", sku, err)
	}
	return store.Stock(ctx, sku)
}

// heldBy returns how many units of a SKU orders hold, by a strongly consistent scan.
func heldBy(ctx context.Context, store *dynamodb.Store, sku string) (units int64, err error) {
	pages := sdk.NewScanPaginator(store.DB, &sdk.ScanInput{
		TableName: &store.TableName, ConsistentRead: aws.Bool(true),
		FilterExpression:         aws.String("attribute_exists(stock.#sku)"),
		ExpressionAttributeNames: map[string]string{"#sku": sku},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, err
		}
		for _, item := range page.Items {
			r, err := dynamodb.DecodeOrder(item)
			if err != nil {
				return 0, err
			}
			units += r.Stock[sku]
		}
	}
	return units, nil
}
