package main

import (
	"context"
	"errors"
	"maps"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
)

// Conditions and updates of the row, whose partition key is id. It never expires, or an
// old message would buy a second label. Release keeps leaseUntil, which begin compares.
const (
	mayBegin  = "attribute_not_exists(id) OR (#status = :open AND address = :address AND leaseUntil < :now)"
	setClaim  = "SET #status = :open, address = :address, #owner = :owner, leaseUntil = :until"
	claimed   = "#owner = :owner AND #status = :open" // until another attempt begins the order
	mayBind   = claimed + " AND (attribute_not_exists(shipment) OR shipment = :shipment)"
	bind      = "SET shipment = :shipment"
	mayFinish = claimed + " AND shipment = :shipment"
	finish    = "SET #status = :outcome REMOVE #owner, leaseUntil"
	release   = "SET leaseUntil = :now REMOVE #owner"
)

// begin claims the order, and returns the shipment that is bound to it; "" if none is.
func (j Job) begin(ctx context.Context, m message, l order.Lease) (bound string, err error) {
	r, err := j.write(ctx, m, Shipment{}, l, mayBegin, setClaim)
	switch {
	case err == nil, dynamodb.TextOf(r, "owner") == l.Owner: // the second if the answer to our write was lost
		return dynamodb.TextOf(r, "shipment"), nil
	case !errors.Is(err, order.ErrClaimLost):
		return "", err
	case dynamodb.TextOf(r, "address") != m.AddressID:
		return "", order.ErrConflict
	case dynamodb.TextOf(r, "status") != "open":
		return "", &order.SettledError{}
	}
	return "", &order.InProgressError{Until: l.Until} // the other lease began earlier, so it ends earlier
}

// write returns the new row; or order.ErrClaimLost and the row that refused the write.
func (j Job) write(
	ctx context.Context, m message, s Shipment, l order.Lease, may, set string,
) (dynamodb.Item, error) {
	values := dynamodb.Item{
		":open": dynamodb.Text("open"), ":owner": dynamodb.Text(l.Owner), ":address": dynamodb.Text(m.AddressID),
		":now": dynamodb.Millis(l.From), ":until": dynamodb.Millis(l.Until),
		":shipment": dynamodb.Text(s.ID), ":outcome": dynamodb.Text(s.Status),
	}
	unused := func(name string, _ types.AttributeValue) bool { return !strings.Contains(may+set, name) }
	maps.DeleteFunc(values, unused) // DynamoDB refuses them
	now, err := dynamodb.Update(ctx, j.Client, &sdk.UpdateItemInput{
		TableName: &j.Table, Key: dynamodb.Item{"id": dynamodb.Text(string(m.OrderID))},
		ConditionExpression: &may, UpdateExpression: &set, ExpressionAttributeValues: values,
		ExpressionAttributeNames: map[string]string{"#status": "status", "#owner": "owner"},
	})
	if refusing, refused := dynamodb.Refused(err); refused {
		return refusing, order.ErrClaimLost
	}
	return now, err
}
