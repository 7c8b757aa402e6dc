package dynamodbtest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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

func TestErrorResponsesAreThoseOfDynamoDB(t *testing.T) {
	tests := map[string]struct {
		kind       dynamodbtest.Kind
		call       func(*testing.T, *dynamodb.Client) error
		want       string
		wantReason string
	}{
		"a table over its capacity": {dynamodbtest.ThroughputExceeded, update, "ProvisionedThroughputExceededException", ""},
		"a transaction over its capacity": {
			dynamodbtest.ThroughputExceeded, transact, "TransactionCanceledException", "ProvisionedThroughputExceeded",
		},
		"a throttled write":            {dynamodbtest.Throttled, update, "ThrottlingException", ""},
		"a throttled transaction":      {dynamodbtest.Throttled, transact, "TransactionCanceledException", "ThrottlingError"},
		"an account over its quota":    {dynamodbtest.RequestLimitExceeded, transact, "RequestLimitExceeded", ""},
		"a 500":                        {dynamodbtest.InternalError, update, "InternalServerError", ""},
		"a write during a transaction": {dynamodbtest.TransactionConflict, update, "TransactionConflictException", ""},
		"a reading transaction in conflict": {
			dynamodbtest.TransactionConflict, getAll, "TransactionCanceledException", "TransactionConflict",
		},
		"two transactions in conflict": {
			dynamodbtest.TransactionConflict, transact, "TransactionCanceledException",
			"TransactionConflict",
		},
		"a client request token in progress": {
			dynamodbtest.TransactionInProgress, transact, "TransactionInProgressException", "",
		},
		"a policy without the action": {dynamodbtest.AccessDenied, transact, "AccessDeniedException", ""},
		"expired credentials":         {dynamodbtest.ExpiredToken, update, "ExpiredTokenException", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			proxy, reached := newProxy(t, accept)
			proxy.Fail(dynamodbtest.Fault{Kind: tt.kind})
			err := tt.call(t, client(proxy.URL))
			refused, ok := errors.AsType[smithy.APIError](err)
			if !ok || refused.ErrorCode() != tt.want {
				t.Fatalf("got error %v, want %s", err, tt.want)
			}
			var reasons []string
			if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
				for _, reason := range canceled.CancellationReasons {
					reasons = append(reasons, aws.ToString(reason.Code))
				}
			}
			if got := strings.Join(reasons, " "); tt.wantReason != "" && got != tt.wantReason+" None" {
				t.Errorf("got reasons %q, want %q for the first of two items", got, tt.wantReason)
			}
			if got := reached.Load(); got != 0 {
				t.Errorf("got %d calls at the engine, want none", got)
			}
		})
	}
}

// API reference: the errors of each operation.
func TestAFaultAppliesOnlyToPossibleOperations(t *testing.T) {
	tests := map[string]struct {
		kind dynamodbtest.Kind
		want string // of get, update, transact, getAll: x is a failed call
	}{
		"a transaction in progress": {dynamodbtest.TransactionInProgress, "..x."},
		"a transaction conflict":    {dynamodbtest.TransactionConflict, ".xxx"},
		"a throttled call":          {dynamodbtest.Throttled, "xxxx"},
		"a 500":                     {dynamodbtest.InternalErrorAfter, "xxxx"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			proxy, _ := newProxy(t, accept)
			c := client(proxy.URL)
			proxy.Fail(dynamodbtest.Fault{Kind: tt.kind})
			if got := outcomes(t, c, get, update, transact, getAll); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			proxy.Heal()
			proxy.Fail(dynamodbtest.Fault{Kind: tt.kind, Times: 1})
			if got := strings.Count(outcomes(t, c, get, getAll, transact, transact), "x"); got != 1 {
				t.Errorf("got %d failed calls, want 1: a call without the fault must not count down Times", got)
			}
		})
	}
}

