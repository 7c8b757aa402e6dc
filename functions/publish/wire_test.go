package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb/stream"
	"orderonce/adapters/eventbridge/eventbridgetest"
)

// complete returns a valid environment with changes, in which EventBridge is at url.
func complete(url string, changes ...string) []string {
	return append([]string{
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=pretend", "AWS_SECRET_ACCESS_KEY=canary",
		"AWS_ENDPOINT_URL_EVENTBRIDGE=" + url, "EVENT_BUS=orders", "SCOPE=test",
	}, changes...)
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
		_, err := config.Read[environment](complete("http://127.0.0.1:1", change))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	var out bytes.Buffer
	run, err := wire(t.Context(), complete(server.URL), &out)
	if err != nil {
		t.Fatal(err)
	}
	newerJSON := strings.NewReplacer( // an event of a newer release
		"event#000001", "event#000002", `"N": "1"}`, `"N": "2"}`, "order.paid", "order.shipped", `"to": {"S": "paid"}`,
		`"to": {"S": "shipped"}, "parcel": {"S": "P-1"}, "units": {"N": "3"}, "status": {"S": "x"}`,
	).Replace(recordJSON)
	var e events.DynamoDBEvent
	if err := json.Unmarshal([]byte(`{"Records":[`+recordJSON+`,`+newerJSON+`]}`), &e); err != nil {
		t.Fatal(err)
	}
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
	for _, want := range []string{`"Call":"AWSEvents.PutEvents"`, `"CallLatency":[`, `"Published":[2]`, `"type":"order.shipped"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got output %s, want %s", out.String(), want)
		}
	}
	if strings.Contains(out.String(), "canary") {
		t.Errorf("output contains a secret: %s", out.String())
	}
}
