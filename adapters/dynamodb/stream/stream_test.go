package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"orderonce/adapters/dynamodb/stream"
	"orderonce/domain/order"
	"orderonce/domain/outbox"
)

func text(s string) events.DynamoDBAttributeValue { return events.NewStringAttribute(s) }

func number(n int64) events.DynamoDBAttributeValue {
	return events.NewNumberAttribute(strconv.FormatInt(n, 10))
}

// noon is the time of every event, and noonMillis the same in the table.
const noonMillis = 1_767_268_800_000

func noon() time.Time { return time.UnixMilli(noonMillis).UTC() }

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

type item = map[string]events.DynamoDBAttributeValue

// paid returns the event item of an order that was paid, with changes, and paidEvent what
// it says.
func paid(changes item) item {
	i := item{
		"orderId": text("ORD-1"), "sk": text("event#000002"), "type": text("order.paid"), "seq": number(2),
		"from": text("action_required"), "to": text("paid"), "amount": number(3998), "currency": text("usd"),
		"at": number(noonMillis), "expiresAt": number(noonMillis / 1000), "intentId": text("pi_1"),
		"failure": text("late"), "traceparent": text(traceparent),
	}
	maps.Copy(i, changes)
	return i
}

func paidEvent() outbox.Event {
	return outbox.Event{
		OrderID: "ORD-1", Total: order.Money{Amount: 3998, Currency: "usd"}, Trace: traceparent,
		Event: order.Event{
			Seq: 2, From: order.ActionRequired, To: order.Paid, Intent: "pi_1", Failure: "late", At: noon(),
		},
	}
}

// orderItem is the order's own item, which is no event.
func orderItem() item {
	return item{"orderId": text("ORD-1"), "sk": text("order"), "status": text("open")}
}

// batch is a batch of the stream. The sequence numbers count from 1.
type batch struct{ events.DynamoDBEvent }

func (b *batch) add(name events.DynamoDBOperationType, i item) {
	b.Records = append(b.Records, events.DynamoDBEventRecord{
		EventName: string(name), Change: events.DynamoDBStreamRecord{
			SequenceNumber: strconv.Itoa(len(b.Records) + 1), StreamViewType: "NEW_IMAGE",
			Keys: item{"orderId": i["orderId"], "sk": i["sk"]}, NewImage: i,
		},
	})
}

func (b *batch) stream(t *testing.T) (got []stream.Record) {
	t.Helper()
	handle := stream.Handle(func(_ context.Context, records []stream.Record) int {
		got = records
		return len(records)
	})
	out, err := handle(t.Context(), b.DynamoDBEvent)
	if err != nil || len(out.BatchItemFailures) > 0 {
		t.Errorf("got %v, %v, want neither a failure nor an error", out, err)
	}
	return got
}

const inserted = events.DynamoDBOperationTypeInsert

func TestTheStreamsEventItems(t *testing.T) {
	var b batch
	b.add(inserted, orderItem())
	b.add(events.DynamoDBOperationTypeModify, orderItem())
	b.add(inserted, paid(nil))
	b.add(events.DynamoDBOperationTypeModify, paid(nil))
	b.add(events.DynamoDBOperationTypeRemove, paid(nil))
	b.add(inserted, paid(item{"traceparent": text("edited by hand")}))
	b.add(inserted, paid(item{ // of a newer release: an older function publishes it as it is stored
		"to": text("shipped"), "type": text("order.shipped_abroad"), "parcel": text("P-1"),
		"weight": events.NewNumberAttribute("12.5"), "fragile": events.NewBooleanAttribute(true),
	}))
	untraced, newer := paidEvent(), paidEvent()
	untraced.Trace = "" // an invalid trace is left out
	newer.Event.To, newer.NewerType = "shipped", "order.shipped_abroad"
	newer.More = map[string]any{"parcel": "P-1", "weight": json.Number("12.5")}
	b.wants(t, paidEvent(), untraced, newer)
}

func (b *batch) wants(t *testing.T, all ...outbox.Event) {
	t.Helper()
	var want []stream.Record
	for _, e := range all {
		want = append(want, stream.Record{SortKey: "event#000002", Event: e})
	}
	if diff := cmp.Diff(b.stream(t), want); diff != "" {
		t.Errorf("records (-got +want):\n%s", diff)
	}
}