func TestAFaultAppliesToTheCallsItDescribes(t *testing.T) {
	tests := map[string]struct {
		fault dynamodbtest.Fault
		want  string // of update, transact, update, update: x is a failed call
	}{
		"without fields: all":         {dynamodbtest.Fault{}, "xxxx"},
		"with an operation":           {dynamodbtest.Fault{Operation: "TransactWriteItems"}, ".x.."},
		"with a number":               {dynamodbtest.Fault{Number: 3}, "..x."},
		"with Times":                  {dynamodbtest.Fault{Times: 2}, "xx.."},
		"with Times and an operation": {dynamodbtest.Fault{Operation: "UpdateItem", Times: 2}, "x.x."},
		"with a match":                {dynamodbtest.Fault{Match: contains("TransactItems")}, ".x.."},
		"with several fields": {
			dynamodbtest.Fault{Operation: "UpdateItem", Match: contains("TransactItems")},
			"....",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			proxy, _ := newProxy(t, accept)
			c := client(proxy.URL)
			tt.fault.Kind = dynamodbtest.InternalError
			proxy.Fail(tt.fault)
			if got := outcomes(t, c, update, transact, update, update); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Developer guide, "Error handling with DynamoDB": "When you receive a status code 500 on
// a write operation, the operation may have succeeded or failed". So may a lost one.
func TestEveryCallIsObservedWithItsEffectAndItsEnd(t *testing.T) {
	const failed = `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"Rejected by the test proxy."}`
	for kind, tt := range map[dynamodbtest.Kind]struct {
		effects int64
		end     dynamodbtest.Call
		code    string // of the client's error; "broken" for a broken connection
	}{
		dynamodbtest.Slow:               {1, dynamodbtest.Call{Status: 200, Response: []byte("{}")}, ""},
		dynamodbtest.InternalError:      {0, dynamodbtest.Call{Status: 500, Response: []byte(failed)}, "InternalServerError"},
		dynamodbtest.InternalErrorAfter: {1, dynamodbtest.Call{Status: 500, Response: []byte(failed)}, "InternalServerError"},
		dynamodbtest.LoseBefore:         {0, dynamodbtest.Call{Lost: true}, "broken"},
		dynamodbtest.LoseAfter:          {1, dynamodbtest.Call{Status: 200, Response: []byte("{}"), Lost: true}, "broken"},
		"of a closed engine":            {0, dynamodbtest.Call{Lost: true}, "broken"},
	} {
		proxy, reached := newProxy(t, func(w http.ResponseWriter, r *http.Request) {
			if kind == "of a closed engine" {
				panic(http.ErrAbortHandler)
			}
			accept(w, r)
		})
		if kind != "of a closed engine" {
			proxy.Fail(dynamodbtest.Fault{Kind: kind})
		} else {
			reached.Add(-1) // it has no effect
		}
		var after atomic.Int64
		proxy.After(func(dynamodbtest.Call) { after.Add(1) })
		observed := make(chan dynamodbtest.Call, 9)
		proxy.Observe(func(call dynamodbtest.Call) { observed <- call })
		err, code := update(t, client(proxy.URL)), ""
		if refused, ok := errors.AsType[smithy.APIError](err); ok {
			code = refused.ErrorCode()
		} else if err != nil {
			code = "broken"
		}
		if code != tt.code || reached.Load() != tt.effects || after.Load() != tt.effects {
			t.Errorf("%s: got %v, %d calls at the engine and %d of After, want %q and %d",
				kind, err, reached.Load(), after.Load(), tt.code, tt.effects)
		}
		got, want := <-observed, tt.end
		want.Operation, want.Number, want.Request = "UpdateItem", 1, got.Request
		if diff := cmp.Diff(want, got); diff != "" || !contains("ORD1")(got.Request) || len(observed) > 0 {
			t.Errorf("%s: observed %d more, request %s (-want +got):\n%s", kind, len(observed), got.Request, diff)
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
	c := client(proxy.URL)
	go func() { _ = update(t, c) }() // ends with the proxy
	<-held
	if err := update(t, c); err != nil || reached.Load() != 1 {
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

// outcomes makes the calls and returns a string with x for each error and a dot for each
// success.
func outcomes(t *testing.T, c *dynamodb.Client, calls ...func(*testing.T, *dynamodb.Client) error) string {
	t.Helper()
	var drawing strings.Builder
	for _, call := range calls {
		if err := call(t, c); err != nil {
			drawing.WriteByte('x')
		} else {
			drawing.WriteByte('.')
		}
	}
	return drawing.String()
}

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

func get(t *testing.T, c *dynamodb.Client) error {
	t.Helper()
	input := &dynamodb.GetItemInput{TableName: aws.String("orders"), Key: key()}
	_, err := c.GetItem(t.Context(), input)
	return err
}

func getAll(t *testing.T, c *dynamodb.Client) error {
	t.Helper()
	read := types.TransactGetItem{Get: &types.Get{TableName: aws.String("orders"), Key: key()}}
	input := &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{read, read}}
	_, err := c.TransactGetItems(t.Context(), input)
	return err
}

func key() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"orderId": &types.AttributeValueMemberS{Value: "ORD1"}, "sk": &types.AttributeValueMemberS{Value: "order"},
	}
}
