package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/domain/order"
)

// Table has one row for each order, with the partition key id. A row never expires:
// without it, an old message would buy a second label.
type Table struct {
	Client *dynamodb.Client
	Name   string
}

// claimed is true until another attempt begins the order, or the order is settled.
const claimed = "#owner = :owner AND #status = :open"

// Begin claims the order until the lease ends, and returns the id of the shipment that is
// bound to it; "" if none is.
func (t Table) Begin(ctx context.Context, m message, l order.Lease) (bound string, err error) {
	r, err := t.update(ctx, m, l,
		"attribute_not_exists(id) OR (#status = :open AND address = :address AND leaseUntil < :now)",
		"SET #status = :open, address = :address, #owner = :owner, leaseUntil = :until",
		row{":address": text(m.AddressID), ":now": millis(l.From), ":until": millis(l.Until)})
	switch {
	case err == nil, r.text("owner") == l.Owner: // the second if the answer to our write was lost
		return r.text("shipment"), nil
	case !errors.Is(err, order.ErrClaimLost):
		return "", err
	case r.text("address") != m.AddressID:
		return "", order.ErrConflict
	case r.text("status") != "open":
		return "", &order.SettledError{}
	}
	return "", &order.InProgressError{Until: l.Until} // the other lease began earlier, so it ends earlier
}

// Bind records the only shipment that may ever be bought for the order.
func (t Table) Bind(ctx context.Context, m message, s Shipment, l order.Lease) error {
	_, err := t.update(ctx, m, l, claimed+" AND (attribute_not_exists(shipment) OR shipment = :shipment)",
		"SET shipment = :shipment", row{":shipment": text(s.ID)})
	return err
}

// Finish records what became of the bound shipment, and ends the claim.
func (t Table) Finish(ctx context.Context, m message, s Shipment, l order.Lease) error {
	_, err := t.update(ctx, m, l, claimed+" AND shipment = :shipment",
		"SET #status = :outcome REMOVE #owner, leaseUntil", row{":shipment": text(s.ID), ":outcome": text(s.Status)})
	return err
}

// Release ends the claim of an attempt that failed. It keeps leaseUntil, because Begin
// compares it.
func (t Table) Release(ctx context.Context, m message, l order.Lease) error {
	_, err := t.update(ctx, m, l, claimed, "SET leaseUntil = :past REMOVE #owner", row{":past": millis(l.From)})
	return err
}

// update returns the new row; or order.ErrClaimLost and the row that refused the write.
func (t Table) update(ctx context.Context, m message, l order.Lease, when, set string, v row) (row, error) {
	v[":owner"], v[":open"] = text(l.Owner), text("open")
	out, err := t.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.Name, Key: row{"id": text(string(m.OrderID))},
		ConditionExpression: &when, UpdateExpression: &set,
		ExpressionAttributeNames:  map[string]string{"#status": "status", "#owner": "owner"},
		ExpressionAttributeValues: v, ReturnValues: "ALL_NEW", ReturnValuesOnConditionCheckFailure: "ALL_OLD",
	})
	if refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return refused.Item, order.ErrClaimLost
	}
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

type row map[string]types.AttributeValue

func (r row) text(name string) string {
	if s, ok := r[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func text(s string) *types.AttributeValueMemberS { return &types.AttributeValueMemberS{Value: s} }

func millis(t time.Time) *types.AttributeValueMemberN {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(t.UnixMilli(), 10)}
}
