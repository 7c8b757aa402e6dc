package dynamodbtest_test

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
)

// These tests check what the store requires of the engine, so that a failing store test
// means a bug in the store.

func TestAConditionalUpdateReturnsTheNewRow(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	out := claim(t, h)
	want := map[string]string{
		"orderId": "ORD1", "sk": "order", "status": "open", "owner": "a", "attempt": "1", "openShard": "3", "dueAt": "100",
	}
	if diff := cmp.Diff(want, plain(out.Attributes)); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

func TestAFailedConditionReturnsTheOldRowUnchanged(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	claim(t, h)
	_, err := begin(t, h, "b")
	failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		t.Fatalf("got %v, want ConditionalCheckFailedException", err)
	}
	if got := plain(failed.Item)["owner"]; got != "a" {
		t.Errorf("got old owner %q, want a", got)
	}
	if got := load(t, h)["owner"]; got != "a" {
		t.Errorf("got owner %q in the table, want a", got)
	}
}

func TestOfFiftyConcurrentWritersOneSucceeds(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	var won, lost atomic.Int32
	var writers sync.WaitGroup
	for i := range 50 {
		writers.Go(func() {
			_, err := begin(t, h, strconv.Itoa(i))
			if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
				lost.Add(1)
			} else if err == nil {
				won.Add(1)
			}
		})
	}
	writers.Wait()
	if won.Load() != 1 || lost.Load() != 49 {
		t.Errorf("got %d winners and %d losers, want 1 and 49", won.Load(), lost.Load())
	}
}

func TestATransactionChangesBothRowsOrNone(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	claim(t, h)
	must(t, finish(t, h, "a", "token"))
	if err := finish(t, h, "a", "token"); err != nil {
		t.Errorf("the same token again: got %v, want no error", err)
	}
	_, mismatch := errors.AsType[*types.IdempotentParameterMismatchException](finish(t, h, "b", "token"))
	if !mismatch {
		t.Error("the same token with another owner: got no error, want one")
	}

	canceled, ok := errors.AsType[*types.TransactionCanceledException](finish(t, h, "b", "other"))
	if !ok || len(canceled.CancellationReasons) != 2 {
		t.Fatalf("got %v, want TransactionCanceledException with two reasons", canceled)
	}
	for i, sk := range []string{"order", "event#000001"} {
		reason := canceled.CancellationReasons[i]
		if got := plain(reason.Item)["sk"]; aws.ToString(reason.Code) != "ConditionalCheckFailed" || got != sk {
			t.Errorf("got reason %d %q with row %q, want ConditionalCheckFailed with %q",
				i, aws.ToString(reason.Code), got, sk)
		}
	}
	if got := load(t, h)["seq"]; got != "1" {
		t.Errorf("got seq %q, want 1: one transaction was applied", got)
	}
}

func TestTheOpenIndexContainsOnlyKeysOfWaitingRows(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	put(t, h, key("ORD0", "order"))
	claim(t, h)
	want := []map[string]string{{"orderId": "ORD1", "sk": "order", "openShard": "3", "dueAt": "100"}}
	if diff := cmp.Diff(want, waiting(t, h)); diff != "" {
		t.Errorf("waiting order (-want +got):\n%s", diff)
	}
	must(t, finish(t, h, "a", "token"))
	if diff := cmp.Diff([]map[string]string(nil), waiting(t, h)); diff != "" {
		t.Errorf("settled order (-want +got):\n%s", diff)
	}
}

func TestASizeConditionLimitsAnAttribute(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	grow := func() error {
		_, err := h.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: &h.Table, Key: key("ORD1", "order"),
			UpdateExpression:          aws.String("SET note = :note"),
			ConditionExpression:       aws.String("attribute_not_exists(note) OR size(note) < :limit"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":note": text("five!"), ":limit": number("5")},
		})
		return err
	}
	must(t, grow())
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](grow()); !ok {
		t.Error("got no error for a note above the limit, want one")
	}
}

