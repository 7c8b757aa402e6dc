package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb/stream"
	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/adapters/lambda"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/outbox"
	"orderonce/functions/internal/functiontest"
)

// publishing is a run over a bus in memory, with its output.
type publishing struct {
	*run

	bus ordertest.Bus
	out functiontest.Output
}

func newPublishing() *publishing {
	p := &publishing{}
	p.run = &run{
		publisher: outbox.Publisher{Bus: &p.bus}, log: lambda.NewLogger(&p.out, slog.LevelInfo),
		meter: lambda.NewMeter(&p.out, "orderonce", map[string]string{"Scope": "test"}, time.Now),
	}
	return p
}

// batch returns one event item for each of n orders, some of them unreadable.
func batch(n int, unreadable ...int) (records []stream.Record) {
	for _, e := range ordertest.OutboxEvents(n)[:n] {
		records = append(records, stream.Record{SortKey: fmt.Sprintf("event#%06d", e.Event.Seq), Event: e})
	}
	for _, i := range unreadable {
		records[i].Event = outbox.Event{OrderID: records[i].Event.OrderID}
		records[i].Err = fmt.Errorf("stream record: %w", order.ErrCorrupt)
	}
	return records
}

func TestABatch(t *testing.T) {
	for claim, tt := range map[string]struct {
		unreadable []int
		refuse     order.ID
		down       bool
		want       string // records done, events at the bus, metrics
		log        []string
	}{
		"everything is published": {
			want: "25 done, 25 at the bus: map[Published:25]",
			log:  []string{`"level":"INFO","message":"batch published","published":25,"left":0}`},
		},
		"a refused event stops the batch there": {
			refuse: "ORD-13", want: "12 done, 19 at the bus: map[Published:12 Unpublished refused:13]",
			log: []string{
				`"level":"WARN","message":"batch published","published":12,"left":13,"reason":"refused"`,
				`"order_id":"ORD-13","sort_key":"event#000001","trace_id":"0af7651916cd43dd8448eb211c80319c"`,
			},
		},
		"a bus that does not answer leaves everything": {
			down: true, want: "0 done, 0 at the bus: map[Unpublished unavailable:25]",
			log: []string{`"level":"WARN","message":"batch published","published":0,"left":25,"reason":"unavailable"`},
		},
		"unreadable items are skipped and reported": {
			unreadable: []int{0, 3, 24}, want: "25 done, 22 at the bus: map[Published:22 Unpublished unreadable:3]",
			log: []string{
				`"level":"ERROR","message":"unreadable event item skipped","order_id":"ORD-1","sort_key":"event#000001"`,
				`"error":"stream record: corrupt record"`, `"order_id":"ORD-25"`,
			},
		},
		"an unreadable item after a failure is reported once, when the batch gets there": {
			unreadable: []int{3, 20}, refuse: "ORD-13",
			want: "12 done, 19 at the bus: map[Published:11 Unpublished refused:13 Unpublished unreadable:1]",
		},
		"unreadable items before a failure are done": {
			unreadable: []int{0, 1}, refuse: "ORD-3", want: "2 done, 9 at the bus: map[Unpublished refused:23 Unpublished unreadable:2]",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			p := newPublishing()
			if tt.refuse != "" {
				p.bus.Refuse(tt.refuse)
			}
			if tt.down {
				p.bus.Fail()
			}
			done := p.publish(t.Context(), batch(25, tt.unreadable...))
			if got := fmt.Sprintf("%d done, %d at the bus: %v", done, len(p.bus.Accepted()), p.out.Metrics()); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			for _, want := range tt.log {
				if !strings.Contains(p.out.String(), want) {
					t.Errorf("got the log %s\nwant %s", p.out.String(), want)
				}
			}
		})
	}
}

func TestMoneyThatOthersGaveBackIsCountedOnceItIsPublished(t *testing.T) {
	outside := order.RefundEvent{Status: order.RefundedOutside, Amount: 998}
	returned, nothing := outside, outside
	returned.Amount, nothing.Amount = -998, 0
	for claim, tt := range map[string]struct {
		refund           order.RefundEvent
		refused, counted bool
	}{
		"others gave money back":     {outside, false, true},
		"the bank returned it":       {returned, false, false},
		"nothing was given back":     {nothing, false, false},
		"a refund of ours":           {order.RefundEvent{ID: "R-1", Status: "succeeded", Amount: 998}, false, false},
		"the event is not published": {outside, true, false},
	} {
		p := newPublishing()
		records := batch(1)
		records[0].Event.Event.Refund = tt.refund
		if tt.refused {
			p.bus.Refuse(records[0].Event.OrderID)
		}
		p.publish(t.Context(), records)
		if got := strings.Contains(p.out.String(), `"RefundedOutside":[1]`); got != tt.counted {
			t.Errorf("%s: counted: got %t, want %t: %s", claim, got, tt.counted, p.out.String())
		}
	}
}

