// Command plain is a Lambda function that charges orders in the usual way: the SDK's
// default configuration, stripe-go's client, a conditional put of the orderId, and one
// call to Stripe with the orderId as idempotency key. The storm shows when such a handler
// charges twice, or never. It is what the bench compares costs with; never deployed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/client"

	"orderonce/scripts/lab/bench/batch"
)

type order struct {
	ID       string `json:"orderId"`
	Currency string `json:"currency"`
	Lines    []struct {
		Quantity   int64 `json:"quantity"`
		UnitAmount int64 `json:"unitAmount"`
	} `json:"lines"`
	Payment struct {
		Customer string `json:"customer"`
		Method   string `json:"method"`
	} `json:"payment"`
}

type function struct {
	db     *dynamodb.Client
	stripe *client.API
	table  *string
}

func main() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL:           aws.String(os.Getenv("STRIPE_API_BASE")),
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelError},
	})
	f := function{
		dynamodb.NewFromConfig(cfg), client.New(os.Getenv("STRIPE_SECRET_KEY"), &stripe.Backends{API: backend}),
		aws.String(os.Getenv("ORDERS_TABLE")),
	}
	batch.Start(f.charge)
}

func (f function) charge(ctx context.Context, m events.SQSMessage) error {
	var o order
	if err := json.Unmarshal([]byte(m.Body), &o); err != nil {
		return err
	}
	id := &types.AttributeValueMemberS{Value: o.ID}
	_, err := f.db.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: f.table, ConditionExpression: aws.String("attribute_not_exists(id)"),
		Item: map[string]types.AttributeValue{"id": id, "status": &types.AttributeValueMemberS{Value: "OPEN"}},
	})
	if _, duplicate := errors.AsType[*types.ConditionalCheckFailedException](err); duplicate {
		return nil
	}
	if err != nil {
		return err
	}
	amount := int64(0)
	for _, l := range o.Lines {
		amount += l.Quantity * l.UnitAmount
	}
	intent, err := f.stripe.PaymentIntents.New(&stripe.PaymentIntentParams{
		Params: stripe.Params{Context: ctx, IdempotencyKey: &o.ID},
		Amount: &amount, Currency: &o.Currency, Customer: &o.Payment.Customer, PaymentMethod: &o.Payment.Method,
		Confirm: aws.Bool(true), OffSession: aws.Bool(true), Metadata: map[string]string{"orderId": o.ID},
	})
	if err != nil {
		return err
	}
	_, err = f.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: f.table, Key: map[string]types.AttributeValue{"id": id},
		UpdateExpression:         aws.String("SET #status = :status"),
		ExpressionAttributeNames: map[string]string{"#status": "status"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":status": &types.AttributeValueMemberS{Value: string(intent.Status)},
		},
	})
	return err
}