func TestTheEventItemOfADispute(t *testing.T) {
	var b batch
	b.add(inserted, paid(item{
		"type": text("order.dispute_lost"), "from": text("paid"), "disputeId": text("du_1"),
		"disputeStatus": text("lost"), "disputedAt": number(noonMillis),
	}))
	e := paidEvent()
	e.Event.From = order.Paid
	e.Event.Dispute = order.Dispute{ID: "du_1", Status: order.DisputeLost, CreatedAt: noon()}
	b.wants(t, e)
}

func TestTheEventItemOfARefund(t *testing.T) {
	var b batch
	b.add(inserted, paid(item{
		"type": text("refund.succeeded"), "from": text("paid"), "to": text("refunded"), "refundId": text("R-1"),
		"refundStatus": text("succeeded"), "refundAmount": number(3998),
	}))
	e := paidEvent()
	e.Event.From, e.Event.To = order.Paid, order.Refunded
	e.Event.Refund = order.RefundEvent{ID: "R-1", Status: "succeeded", Amount: 3998}
	b.wants(t, e)
}

func TestAnUnreadableEventItemNamesWhatIsWrong(t *testing.T) {
	for claim, tt := range map[string]struct {
		name  string
		value events.DynamoDBAttributeValue
		want  string
	}{
		"no seq":                    {"seq", events.NewNullAttribute(), "seq: missing"},
		"a seq that is a text":      {"seq", text("1"), "seq: want an integer"},
		"no amount":                 {"amount", events.NewNullAttribute(), "amount: missing"},
		"an amount in decimals":     {"amount", events.NewNumberAttribute("1.5"), "amount: want an integer"},
		"no currency":               {"currency", events.NewNullAttribute(), "currency: missing"},
		"no time":                   {"at", events.NewNullAttribute(), "at: missing"},
		"no type":                   {"type", events.NewNullAttribute(), "type: missing"},
		"an intent of another type": {"intentId", events.NewBooleanAttribute(true), "intentId: want a string"},
	} {
		changed := paid(item{tt.name: tt.value})
		if tt.value.IsNull() {
			delete(changed, tt.name)
		}
		var b batch
		b.add(inserted, changed)
		got := b.stream(t)
		if len(got) != 1 || !errors.Is(got[0].Err, order.ErrCorrupt) || !strings.Contains(got[0].Err.Error(), tt.want) {
			t.Fatalf("%s: got %+v, want a corrupt record with %q", claim, got, tt.want)
		}
		want := stream.Record{SortKey: "event#000002", Event: outbox.Event{OrderID: "ORD-1"}, Err: got[0].Err}
		if diff := cmp.Diff(got[0], want, cmpopts.EquateErrors()); diff != "" {
			t.Errorf("%s (-got +want):\n%s", claim, diff)
		}
	}
}

func TestTheFirstRecordThatIsNotDoneIsTheBatchsFailure(t *testing.T) {
	var b batch
	for range 2 {
		b.add(events.DynamoDBOperationTypeModify, orderItem())
		b.add(inserted, paid(nil))
	}
	for done, want := range []string{
		`{"batchItemFailures":[{"itemIdentifier":"2"}]}`, `{"batchItemFailures":[{"itemIdentifier":"4"}]}`, `{"batchItemFailures":null}`,
	} {
		out, err := stream.Handle(func(context.Context, []stream.Record) int { return done })(t.Context(), b.DynamoDBEvent)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(out); err != nil || string(got) != want {
			t.Errorf("%d done: got %s, %v, want %s", done, got, err, want)
		}
	}
}

func TestAStreamWithoutItemsIsAnErrorAndPublishesNothing(t *testing.T) {
	var b batch
	b.add(inserted, paid(nil))
	b.Records[0].Change.NewImage = nil // KEYS_ONLY
	handle := stream.Handle(func(context.Context, []stream.Record) int {
		t.Error("publish was called")
		return 0
	})
	if _, err := handle(t.Context(), b.DynamoDBEvent); err == nil || !strings.Contains(err.Error(), "want the stream view type NEW_IMAGE") {
		t.Errorf("got %v, want an error about the view type", err)
	}
}
