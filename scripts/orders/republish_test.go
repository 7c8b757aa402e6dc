package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/domain/order"
)

// An order that cannot be read must not hide those behind it at every run.
func TestRepublishSinceATimeReportsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	bus, err := eventbridgetest.Serve(eventbridgetest.Options{Bus: "orders"})
	must(t, err)
	t.Cleanup(func() { _ = bus.Close() })
	for n := range 4 {
		process(t, d.store, d.payments, order.ID(fmt.Sprint("ORD-", n)), "pm_card_visa")
	}
	for id, status := range map[string]string{"ORD-1": "", "ORD-2": "shipped"} { // corrupt, and of a newer release
		_, err := d.table.Client.UpdateItem(t.Context(), &sdk.UpdateItemInput{
			TableName: &d.table.Table, UpdateExpression: aws.String("SET #s = :s"),
			Key: dynamodb.Item{
				"orderId": &types.AttributeValueMemberS{Value: id}, "sk": &types.AttributeValueMemberS{Value: "order"},
			},
			ExpressionAttributeNames:  map[string]string{"#s": "status"},
			ExpressionAttributeValues: dynamodb.Item{":s": &types.AttributeValueMemberS{Value: status}},
		})
		must(t, err)
	}
	var out strings.Builder
	environ := append(d.environ, "AWS_ENDPOINT_URL_EVENTBRIDGE="+bus.URL, "EVENT_BUS=orders")
	sh := testShell(environ, "", &out)
	sh.JSON = true
	var people strings.Builder
	sh.ErrOut = &people
	err = republish{Since: noon(), Rate: 1000}.Run(t.Context(), sh)
	if got := exitCode(err); got != 2 || out.String() != `{"published":2,"unreadable":2}`+"\n" || len(bus.Archive()) != 2 {
		t.Errorf("got exit code %d, %q and %d events, want 2, two of each", got, &out, len(bus.Archive()))
	}
	for _, id := range []string{"ORD-1", "ORD-2"} {
		if !strings.Contains(people.String(), "republish order \""+id+"\": ") {
			t.Errorf("printed %q, want %s named", &people, id)
		}
	}
}
