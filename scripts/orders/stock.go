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
	New     bool   `help:"With --add or --recount: create the SKU. Without it, a SKU that does not exist is an error."`
	Yes     bool   `help:"Do not ask, for scripts."`
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

// Run prints the stock of one SKU, after it has asked and changed it.
func (s stock) Run(ctx context.Context, d cloud.Deployment) error {
	changes := s.Add != 0 || s.Recount != nil
	now, err := d.Store().Stock(ctx, s.SKU)
	switch missing := errors.Is(err, order.ErrNotFound); {
	case s.Recount != nil && d.Table == "":
		return errors.New("--recount: ORDERS_TABLE: want the name of the orders table")
	case missing && (!changes || !s.New):
		return fmt.Errorf("no SKU %q in table %q: --new creates it, with --recount if orders may hold it, "+
			"otherwise with --add", s.SKU, d.StockTable)
	case err != nil && !missing:
		return err
	case !missing && s.New:
		return fmt.Errorf("--new: SKU %q is in table %q", s.SKU, d.StockTable)
	}
	if changes {
		now, err = s.change(ctx, d, now)
	}
	if errors.Is(err, order.ErrStale) {
		return fmt.Errorf("%w: an order changed the stock: stop processing, then run it again", err)
	}
	if err != nil {
		return err
	}
	text := fmt.Sprintf("SKU        %s\navailable  %d\nreserved   %d\nsold       %d\n",
		now.SKU, now.Available, now.Reserved, now.Sold)
	return d.Result(text, stockJSON{now.SKU, now.Available, now.Reserved, now.Sold})
}

// change prints the stock as it is and will be, asks, and changes it.
func (s stock) change(
	ctx context.Context, d cloud.Deployment, seen order.Stock,
) (after order.Stock, err error) {
	after = seen
	after.Available += s.Add
	if s.Recount != nil {
		after.Reserved, err = heldBy(ctx, d.Store(), s.SKU)
		after.Available = *s.Recount - after.Reserved
	}
	if err == nil && after.Available < 0 {
		err = fmt.Errorf("%q: %w: orders hold %d", s.SKU, order.ErrTooFewAvailable, after.Reserved)
	}
	if err != nil {
		return seen, err
	}
	fmt.Fprintf(d.People(), "table %s in %s\n\nSKU        %s\n", d.StockTable, d.AWS.Region, s.SKU)
	fmt.Fprintf(d.People(), "available  %d -> %d\nreserved   %d -> %d\nsold       %d\n\n",
		seen.Available, after.Available, seen.Reserved, after.Reserved, seen.Sold)
	if !s.Yes && !d.Confirms("Type the SKU to change it: ", s.SKU) {
		return seen, shell.ErrNotConfirmed
	}
	if s.Recount == nil {
		return d.Store().AddStock(ctx, s.SKU, s.Add)
	}
	return recount(ctx, d.Store(), d.StockTable, s.SKU, seen, after)
}

type stockJSON struct {
	SKU       string `json:"sku"`
	Available int64  `json:"available"`
	Reserved  int64  `json:"reserved"`
	Sold      int64  `json:"sold"`
}

// recount replaces the item of a SKU, or creates it if seen is of none. It returns
// order.ErrStale if the item changed since it was seen. Stock that an order reserves and
// releases meanwhile may escape it, so stop what settles orders first.
func recount(
	ctx context.Context, store *dynamodb.Store, table, sku string, seen, after order.Stock,
) (order.Stock, error) {
	condition := "available = :available AND reserved = :reserved AND sold = :sold"
	values := dynamodb.Item{
		":available": dynamodb.Number(seen.Available), ":reserved": dynamodb.Number(seen.Reserved),
		":sold": dynamodb.Number(seen.Sold), ":free": dynamodb.Number(after.Available), ":held": dynamodb.Number(after.Reserved),
	}
	if seen.SKU == "" {
		condition = "attribute_not_exists(sku)"
		delete(values, ":available")
		delete(values, ":reserved")
	}
	_, err := store.DB.UpdateItem(ctx, &sdk.UpdateItemInput{
		TableName: &table, Key: dynamodb.Item{"sku": dynamodb.Text(sku)}, ConditionExpression: &condition,
		UpdateExpression:          aws.String("SET available = :free, reserved = :held, sold = :sold"),
		ExpressionAttributeValues: values,
	})
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
