package consumer_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	own "orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/examples/consumer"
)

// event returns an SQS message with an event as EventBridge sends it.
func event(seq int, status string) events.SQSMessage {
	return events.SQSMessage{MessageId: fmt.Sprintf("m%d", seq), Body: fmt.Sprintf(
		`{"version":"0","source":"orderonce.test","detail-type":"Order Paid","detail":`+
			`{"version":1,"orderId":"ORD-1","seq":%d,"status":%q,"from":"open","amount":3998,"currency":"usd"}}`,
		seq, status)}
}

func TestTheNewestEventOfAnOrderCounts(t *testing.T) {
	t.Parallel()
	pending, paid := event(1, "pending"), event(2, "paid")
	for name, delivered := range map[string][]events.SQSMessage{
		"in order":                   {pending, paid},
		"in the reverse order":       {paid, pending},
		"repeated":                   {pending, pending, paid, paid},
		"replayed after they passed": {pending, paid, pending, paid},
	} {
		c := open(t)
		for _, message := range delivered {
			response, err := c.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{message}})
			if err != nil || len(response.BatchItemFailures) > 0 {
				t.Fatalf("%s: Handle: got %v, %v, want no failure", name, response, err)
			}
		}
		if diff := cmp.Diff(row(t, c), map[string]string{"status": "paid", "seq": "2"}); diff != "" {
			t.Errorf("%s: row (-got +want):\n%s", name, diff)
		}
	}
}

func TestOnlyTheEventsThatFailedAreReported(t *testing.T) {
	t.Parallel()
	newer := event(3, "paid")
	newer.Body = strings.Replace(newer.Body, `"version":1`, `"version":2`, 1)
	truncated := event(4, "paid")
	truncated.Body = truncated.Body[:20]
	var log bytes.Buffer
	c := open(t)
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	response, err := c.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{
		event(1, "pending"), newer, truncated, event(2, "paid"),
	}})
	want := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{
		{ItemIdentifier: "m3"}, {ItemIdentifier: "m4"},
	}}
	if diff := cmp.Diff(response, want); diff != "" || err != nil {
		t.Errorf("response (-got +want):\n%s, error %v", diff, err)
	}
	if got, want := row(t, c)["seq"], "2"; got != want {
		t.Errorf("seq: got %s, want %s", got, want)
	}
	c.Table = "no-such-table"
	response, err = c.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{event(5, "paid")}})
	if err != nil || len(response.BatchItemFailures) != 1 {
		t.Errorf("an event that is not written: got %v, %v, want it delivered again", response, err)
	}
	for _, want := range []string{"message_id=m3", "version 2: want 1", "message_id=m4"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log: does not contain %q:\n%s", want, log.String())
		}
	}
}

func TestTheGuideShowsThisCode(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guides/hear-about-orders.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("consumer.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(guide, []byte("```go\n"))
	if code, _, ok := bytes.Cut(rest, []byte("```\n")); !ok || !bytes.Contains(source, code) {
		t.Error("hear-about-orders.md: does not show a part of consumer.go")
	}
}

// open returns a consumer with an empty table in an engine of its own.
func open(t *testing.T) consumer.Consumer {
	t.Helper()
	client := dynamodbtest.Open(t).Client
	if err := dynamodbtest.Create(t.Context(), client, dynamodbtest.Definition("statuses", "orderId")); err != nil {
		t.Fatal(err)
	}
	return consumer.Consumer{Table: "statuses", Client: client, Log: slog.New(slog.DiscardHandler)}
}

// row returns the status and the seq of ORD-1.
func row(t *testing.T, c consumer.Consumer) map[string]string {
	t.Helper()
	out, err := c.Client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &c.Table, ConsistentRead: aws.Bool(true), Key: own.Item{"orderId": own.Text("ORD-1")},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := own.Fields{Item: out.Item}
	return map[string]string{"status": d.Text("status"), "seq": fmt.Sprint(d.Number("seq"))}
}
