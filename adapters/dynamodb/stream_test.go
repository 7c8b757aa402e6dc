package dynamodb_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb"
	"orderonce/domain/order"
	"orderonce/domain/outbox"
)

// streamItem returns an item in the form of a stream's record.
func streamItem(item row) map[string]any {
	out := map[string]any{}
	for name, value := range item {
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			out[name] = map[string]any{"S": v.Value}
		case *types.AttributeValueMemberN:
			out[name] = map[string]any{"N": v.Value}
		case *types.AttributeValueMemberBOOL:
			out[name] = map[string]any{"BOOL": v.Value}
		}
	}
	return out
}

// streamBatch is a batch of the stream as Lambda sends it. The sequence numbers count
// from 1.
type streamBatch struct{ records []any }

func (b *streamBatch) add(eventName string, item row) {
	b.records = append(b.records, map[string]any{
		"eventID": "1", "eventName": eventName, "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "us-east-1",
		"dynamodb": map[string]any{
			"ApproximateCreationDateTime": 1479499740, "SequenceNumber": string(rune('1' + len(b.records))), "SizeBytes": 112,
			"StreamViewType": "NEW_IMAGE",
			"Keys":           streamItem(row{"orderId": item["orderId"], "sk": item["sk"]}), "NewImage": streamItem(item),
		},
	})
}

func (b *streamBatch) event(t *testing.T) (e events.DynamoDBEvent) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"Records": b.records})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// stream handles a batch and returns the records that reach publish.
func (b *streamBatch) stream(t *testing.T) (got []dynamodb.StreamRecord) {
	t.Helper()
	handle := dynamodb.HandleStream(func(_ context.Context, records []dynamodb.StreamRecord) int {
		got = records
		return len(records)
	})
	out, err := handle(t.Context(), b.event(t))
	if err != nil || len(out.BatchItemFailures) > 0 {
		t.Errorf("got %v, %v, want neither a failure nor an error", out, err)
	}
	return got
}

// paid returns the event of an order that was paid, with its record and its item.
func paid() (order.Record, order.Event, row) {
	r := order.Record{
		OrderID: "ORD-1", Total: order.Money{Amount: 3998, Currency: "usd"}, Trace: traceparent,
	}
	e := order.Event{
		Seq: 2, From: order.ActionRequired, To: order.Paid, Intent: "pi_1", Failure: "late", At: at(time.Hour),
	}
	return r, e, dynamodb.EncodeEvent(r, e)
}

func TestTheStreamsEventItems(t *testing.T) {
	t.Parallel()
	var batch streamBatch
	r, e, item := paid()
	batch.add("INSERT", openRow())
	batch.add("MODIFY", openRow())
	batch.add("INSERT", item)
	batch.add("MODIFY", item)
	batch.add("REMOVE", item)
	disputed := order.Event{
		Seq: 3, From: order.Paid, To: order.Paid, At: at(time.Hour),
		Dispute: order.Dispute{ID: "du_1", Status: order.DisputeLost, CreatedAt: at(0)},
	}
	batch.add("INSERT", dynamodb.EncodeEvent(r, disputed))
	refunded := order.Event{
		Seq: 4, From: order.Paid, To: order.Refunded, At: at(time.Hour),
		Refund: order.RefundEvent{ID: "R-1", Status: "succeeded", Amount: 3998},
	}
	batch.add("INSERT", dynamodb.EncodeEvent(r, refunded))
	bare := order.Event{Seq: 3, From: order.Open, To: order.Paid, At: at(time.Hour)}
	edited := order.Record{OrderID: "ORD-2", Total: r.Total, Trace: "edited by hand"} // left out
	batch.add("INSERT", dynamodb.EncodeEvent(edited, bare))
	want := []dynamodb.StreamRecord{
		{SortKey: "event#000002", Event: outbox.Event{OrderID: "ORD-1", Total: r.Total, Trace: r.Trace, Event: e}},
		{SortKey: "event#000003", Event: outbox.Event{OrderID: "ORD-1", Total: r.Total, Trace: r.Trace, Event: disputed}},
		{SortKey: "event#000004", Event: outbox.Event{OrderID: "ORD-1", Total: r.Total, Trace: r.Trace, Event: refunded}},
		{SortKey: "event#000003", Event: outbox.Event{OrderID: "ORD-2", Total: r.Total, Event: bare}},
	}
	if diff := cmp.Diff(batch.stream(t), want); diff != "" {
		t.Errorf("records (-got +want):\n%s", diff)
	}
}

func TestAnUnreadableEventItemNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for claim, tt := range map[string]struct {
		name  string
		value types.AttributeValue // nil: absent
		want  string
		kind  error
	}{
		"no seq":                {"seq", nil, "seq: want an integer", order.ErrCorrupt},
		"a seq that is a text":  {"seq", text("1"), "seq: want an integer", order.ErrCorrupt},
		"no amount":             {"amount", nil, "amount: want an integer", order.ErrCorrupt},
		"an amount in decimals": {"amount", &types.AttributeValueMemberN{Value: "1.5"}, "amount: want an integer", order.ErrCorrupt},
		"no currency":           {"currency", nil, "currency: want a string", order.ErrCorrupt},
		"no time":               {"at", nil, "at: want an integer", order.ErrCorrupt},
		"no type":               {"type", nil, "type: want a string", order.ErrCorrupt},
		"an intent of another type": {
			"intentId", &types.AttributeValueMemberBOOL{Value: true}, "intentId: want a string", order.ErrCorrupt,
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			_, _, item := paid()
			if item[tt.name] = tt.value; tt.value == nil {
				delete(item, tt.name)
			}
			var batch streamBatch
			batch.add("INSERT", item)
			got := batch.stream(t)
			if len(got) != 1 || !errors.Is(got[0].Err, tt.kind) || !strings.Contains(got[0].Err.Error(), tt.want) {
				t.Fatalf("got %+v, want an error with %q", got, tt.want)
			}
			if diff := cmp.Diff(got[0].Event, outbox.Event{OrderID: "ORD-1"}); diff != "" || got[0].SortKey != "event#000002" {
				t.Errorf("sort key %q, event (-got +want):\n%s", got[0].SortKey, diff)
			}
		})
	}
}

// A newer release may record another status, another type and more attributes. An older
// publish function sends them as they are.
func TestAnEventOfANewerReleaseIsReadAsItIsStored(t *testing.T) {
	t.Parallel()
	r, e, item := paid()
	maps.Copy(item, row{
		"to": text("shipped"), "type": text("order.shipped_abroad"), "parcel": text("P-1"),
		"weight": &types.AttributeValueMemberN{Value: "12.5"}, "fragile": &types.AttributeValueMemberBOOL{Value: true},
	})
	var batch streamBatch
	batch.add("INSERT", item)
	e.To = "shipped"
	want := []dynamodb.StreamRecord{{SortKey: "event#000002", Event: outbox.Event{
		OrderID: "ORD-1", Total: r.Total, Trace: r.Trace, Event: e,
		NewerType: "order.shipped_abroad", More: map[string]any{"parcel": "P-1", "weight": json.Number("12.5")},
	}}}
	if diff := cmp.Diff(batch.stream(t), want); diff != "" {
		t.Errorf("records (-got +want):\n%s", diff)
	}
}

func TestTheFirstRecordThatIsNotDoneIsTheBatchsFailure(t *testing.T) {
	t.Parallel()
	var batch streamBatch
	_, _, item := paid()
	for range 2 {
		batch.add("MODIFY", openRow())
		batch.add("INSERT", item)
	}
	for done, want := range []string{
		`{"batchItemFailures":[{"itemIdentifier":"2"}]}`, `{"batchItemFailures":[{"itemIdentifier":"4"}]}`, `{"batchItemFailures":null}`,
	} {
		handle := dynamodb.HandleStream(func(context.Context, []dynamodb.StreamRecord) int { return done })
		out, err := handle(t.Context(), batch.event(t))
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(out)
		if err != nil || string(got) != want {
			t.Errorf("%d done: got %s, %v, want %s", done, got, err, want)
		}
	}
}

func TestAStreamWithoutItemsIsAnErrorAndPublishesNothing(t *testing.T) {
	t.Parallel()
	var batch streamBatch
	_, _, item := paid()
	batch.add("INSERT", item)
	e := batch.event(t)
	e.Records[0].Change.NewImage = nil // KEYS_ONLY
	handle := dynamodb.HandleStream(func(context.Context, []dynamodb.StreamRecord) int {
		t.Error("publish was called")
		return 0
	})
	if _, err := handle(t.Context(), e); err == nil || !strings.Contains(err.Error(), "want the stream view type NEW_IMAGE") {
		t.Errorf("got %v, want an error about the view type", err)
	}
}
