package dynamodb_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	ordertest.TestStore(t, func(*testing.T) order.Store {
		return editable{dynamodb.New(h.Config, h.Table), h}
	})
}

// editable is a store whose rows a test can edit.
type editable struct {
	*dynamodb.Store

	h *dynamodbtest.Harness
}

func (r editable) SetFingerprint(ctx context.Context, id order.ID, f order.Fingerprint) error {
	return r.set(ctx, id, "fingerprint", string(f))
}

func (r editable) SetStatus(ctx context.Context, id order.ID, s order.Status) error {
	return r.set(ctx, id, "status", string(s))
}

func (r editable) set(ctx context.Context, id order.ID, attribute, value string) error {
	_, err := r.h.Client.UpdateItem(ctx, &sdk.UpdateItemInput{
		TableName:                 &r.h.Table,
		Key:                       row{"orderId": text(id), "sk": text("order")},
		ConditionExpression:       aws.String("attribute_exists(orderId)"),
		UpdateExpression:          aws.String("SET #name = :value"),
		ExpressionAttributeNames:  map[string]string{"#name": attribute},
		ExpressionAttributeValues: row{":value": text(value)},
	})
	return err
}