// hanging is a bus that answers the first call only.
type hanging struct {
	ordertest.Bus

	calls int
}

func (h *hanging) Put(ctx context.Context, events []outbox.Event) ([]int, error) {
	if h.calls++; h.calls == 1 {
		return h.Bus.Put(ctx, events)
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestABatchEndsBeforeTheFunctionsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPublishing()
		p.publisher.Bus = &hanging{}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		done := p.publish(ctx, batch(25))
		if took := time.Since(start); done != 10 || took != 9*time.Second {
			t.Errorf("got %d records done after %v, want the 10 of the first call, a second before the deadline", done, took)
		}
	})
}

// environ returns a valid environment with changes.
func environ(changes ...string) []string {
	return append(functiontest.Environ("", "EVENT_BUS=orders"), changes...)
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"SCOPE=test":  "",
		"SCOPE=Test":  "SCOPE: ",
		"SCOPE=":      "SCOPE: ",
		"EVENT_BUS=":  "EVENT_BUS: ",
		"AWS_REGION=": "AWS_REGION: ",
	} {
		_, err := config.Read[environment](environ(change))
		if functiontest.Wrong(err, want) {
			t.Errorf("%s: got %v, want %q", change, err, want)
		}
	}
}

// recordJSON is a record of the stream as Lambda sends it.
const recordJSON = `{
	"eventID": "c4ca4238a0b923820dcc509a6f75849b", "eventName": "INSERT", "eventVersion": "1.1", "eventSource": "aws:dynamodb",
	"awsRegion": "us-east-1", "dynamodb": {
		"ApproximateCreationDateTime": 1790000000, "SequenceNumber": "111", "SizeBytes": 260, "StreamViewType": "NEW_IMAGE",
		"Keys": {"orderId": {"S": "ORD-1"}, "sk": {"S": "event#000001"}},
		"NewImage": {
			"orderId": {"S": "ORD-1"}, "sk": {"S": "event#000001"}, "type": {"S": "order.paid"}, "seq": {"N": "1"},
			"from": {"S": "open"}, "to": {"S": "paid"}, "amount": {"N": "3998"}, "currency": {"S": "usd"},
			"at": {"N": "1790000000020"}, "intentId": {"S": "pi_1"}, "expiresAt": {"N": "1797776000"}}}}`

// A batch as Lambda sends it becomes events on the bus. One of a newer release does not
// stop its shard, and nothing of it is lost.
func TestWire(t *testing.T) {
	t.Parallel()
	server, err := eventbridgetest.Serve(eventbridgetest.Options{Bus: "orders"})
	functiontest.Must(t, err)
	t.Cleanup(func() { functiontest.Must(t, server.Close()) })
	var out functiontest.Output
	run, err := wire(t.Context(), environ("AWS_ENDPOINT_URL_EVENTBRIDGE="+server.URL), &out)
	functiontest.Must(t, err)
	newerJSON := strings.NewReplacer( // an event of a newer release
		"event#000001", "event#000002", `"N": "1"}`, `"N": "2"}`, "order.paid", "order.shipped", `"to": {"S": "paid"}`,
		`"to": {"S": "shipped"}, "parcel": {"S": "P-1"}, "units": {"N": "3"}, "status": {"S": "x"}`,
	).Replace(recordJSON)
	var e events.DynamoDBEvent
	functiontest.Must(t, json.Unmarshal([]byte(`{"Records":[`+recordJSON+`,`+newerJSON+`]}`), &e))
	response, err := stream.Handle(run.publish)(t.Context(), e)
	if err != nil || len(response.BatchItemFailures) > 0 {
		t.Errorf("got %v, %v, want a published batch", response, err)
	}
	var got []string
	for _, e := range server.Archive() {
		got = append(got, e.Bus+" "+e.Source+" "+e.DetailType)
		got = append(got, string(e.Detail))
	}
	if diff := cmp.Diff(got, []string{
		"orders orderonce.test Order Paid", `{"version":1,"orderId":"ORD-1","seq":1,"type":"order.paid","from":"open",` +
			`"status":"paid","amount":3998,"currency":"usd","paymentIntentId":"pi_1","occurredAt":"2026-09-21T14:13:20.020Z"}`,
		"orders orderonce.test Order Shipped", `{"amount":3998,"currency":"usd","from":"open",` +
			`"occurredAt":"2026-09-21T14:13:20.020Z","orderId":"ORD-1","parcel":"P-1","paymentIntentId":"pi_1",` +
			`"seq":2,"status":"shipped","type":"order.shipped","units":3,"version":1}`,
	}); diff != "" {
		t.Errorf("events (-got +want):\n%s", diff)
	}
	if part := out.Lacks(`"Call":"AWSEvents.PutEvents"`, `"CallLatency":[`, `"Published":[2]`, `"type":"order.shipped"`); part != "" {
		t.Errorf("want %s in the output:\n%s", part, &out)
	}
}