func TestAnExpiredRowIsStillReturned(t *testing.T) {
	t.Parallel()
	h := dynamodbtest.Open(t)
	row := key("ORD1", "order")
	row["expiresAt"] = number("1")
	put(t, h, row)
	if load(t, h) == nil {
		t.Error("got no row, want the expired row: DynamoDB deletes it later")
	}
}

// claim claims ORD1 for owner a.
func claim(t *testing.T, h *dynamodbtest.Harness) *dynamodb.UpdateItemOutput {
	t.Helper()
	out, err := begin(t, h, "a")
	must(t, err)
	return out
}

// begin claims ORD1.
func begin(t *testing.T, h *dynamodbtest.Harness, owner string) (*dynamodb.UpdateItemOutput, error) {
	t.Helper()
	return h.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &h.Table,
		Key:       key("ORD1", "order"),
		UpdateExpression: aws.String(
			"SET #status = :open, #owner = :owner, attempt = if_not_exists(attempt, :zero) + :one, " +
				"openShard = :shard, dueAt = :due",
		),
		ConditionExpression:      aws.String("attribute_not_exists(orderId) OR (#status = :open AND #owner = :owner)"),
		ExpressionAttributeNames: map[string]string{"#status": "status", "#owner": "owner"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":open": text("open"), ":owner": text(owner), ":zero": number("0"), ":one": number("1"),
			":shard": number("3"), ":due": number("100"),
		},
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
}

// finish settles ORD1.
func finish(t *testing.T, h *dynamodbtest.Harness, owner, token string) error {
	t.Helper()
	_, err := h.Client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
		ClientRequestToken: aws.String(token),
		TransactItems: []types.TransactWriteItem{{Update: &types.Update{
			TableName:                &h.Table,
			Key:                      key("ORD1", "order"),
			UpdateExpression:         aws.String("SET #status = :paid ADD seq :one REMOVE #owner, openShard, dueAt"),
			ConditionExpression:      aws.String("#owner = :owner AND #status = :open"),
			ExpressionAttributeNames: map[string]string{"#status": "status", "#owner": "owner"},
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":owner": text(owner), ":open": text("open"), ":paid": text("paid"), ":one": number("1"),
			},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}}, {Put: &types.Put{
			TableName:                           &h.Table,
			Item:                                key("ORD1", "event#000001"),
			ConditionExpression:                 aws.String("attribute_not_exists(orderId)"),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}}},
	})
	return err
}

func waiting(t *testing.T, h *dynamodbtest.Harness) []map[string]string {
	t.Helper()
	out, err := h.Client.Query(t.Context(), &dynamodb.QueryInput{
		TableName:                 &h.Table,
		IndexName:                 aws.String("open"),
		KeyConditionExpression:    aws.String("openShard = :shard AND dueAt <= :now"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":shard": number("3"), ":now": number("100")},
	})
	must(t, err)
	var rows []map[string]string
	for _, item := range out.Items {
		rows = append(rows, plain(item))
	}
	return rows
}

func put(t *testing.T, h *dynamodbtest.Harness, item map[string]types.AttributeValue) {
	t.Helper()
	_, err := h.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &h.Table, Item: item})
	must(t, err)
}

// load returns the row of ORD1, or nil.
func load(t *testing.T, h *dynamodbtest.Harness) map[string]string {
	t.Helper()
	out, err := h.Client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &h.Table, Key: key("ORD1", "order"), ConsistentRead: aws.Bool(true),
	})
	must(t, err)
	if out.Item == nil {
		return nil
	}
	return plain(out.Item)
}

func key(id, sk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"orderId": text(id), "sk": text(sk)}
}

func text(s string) *types.AttributeValueMemberS { return &types.AttributeValueMemberS{Value: s} }

func number(s string) *types.AttributeValueMemberN { return &types.AttributeValueMemberN{Value: s} }

// plain returns strings and numbers without their types.
func plain(item map[string]types.AttributeValue) map[string]string {
	row := map[string]string{}
	for name, value := range item {
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			row[name] = v.Value
		case *types.AttributeValueMemberN:
			row[name] = v.Value
		}
	}
	return row
}
