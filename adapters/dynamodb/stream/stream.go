// Package stream reads the events of orders from the table's stream.
package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/domain/outbox"
)

// Record is an event item that was put into the table, as the table's stream
// reports it.
type Record struct {
	SortKey string
	Event   outbox.Event // of which only OrderID is set if Err is not nil
	// Err wraps order.ErrCorrupt: no release can have written the item.
	Err error
}

var errNoImage = errors.New("missing NewImage: want the stream view type NEW_IMAGE or NEW_AND_OLD_IMAGES")

// Handle returns publish as the Lambda function of the table's stream. publish gets
// the event items of a batch, in the order of the stream, and returns how many from the
// start are done. The function reports the first of the others as the failure of the
// batch, and Lambda repeats the batch from there. Everything else in the stream is
// ignored: order items, changes, and deletions by the time to live.
//
// An error means that the stream's records have no items, and repeats the whole batch.
//
// Source: https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html.
func Handle(
	publish func(ctx context.Context, records []Record) (done int),
) func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return func(ctx context.Context, batch events.DynamoDBEvent) (out events.DynamoDBEventResponse, err error) {
		var records []Record
		var sequence []string
		for _, r := range batch.Records {
			if !isNewEvent(r) {
				continue
			}
			if len(r.Change.NewImage) == 0 {
				return out, fmt.Errorf("stream record %s: %w", r.Change.SequenceNumber, errNoImage)
			}
			records = append(records, decode(fromStream(r.Change.NewImage)))
			sequence = append(sequence, r.Change.SequenceNumber)
		}
		if done := publish(ctx, records); done < len(records) {
			out.BatchItemFailures = []events.DynamoDBBatchItemFailure{{ItemIdentifier: sequence[done]}}
		}
		return out, nil
	}
}

func isNewEvent(r events.DynamoDBEventRecord) bool {
	return r.EventName == string(events.DynamoDBOperationTypeInsert) &&
		strings.HasPrefix(dynamodb.TextOf(fromStream(r.Change.Keys), "sk"), dynamodb.EventRow)
}

// decode decodes an event item with what it has of its order. It does not
// stop at a type, a status or an attribute of a newer release: while that release is
// rolled out, its events would otherwise hold up every other event of their shard.
func decode(item dynamodb.Item) Record {
	f := dynamodb.Fields{Item: item, Known: map[string]bool{"sk": true, "expiresAt": true}}
	var of order.Record
	var e outbox.Event
	dynamodb.EventFields(&f, &of, &e.Event)
	f.Require("orderId", "amount", "currency", "type")
	e.OrderID, e.Total, e.Trace = of.OrderID, of.Total, of.Trace
	if stored := f.Text("type"); stored != e.Event.Type() {
		e.NewerType = stored
	}
	if f.Err != nil {
		return Record{f.Text("sk"), outbox.Event{OrderID: of.OrderID}, fmt.Errorf("stream record: %w", f.Err)}
	}
	e.More = unknownAttributes(f)
	return Record{SortKey: f.Text("sk"), Event: e}
}

// unknownAttributes returns the texts and numbers of an item that were not read.
func unknownAttributes(f dynamodb.Fields) map[string]any {
	var more map[string]any
	for name, value := range f.Item {
		if f.Known[name] {
			continue
		}
		if more == nil {
			more = map[string]any{}
		}
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			more[name] = v.Value
		case *types.AttributeValueMemberN:
			more[name] = json.Number(v.Value)
		}
	}
	return more
}

// fromStream converts the attributes of a stream record. An event item has strings and
// numbers only.
func fromStream(attributes map[string]events.DynamoDBAttributeValue) dynamodb.Item {
	item := make(dynamodb.Item, len(attributes))
	for name, a := range attributes {
		switch a.DataType() { //nolint:exhaustive // the decoder rejects every other type
		case events.DataTypeString:
			item[name] = dynamodb.Text(a.String())
		case events.DataTypeNumber:
			item[name] = &types.AttributeValueMemberN{Value: a.Number()}
		default:
			item[name] = &types.AttributeValueMemberNULL{Value: true}
		}
	}
	return item
}
