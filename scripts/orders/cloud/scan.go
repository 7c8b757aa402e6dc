package cloud

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/adapters/dynamodb"
	refundtable "orderonce/adapters/dynamodb/refunds"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// Row is an order of the table without its events. One that could not be decoded has only
// its id.
type Row struct {
	order.Record

	Account refund.Account
	err     error // of decoding it
}

// scan reads the orders of the table with one call, at most 1 MB. after is "", or the
// next of another call.
//
// The reads are eventually consistent, which costs half: 128 read units a call, for the
// event items too. Load a row before you decide anything about it.
func scan(ctx context.Context, s *dynamodb.Store, after string) (rows []Row, next string, err error) {
	items, next, err := scanItems(ctx, s, after, &sdk.ScanInput{
		FilterExpression:          aws.String("sk = :order"),
		ExpressionAttributeValues: dynamodb.Item{":order": dynamodb.Text(dynamodb.OrderRow)},
	})
	for _, item := range items {
		r := Row{}
		if r.Record, r.err = dynamodb.DecodeOrder(item); r.err == nil {
			r.Account, r.err = refundtable.Decode(item)
		}
		if r.err != nil {
			r.Record = order.Record{OrderID: order.ID(dynamodb.TextOf(item, "orderId"))}
		}
		rows = append(rows, r)
	}
	return rows, next, err
}

func scanItems(
	ctx context.Context, s *dynamodb.Store, after string, of *sdk.ScanInput,
) (items []dynamodb.Item, next string, err error) {
	if id, sk, found := strings.Cut(after, "/"); found { // an order id has no slash
		of.ExclusiveStartKey = dynamodb.Item{"orderId": dynamodb.Text(id), "sk": dynamodb.Text(sk)}
	} else if after != "" {
		return nil, "", fmt.Errorf("scan position %q: want orderId/sk", after)
	}
	of.TableName = &s.TableName
	out, err := s.DB.Scan(ctx, of)
	if err != nil {
		return nil, "", fmt.Errorf("scan the table after %q: %w", after, err)
	}
	if key := out.LastEvaluatedKey; len(key) > 0 {
		next = dynamodb.TextOf(key, "orderId") + "/" + dynamodb.TextOf(key, "sk")
	}
	return out.Items, next, nil
}
