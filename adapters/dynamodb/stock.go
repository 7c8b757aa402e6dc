package dynamodb

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/domain/order"
)

// The conditions and updates of stock. An order's row holds its stock in the attribute
// stock until its effect, so each effect happens once.
const (
	enough   = "available >= :n"
	reserve  = "SET available = available - :n, reserved = reserved + :n"
	reserved = "reserved >= :n"
	sell     = "SET reserved = reserved - :n, sold = sold + :n"
	free     = "SET reserved = reserved - :n, available = available + :n"
	addStock = "SET available = if_not_exists(available, :zero) + :n, reserved = if_not_exists(reserved, :zero)," +
		" sold = if_not_exists(sold, :zero)"
)

// WithStock returns the store with an option: Begin reserves an order's stock in this
// table, and the writes that settle the order sell or release it. The table's partition
// key is sku. Every program that settles orders must use the same table.
//
// Begin of a new order is one TransactWriteItems.
func (s *Store) WithStock(table string) *Store {
	with := *s
	with.stock = table
	return &with
}

// TracksStock reports whether the store has a stock table.
func (s *Store) TracksStock() bool { return s.stock != "" }

// stockUpdates returns one conditional update for each SKU, in the order of SKUs.
func (s *Store) stockUpdates(
	quantities order.Quantities, effect order.StockEffect,
) (all []types.TransactWriteItem) {
	condition, update := reserved, free
	switch effect {
	case order.StockReserved:
		condition, update = enough, reserve
	case order.StockSold:
		update = sell
	case order.StockReleased, order.StockKept:
	}
	for _, sku := range quantities.SKUs() {
		all = append(all, types.TransactWriteItem{Update: &types.Update{
			TableName: &s.stock, Key: Item{"sku": Text(sku)},
			ConditionExpression: aws.String(condition), UpdateExpression: aws.String(update),
			ExpressionAttributeValues:           Item{":n": Number(quantities[sku])},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld, // no item: unlisted
		}})
	}
	return all
}

// ErrTooFewReserved reports a SKU whose item does not have what orders hold: somebody
// edited or deleted it.
var ErrTooFewReserved = errors.New("fewer units are reserved")

// stockError returns a *order.ShortError for the first SKU that could not be
// reserved, and order.ErrCorrupt for one of which fewer units are reserved than the
// order holds: only an edit or a deletion of its item can have caused that. Any other
// error is returned as it is. The updates of the stock start at index first of the
// transaction.
//
// If the row is held by another transaction of the same order, a SKU may show the
// effect of that one already, so its refusal proves nothing.
func stockError(err error, quantities order.Quantities, effect order.StockEffect, first int) error {
	canceled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok || len(canceled.CancellationReasons) < first+len(quantities) ||
		aws.ToString(canceled.CancellationReasons[0].Code) != noReason {
		return err
	}
	for i, sku := range quantities.SKUs() {
		why := canceled.CancellationReasons[first+i]
		switch {
		case aws.ToString(why.Code) != conditionFailed:
		case effect == order.StockReserved:
			return &order.ShortError{SKU: sku, Unlisted: len(why.Item) == 0}
		default:
			return fmt.Errorf("%w: stock of %q: %w than the %d that the order holds",
				order.ErrCorrupt, sku, ErrTooFewReserved, quantities[sku])
		}
	}
	return err
}

// Stock returns the stock of a SKU with one strongly consistent GetItem, or
// order.ErrNotFound.
func (s *Store) Stock(ctx context.Context, sku string) (order.Stock, error) {
	out, err := s.DB.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.stock, Key: Item{"sku": Text(sku)}, ConsistentRead: aws.Bool(true),
	})
	if err == nil && len(out.Item) == 0 {
		err = order.ErrNotFound
	}
	if err != nil {
		return order.Stock{}, fmt.Errorf("load stock of %q: %w", sku, err)
	}
	return decodeStock(out.Item)
}

// AddStock adds n units of a SKU with one TransactWriteItems, and returns its stock
// as Stock does. A negative n takes units away: it returns order.ErrTooFewAvailable if
// fewer are available.
//
// It is a transaction of one write because of the SDK's client request token: a retry
// after a lost response must not add again. AddStock itself has no key, so another call
// adds again, also after an error that is not ErrTooFewAvailable.
func (s *Store) AddStock(ctx context.Context, sku string, n int64) (order.Stock, error) {
	condition := "attribute_not_exists(sku) OR available >= :least"
	if n < 0 {
		condition = "available >= :least"
	}
	_, err := s.DB.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{{Update: &types.Update{
			TableName: &s.stock, Key: Item{"sku": Text(sku)},
			ConditionExpression: &condition, UpdateExpression: aws.String(addStock),
			ExpressionAttributeValues: Item{":n": Number(n), ":zero": Number(0), ":least": Number(max(-n, 0))},
		}}},
	})
	if _, refused := Refused(err); refused {
		err = order.ErrTooFewAvailable
	}
	if err != nil {
		return order.Stock{}, fmt.Errorf("add %d units of %q: %w", n, sku, err)
	}
	return s.Stock(ctx, sku)
}

func decodeStock(item Item) (s order.Stock, err error) {
	f := Fields{Item: item}
	f.Require("sku", "available", "reserved", "sold")
	TextField(&f, "sku", &s.SKU)
	NumberField(&f, "available", &s.Available)
	NumberField(&f, "reserved", &s.Reserved)
	if NumberField(&f, "sold", &s.Sold); f.Err != nil {
		return order.Stock{}, fmt.Errorf("stock item: %w", f.Err)
	}
	return s, nil
}

// stock ties the stock that an order holds; nil if it holds none.
func (f *Fields) stock(q *order.Quantities) {
	of, isMap := f.Item["stock"].(*types.AttributeValueMemberM)
	switch {
	case f.Encodes && len(*q) > 0:
		of = &types.AttributeValueMemberM{Value: make(Item, len(*q))}
		for sku, n := range *q {
			of.Value[sku] = Number(n)
		}
		f.Item["stock"] = of
	case f.Encodes, f.Item["stock"] == nil:
	case !isMap:
		f.Want("stock", "a map")
	default:
		in := Fields{Item: of.Value}
		*q = make(order.Quantities, len(of.Value))
		for sku := range of.Value {
			(*q)[sku] = in.Number(sku)
		}
		f.Err = errors.Join(f.Err, in.Err)
	}
}

var errNoStockTable = errors.New("the order holds stock, but no stock table is configured: set STOCK_TABLE")
