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

// Table has a row for each order, whose partition key is id. It never expires, or an old
// message would start the job again.
type Table struct {
	Client *sdk.Client
	Name   string
}

// Conditions and updates of a row. Release keeps leaseUntil, which begin compares.
const (
	mayBegin  = "attribute_not_exists(id) OR (#status = :open AND content = :content AND leaseUntil < :now)"
	setClaim  = "SET #status = :open, content = :content, #owner = :owner, leaseUntil = :until"
	claimed   = "#owner = :owner AND #status = :open" // until another attempt begins the order
	mayBind   = claimed + " AND (attribute_not_exists(bound) OR bound = :bound)"
	bind      = "SET bound = :bound"
	mayFinish = claimed + " AND bound = :bound"
	finish    = "SET #status = :outcome REMOVE #owner, leaseUntil"
	release   = "SET leaseUntil = :now REMOVE #owner"
)

// begin claims the order, and returns its row.
func (t Table) begin(ctx context.Context, m message, l order.Lease) (dynamodb.Item, error) {
	row, err := t.write(ctx, m, Object{}, l, mayBegin, setClaim)
	switch {
	case err == nil, dynamodb.TextOf(row, "owner") == l.Owner: // the second if the answer to our write was lost
		return row, nil
	case !errors.Is(err, order.ErrClaimLost):
		return nil, err
	case dynamodb.TextOf(row, "content") != m.content():
		return nil, order.ErrConflict
	case dynamodb.TextOf(row, "status") != "open":
		return nil, &order.SettledError{}
	}
	return nil, &order.InProgressError{Until: l.Until} // the other lease began earlier, so it ends earlier
}

// write returns the new row; or order.ErrClaimLost and the row that refused the write.
func (t Table) write(
	ctx context.Context, m message, o Object, l order.Lease, may, set string,
) (dynamodb.Item, error) {
	values := dynamodb.Item{
		":open": dynamodb.Text("open"), ":owner": dynamodb.Text(l.Owner), ":content": dynamodb.Text(m.content()),
		":now": dynamodb.Millis(l.From), ":until": dynamodb.Millis(l.Until), ":outcome": dynamodb.Text(o.Status),
		":bound": dynamodb.Text(o.ID),
	}
	unused := func(name string, _ types.AttributeValue) bool { return !strings.Contains(may+set, name) }
	maps.DeleteFunc(values, unused) // DynamoDB refuses them
	out, err := t.Client.UpdateItem(ctx, &sdk.UpdateItemInput{
		TableName: &t.Name, Key: dynamodb.Item{"id": dynamodb.Text(m.OrderID)},
		ConditionExpression: &may, UpdateExpression: &set, ExpressionAttributeValues: values,
		ExpressionAttributeNames:            map[string]string{"#status": "status", "#owner": "owner"},
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if row, refused := dynamodb.Refused(err); refused {
		return row, order.ErrClaimLost
	}
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}
