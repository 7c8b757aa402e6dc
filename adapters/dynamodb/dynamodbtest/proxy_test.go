package dynamodbtest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
)

func code(err error) string {
	refused, ok := errors.AsType[smithy.APIError](err)
	switch {
	case err == nil:
		return "-"
	case !ok:
		return "broken connection"
	}
	return refused.ErrorCode()
}

func TestAFaultAppliesToTheCallsItDescribes(t *testing.T) {
	const fails, inProgress = dynamodbtest.InternalError, dynamodbtest.TransactionInProgress
	for _, tt := range []struct {
		fault dynamodbtest.Fault
		want  string // of update, transact, update, update: x is a failed call
	}{
		{dynamodbtest.Fault{Kind: fails}, "xxxx"},
		{dynamodbtest.Fault{Kind: fails, Operation: "TransactWriteItems"}, ".x.."},
		{dynamodbtest.Fault{Kind: fails, Number: 3}, "..x."},
		{dynamodbtest.Fault{Kind: fails, Times: 2}, "xx.."},
		{dynamodbtest.Fault{Kind: fails, Operation: "UpdateItem", Times: 2}, "x.x."},
		{dynamodbtest.Fault{Kind: fails, Match: contains("TransactItems")}, ".x.."},
		{dynamodbtest.Fault{Kind: fails, Operation: "UpdateItem", Match: contains("TransactItems")}, "...."},
		{dynamodbtest.Fault{Kind: inProgress, Times: 1}, ".x.."}, // an update does not count down Times
	} {
		proxy, _ := newProxy(t, accept)
		proxy.Fail(tt.fault)
		var got []byte
		for _, call := range []call{update, transact, update, update} {
			if call(t, client(proxy.URL)) != nil {
				got = append(got, 'x')
			} else {
				got = append(got, '.')
			}
		}
		if string(got) != tt.want {
			t.Errorf("%+v: got %s, want %s", tt.fault, got, tt.want)
		}
	}
}

// Developer guide, "Error handling with DynamoDB": "When you receive a status code 500 on
// a write operation, the operation may have succeeded or failed". So may a lost one.
func TestEveryCallIsObservedWithItsEffectAndItsEnd(t *testing.T) {
	const failed = `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"Rejected by the test proxy."}`
	const broken, internal = "broken connection", "InternalServerError"
	for kind, tt := range map[dynamodbtest.Kind]struct {
		effects int64
		end     dynamodbtest.Call
		code    string // of the client's error
	}{
		dynamodbtest.Slow:               {1, dynamodbtest.Call{Status: 200, Response: []byte("{}")}, "-"},
		dynamodbtest.InternalError:      {0, dynamodbtest.Call{Status: 500, Response: []byte(failed)}, internal},
		dynamodbtest.InternalErrorAfter: {1, dynamodbtest.Call{Status: 500, Response: []byte(failed)}, internal},
		dynamodbtest.LoseBefore:         {0, dynamodbtest.Call{Lost: true}, broken},
		dynamodbtest.LoseAfter:          {1, dynamodbtest.Call{Status: 200, Response: []byte("{}"), Lost: true}, broken},
	} {
		proxy, reached := newProxy(t, accept)
		proxy.Fail(dynamodbtest.Fault{Kind: kind})
		var after atomic.Int64
		proxy.After(func(dynamodbtest.Call) { after.Add(1) })
		observed := make(chan dynamodbtest.Call, 9)
		proxy.Observe(func(call dynamodbtest.Call) { observed <- call })
		got := code(update(t, client(proxy.URL)))
		if got != tt.code || reached.Load() != tt.effects || after.Load() != tt.effects {
			t.Errorf("%s: got %s, %d calls at the engine and %d of After, want %s and %d",
				kind, got, reached.Load(), after.Load(), tt.code, tt.effects)
		}
		call, want := <-observed, tt.end
		want.Operation, want.Number, want.Request = "UpdateItem", 1, call.Request
		if diff := cmp.Diff(want, call); diff != "" || !contains("ORD1")(call.Request) || len(observed) > 0 {
			t.Errorf("%s: observed %d more, request %s (-want +got):\n%s", kind, len(observed), call.Request, diff)
		}
	}
}

func TestACallOutlivesItsClient(t *testing.T) {
	arrived := make(chan struct{})
	proxy, _ := newProxy(t, func(http.ResponseWriter, *http.Request) { close(arrived) })
	ctx, kill := context.WithCancel(t.Context())
	gone := make(chan struct{})
	proxy.Before(func(dynamodbtest.Call) {
		kill()
		<-gone
	})
	if _, err := client(proxy.URL).UpdateItem(ctx, updateInput()); err == nil {
		t.Error("got a response for a canceled client, want an error")
	}
	close(gone)
	<-arrived
}

func TestADelayBlocksOneCall(t *testing.T) {
	proxy, reached := newProxy(t, accept)
	held := make(chan struct{})
	proxy.Before(func(call dynamodbtest.Call) {
		if call.Number == 1 {
			close(held)
		}
	})
	proxy.Fail(dynamodbtest.Fault{Number: 1, Kind: dynamodbtest.Slow, Delay: time.Hour})
	go func() { _ = update(t, client(proxy.URL)) }() // ends with the proxy
	<-held
	if err := update(t, client(proxy.URL)); err != nil || reached.Load() != 1 {
		t.Errorf("a call without delay: got %v and %d calls at the engine, want no error and 1", err, reached.Load())
	}
}

// newProxy returns a proxy in front of a pretend engine, and the number of calls at the
// engine.
func newProxy(t *testing.T, engine http.HandlerFunc) (*dynamodbtest.Proxy, *atomic.Int64) {
	t.Helper()
	reached := new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		engine(w, r)
	}))
	t.Cleanup(server.Close)
	proxy, err := dynamodbtest.NewProxy(t.Context(), server.URL)
	must(t, err)
	t.Cleanup(func() { must(t, proxy.Close()) })
	return proxy, reached
}

func accept(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }

func contains(part string) func([]byte) bool {
	return func(body []byte) bool { return bytes.Contains(body, []byte(part)) }
}

// client returns a client that does not retry: a test sees each response.
func client(endpoint string) *dynamodb.Client {
	config := dynamodbtest.Config(endpoint, func(string) string { return "" })
	return dynamodb.NewFromConfig(config, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
}

type call = func(*testing.T, *dynamodb.Client) error

func update(t *testing.T, c *dynamodb.Client) error {
	t.Helper()
	_, err := c.UpdateItem(t.Context(), updateInput())
	return err
}

func updateInput() *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{TableName: aws.String("orders"), Key: key()}
}

func transact(t *testing.T, c *dynamodb.Client) error {
	t.Helper()
	write := types.TransactWriteItem{Put: &types.Put{TableName: aws.String("orders"), Item: key()}}
	input := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{write, write}}
	_, err := c.TransactWriteItems(t.Context(), input)
	return err
}

func key() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"orderId": &types.AttributeValueMemberS{Value: "ORD1"}, "sk": &types.AttributeValueMemberS{Value: "order"},
	}
}
