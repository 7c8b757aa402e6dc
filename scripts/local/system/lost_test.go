package system_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestALostRowIsNotChargedAgain deletes an order's row, as a restore from an old backup
// does, and redrives an old message of the order long after Stripe forgot its idempotency
// key.
func TestALostRowIsNotChargedAgain(t *testing.T) {
	t.Parallel()
	const id = "lost"
	s := world{systemtest.New(t)}.start(t, generous(system.Options{}))
	s.post(body(id))
	s.drain()
	charged, err := s.Store.Load(t.Context(), id)
	if err != nil || charged.Status != order.Paid {
		t.Fatalf("got %+v, %v, want it paid", charged, err)
	}
	s.dropRow(id)
	s.Advance(48 * time.Hour)

	s.postRedriven(id, 96*time.Hour) // two days of them passed above
	dead, err := s.Dead()
	if err != nil || len(dead) != 1 ||
		dead[0].Attributes[sqs.AttrReason].Text != string(order.ReasonRecordLost) {
		t.Fatalf("got dead letters %+v, %v, want one with reason record_lost", dead, err)
	}

	restored, err := order.Restore(t.Context(), s.Store, s.Payments, system.Scope, id, charged.Intent, s.Stripe.Now())
	if err != nil || restored.Status != order.Paid || restored.Intent != charged.Intent {
		t.Fatalf("got %+v, %v, want it paid with %s", restored, err, charged.Intent)
	}
	s.postRedriven(id, 96*time.Hour) // two days of them passed above
	books, err := s.Collect(t.Context(), s.posted, s.log)
	must(t, err)
	s.settlesOnce(books, id)
}

// dropRow deletes an order's row and event from the table.
func (o *running) dropRow(id string) {
	o.t.Helper()
	for _, sk := range []string{"order", "event#000001"} {
		_, err := o.table().DeleteItem(context.WithoutCancel(o.t.Context()), &sdk.DeleteItemInput{
			TableName: aws.String(o.Options.Table),
			Key: map[string]types.AttributeValue{
				"orderId": &types.AttributeValueMemberS{Value: id}, "sk": &types.AttributeValueMemberS{Value: sk},
			},
		})
		must(o.t, err)
	}
}

// table returns a client of the engine, past the proxy.
func (o *running) table() *sdk.Client {
	return sdk.NewFromConfig(dynamodbtest.Config(o.Engine.Endpoint, func(string) string { return "" }))
}

// postRedriven sends the order's message as a redrive does, and waits for an empty queue.
func (o *running) postRedriven(id string, age time.Duration) {
	o.t.Helper()
	_, err := o.Post([]sqstest.Draft{{Body: body(id), Attributes: map[string]sqstest.Attribute{
		sqs.AttrFirstSent: sqstest.Text(o.Stripe.Now().Add(-age).UTC().Format(time.RFC3339)),
	}}})
	must(o.t, err)
	o.drain()
}
