// Package consumer is an example of a consumer of order events: a Lambda function behind
// an SQS queue that an EventBridge rule fills. It keeps the newest status of each order
// in a table of its own. It does not use orderonce's table, code or events of other
// systems. docs/guides/hear-about-orders.md explains it.
package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Consumer writes to Table, whose partition key is orderId (string).
type Consumer struct {
	Table  string
	Client *dynamodb.Client
	Log    *slog.Logger
}

// Handle records the events of a batch. It reports those that failed, so that SQS
// delivers only them again.
func (c Consumer) Handle(
	ctx context.Context, batch events.SQSEvent,
) (response events.SQSEventResponse, err error) {
	for _, message := range batch.Records {
		if err := c.record(ctx, message.Body); err != nil {
			c.Log.ErrorContext(ctx, "event not recorded",
				slog.String("message_id", message.MessageId), slog.Any("error", err))
			response.BatchItemFailures = append(response.BatchItemFailures,
				events.SQSBatchItemFailure{ItemIdentifier: message.MessageId})
		}
	}
	return response, nil
}

// record writes the status of an event unless the table has this event or a later one of
// the order. One conditional write is both the check and the effect, so a consumer that
// is killed can neither lose an event nor count it twice.
func (c Consumer) record(ctx context.Context, body string) error {
	var event struct {
		Detail struct {
			Version int    `json:"version"`
			OrderID string `json:"orderId"`
			Seq     int    `json:"seq"`
			Status  string `json:"status"`
		} `json:"detail"`
	}
	if err := json.Unmarshal([]byte(body), &event); err != nil {
		return fmt.Errorf("order event: %w", err)
	}
	order := event.Detail
	if order.Version != 1 {
		return fmt.Errorf("order event: version %d: want 1", order.Version)
	}
	_, err := c.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &c.Table,
		Key: map[string]types.AttributeValue{
			"orderId": &types.AttributeValueMemberS{Value: order.OrderID},
		},
		UpdateExpression:         aws.String("SET #status = :status, seq = :seq"),
		ConditionExpression:      aws.String("attribute_not_exists(seq) OR seq < :seq"),
		ExpressionAttributeNames: map[string]string{"#status": "status"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":status": &types.AttributeValueMemberS{Value: order.Status},
			":seq":    &types.AttributeValueMemberN{Value: strconv.Itoa(order.Seq)},
		},
	})
	if _, duplicate := errors.AsType[*types.ConditionalCheckFailedException](err); duplicate {
		return nil // recorded before, or older than what is recorded
	}
	return err
}
