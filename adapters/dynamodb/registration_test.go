package dynamodb_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/domain/intake"
	"orderonce/domain/intake/intaketest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

func TestRegistrations(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	intaketest.TestBook(t, func(*testing.T) (ordertest.Store, intake.Book) {
		store := dynamodb.New(h.Config, h.Table)
		return store, &dynamodb.Registrations{Store: store}
	})
}

// registered returns the registration of O-1, which alice puts.
func registered() intake.Registration {
	o := ordertest.Order("O-1")
	return intake.Registration{
		OrderID: o.ID(), Fingerprint: o.Fingerprint(), Total: o.Total(), Caller: "alice", At: at(0),
	}
}

func TestARegistrationIsFoundWithoutACallForEachItem(t *testing.T) {
	t.Parallel()
	f := open(t)
	book := dynamodb.Registrations{Store: f.Store}
	_, err := book.Register(t.Context(), registered())
	f.must(err)
	f.settled("O-1", order.Paid)
	f.Proxy.Reset()
	e, err := book.Find(t.Context(), "O-1")
	f.must(err)
	if e.Registration != registered() || e.Record.Status != order.Paid || len(e.Record.Events) != 1 {
		t.Errorf("got %+v, want the registration, and a paid order with its event", e)
	}
	if diff := cmp.Diff(f.Proxy.Counts(), map[string]int{"Query": 1}); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
}

// The SDK repeats a write whose response was lost. The row that refuses it is our own.
func TestRegisterSurvivesALostResponse(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.Proxy.Fail(dynamodbtest.Fault{Operation: "PutItem", Kind: dynamodbtest.LoseAfter, Times: 1})
	got, err := (&dynamodb.Registrations{Store: f.Store}).Register(t.Context(), registered())
	if err != nil || got != registered() || f.Proxy.Counts()["PutItem"] != 2 {
		t.Errorf("got %+v, %v after %v, want our own registration after two calls", got, err, f.Proxy.Counts())
	}
}

func TestACorruptRegistrationIsAnErrorThatNamesTheAttribute(t *testing.T) {
	t.Parallel()
	f := open(t)
	book := dynamodb.Registrations{Store: f.Store}
	_, err := f.Client.PutItem(t.Context(), &sdk.PutItemInput{TableName: &f.Table, Item: row{
		"orderId": text("O-1"), "sk": text("intake"), "amount": text("canary"), "caller": text("alice"),
		"currency": text("usd"), "createdAt": &types.AttributeValueMemberN{Value: "1"},
	}})
	f.must(err)
	_, findErr := book.Find(t.Context(), "O-1")
	_, registerErr := book.Register(t.Context(), registered())
	for _, err := range []error{findErr, registerErr} {
		if !errors.Is(err, order.ErrCorrupt) || !strings.Contains(err.Error(), "amount: want an integer") ||
			!strings.Contains(err.Error(), "fingerprint") || strings.Contains(err.Error(), "canary") {
			t.Errorf("got %v, want a corrupt amount and fingerprint without their values", err)
		}
	}
}

func TestFindIgnoresEventsWithoutAnOrder(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.settled("O-1", order.Paid)
	_, err := f.Client.DeleteItem(t.Context(), &sdk.DeleteItemInput{
		TableName: &f.Table, Key: row{"orderId": text("O-1"), "sk": text("order")}, ReturnValues: types.ReturnValueAllOld,
	})
	f.must(err)
	e, err := (&dynamodb.Registrations{Store: f.Store}).Find(t.Context(), "O-1")
	if diff := cmp.Diff(e, intake.Entry{}); diff != "" || err != nil {
		t.Errorf("got %v, entry (-got +want):\n%s", err, diff)
	}
}

func TestARegistrationNeverExpires(t *testing.T) {
	t.Parallel()
	f := open(t)
	_, err := (&dynamodb.Registrations{Store: f.Store}).Register(t.Context(), registered())
	f.must(err)
	out, err := f.Client.GetItem(t.Context(), &sdk.GetItemInput{
		TableName: &f.Table, Key: row{"orderId": text("O-1"), "sk": text("intake")}, ConsistentRead: aws.Bool(true),
	})
	f.must(err)
	if len(out.Item) != 7 || out.Item["expiresAt"] != nil {
		t.Errorf("got %v, want seven attributes and no time to live", out.Item)
	}
}
