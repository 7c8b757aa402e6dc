package system

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/adapters/dynamodb/dynamodbtest"
)

// createStock creates the stock table with the SKUs of Options.Stock.
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
