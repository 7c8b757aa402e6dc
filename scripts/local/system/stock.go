package system

import (
	"context"
	"fmt"
	"maps"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/domain/order"
)

// createStock creates the stock table with the articles of Options.Stock.
func (s *System) createStock(ctx context.Context, client *sdk.Client) error {
	if s.Options.Stock == nil {
		return nil
	}
	s.Stock = TableIn(s.Options.Engine, "stock")
	if err := dynamodbtest.CreateStockTable(ctx, client, s.Stock); err != nil {
		return err
	}
	s.DropOnClose(ctx, s.Stock)
	s.Store = s.Store.WithStock(s.Stock)
	for sku, n := range s.Options.Stock {
		if _, err := s.Store.AddStock(ctx, sku, n); err != nil {
			return err
		}
	}
	return nil
}

// collectStock reads the articles of Options.Stock.
func (b *Books) collectStock(ctx context.Context, s *System) error {
	if s.Stock == "" {
		return nil
	}
	b.Stock, b.Delivered = map[string]order.Stock{}, s.Options.Stock
	for sku := range s.Options.Stock {
		stock, err := s.Store.Stock(ctx, sku)
		if err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		b.Stock[sku] = stock
	}
	return nil
}

// unbalancedStock compares the stock with what came in, with the rows that hold goods,
// and with the orders that Stripe charged.
func (b *Books) unbalancedStock() (broken findings) {
	held, charged, posted := order.Goods{}, order.Goods{}, b.ordered()
	for _, id := range slices.Sorted(maps.Keys(b.Records)) {
		r := b.Records[id]
		goods := posted[content{id, r.Fingerprint}]
		if r.Stock != nil && !maps.Equal(r.Stock, goods) {
			broken.add("wrong goods: order %s holds %v, its lines have %v", id, r.Stock, goods)
		}
		if r.Stock != nil && !mayBePaid(r) {
			broken.add("goods leaked: order %s is %s and holds %v", id, r.Status, r.Stock)
		}
		addGoods(held, r.Stock)
		if len(b.Charges[id]) > 0 {
			addGoods(charged, goods)
		}
	}
	for _, sku := range slices.Sorted(maps.Keys(b.Delivered)) {
		got := b.Stock[sku]
		want := order.Stock{
			SKU: sku, Available: b.Delivered[sku] - held[sku] - charged[sku], Reserved: held[sku], Sold: charged[sku],
		}
		if got != want || got.Available < 0 {
			broken.add("stock mismatch: %+v, want %+v by the rows and Stripe's ledger", got, want)
		}
	}
	return broken
}

// content is what was ordered under an id.
type content struct {
	id          order.ID
	fingerprint order.Fingerprint
}

// ordered returns the goods of every valid message.
func (b *Books) ordered() map[content]order.Goods {
	goods := map[content]order.Goods{}
	for _, p := range b.Posted {
		if p.Invalid == nil && !p.IsRefund() {
			goods[content{p.OrderID(), p.Order.Fingerprint()}] = p.Order.Goods()
		}
	}
	return goods
}

// mayBePaid reports whether an order may still be paid. It states the rule itself and
// does not use package order, so that a test compares the two.
func mayBePaid(r order.Record) bool {
	switch r.Status {
	case order.Open, order.Declined, order.ActionRequired, order.Pending:
		return true
	case order.Refused:
		return r.Intent != ""
	case order.Paid, order.Canceled, order.OutOfStock, order.PartiallyRefunded, order.Refunded:
	}
	return false
}

func addGoods(sum, more order.Goods) {
	for sku, n := range more {
		sum[sku] += n
	}
}
