package sqstest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/sqstest"
)

// What Lambda is documented to do with a response is a rule of scripts/conform. These are
// the choices of the double.
func TestVerdict(t *testing.T) {
	ids := []string{"a", "b"}
	for response, want := range map[string][][]string{ // deleted and failed
		``:     {ids, nil},
		`null`: {ids, nil},
		`{"BatchItemFailures":[{"itemIdentifier":"a"}]}`:  {ids, nil},
		`{"batchItemFailures":[{"itemIdentifier":null}]}`: {nil, ids},
	} {
		deleted, failed := sqstest.Verdict(ids, []byte(response), nil)
		if diff := cmp.Diff([][]string{deleted, failed}, want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", response, diff)
		}
	}
}

// Lambda developer guide, "Example standard queue message event" and "Example FIFO queue
// message event", as in aws-lambda-go.
func TestAnEventIsTheOneThatLambdaSends(t *testing.T) {
	m := sqstest.Message{
		ID: "id", Handle: "handle", Sent: start(), FirstReceived: start(), Receives: 1, Source: "source",
		Draft: sqstest.Draft{Body: `{"a":"<é>"}`, Group: "group", DeduplicationID: "x", Attributes: map[string]sqstest.Attribute{
			"text": sqstest.Text("x"), "bytes": {Type: "Binary", Binary: []byte{1}},
		}},
	}
	decoder := json.NewDecoder(bytes.NewReader(sqstest.Event("orders", []sqstest.Message{m})))
	decoder.DisallowUnknownFields()
	var got events.SQSEvent
	if err := decoder.Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := events.SQSEvent{Records: []events.SQSMessage{{
		MessageId: "id", ReceiptHandle: "handle", Body: `{"a":"<é>"}`,
		Md5OfBody: "b92ba41755973cd1c20e9fd4c0173ab3", Md5OfMessageAttributes: "ba436c18e396f5eb35a1e3ea67b618cf",
		Attributes: map[string]string{
			"ApproximateReceiveCount": "1", "SentTimestamp": "1767323045000", "ApproximateFirstReceiveTimestamp": "1767323045000",
			"SenderId": "AIDAPRETENDSENDER", "DeadLetterQueueSourceArn": "arn:aws:sqs:us-east-1:000000000000:source",
			"MessageGroupId": "group", "MessageDeduplicationId": "x",
		},
		MessageAttributes: map[string]events.SQSMessageAttribute{
			"text":  {DataType: "String", StringValue: new("x"), StringListValues: []string{}, BinaryListValues: [][]byte{}},
			"bytes": {DataType: "Binary", BinaryValue: []byte{1}, StringListValues: []string{}, BinaryListValues: [][]byte{}},
		},
		EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:us-east-1:000000000000:orders", AWSRegion: "us-east-1",
	}}}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("mismatch (-got +want):\n%s", diff)
	}
}

type feed struct {
	*testServer
	sqstest.Mapping

	mu      sync.Mutex
	batches []sqstest.Batch
}

func newFeed(t *testing.T, invoke func(context.Context, events.SQSEvent) error) *feed {
	t.Helper()
	f := &feed{testServer: newServer(t)}
	f.Mapping = sqstest.Mapping{
		Server: f.testServer.Server, Queue: "orders", BatchSize: 10, Concurrency: 1,
		Invoke: func(ctx context.Context, payload []byte) ([]byte, error) {
			var event events.SQSEvent
			if err := json.Unmarshal(payload, &event); err != nil {
				return nil, err
			}
			return []byte("{}"), invoke(ctx, event)
		},
		Observe: func(b sqstest.Batch) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.batches = append(f.batches, b)
		},
	}
	return f
}

// put sends bodies before the mapping receives any of them. On a FIFO queue, the first
// letter of a body is its group.
func (f *feed) put(bodies ...string) {
	f.t.Helper()
	f.edit(func(m *sqstest.Machine, now time.Time) (err error) {
		for i, body := range bodies {
			d := sqstest.Draft{Body: body}
			if f.Queue == "orders.fifo" {
				d.Group, d.DeduplicationID = body[:1], strconv.Itoa(i)
			}
			_, sendErr := m.Send(now, f.Queue, d)
			err = errors.Join(err, sendErr)
		}
		return err
	})
}

func (f *feed) run() (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	return func() {
		f.t.Helper()
		cancel()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	}
}

// drain runs the mapping until the queue is empty, and moves the clock so that failed
// messages become visible.
func (f *feed) drain() {
	f.t.Helper()
	stop := f.run()
	defer stop()
	drained := make(chan error)
	go func() { drained <- f.Drained(f.t.Context(), f.Queue) }()
	for {
		select {
		case err := <-drained:
			if err != nil {
				f.t.Error(err)
			}
			return
		case <-time.After(time.Millisecond): // gives the function time; the outcome does not depend on it
			f.add(time.Second)
			f.Wake()
		}
	}
}

// bodies describes the batches: body and receives of each message, and how many failed
// and were lost. Which messages were deleted, the next batches show.
func (f *feed) bodies() (got []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.batches {
		var all []string
		for _, m := range b.Messages {
			all = append(all, fmt.Sprint(m.Body, m.Receives))
		}
		fate := fmt.Sprintf("%d failed, %d lost", len(b.Failed), len(b.Lost))
		got = append(got, strings.Join(all, " ")+": "+fate)
	}
	return got
}

// That a failed message comes again, alone or with its batch, is a rule of
// scripts/conform.
func TestAMapping(t *testing.T) {
	succeed := func(context.Context, events.SQSEvent) error { return nil }
	for claim, tt := range map[string]struct {
		queue  func(f *feed)
		invoke func(ctx context.Context, e events.SQSEvent) error
		want   []string
	}{
		// Lambda developer guide, "Configuring scaling behavior for SQS event source
		// mappings": "If your function returns an error, the function attempts all
		// retries on the affected messages before Lambda receives additional messages
		// from the same group".
		"delays only the group of a failed message": {
			func(f *feed) { f.BatchSize, f.Queue = 1, "orders.fifo"; f.put("a1", "a2", "b1") },
			func(_ context.Context, e events.SQSEvent) error {
				if r := e.Records[0]; r.Body == "a1" && r.Attributes["ApproximateReceiveCount"] == "1" {
					return errors.New("pretend")
				}
				return nil
			},
			[]string{"a11: 1 failed, 0 lost", "b11: 0 failed, 0 lost", "a12: 0 failed, 0 lost", "a21: 0 failed, 0 lost"},
		},
		"can deliver a duplicate in the same batch": {
			func(f *feed) {
				f.Duplicate = func(sqstest.Message) sqstest.Twice { return sqstest.InSameBatch }
				f.put("a", "b")
			},
			succeed,
			[]string{"a1 a1 b1 b1: 0 failed, 0 lost"},
		},
		"redelivers a message with a lost delete": {
			func(f *feed) {
				f.LoseDelete = func(m sqstest.Message) bool { return m.Body == "a" && m.Receives == 1 }
				f.put("a", "b")
			},
			succeed,
			[]string{"a1 b1: 0 failed, 1 lost", "a2: 0 failed, 0 lost"},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			f := newFeed(t, tt.invoke)
			tt.queue(f)
			f.drain()
			if diff := cmp.Diff(f.bodies(), tt.want); diff != "" {
				t.Errorf("batches (-got +want):\n%s", diff)
			}
		})
	}
}

func TestRunWaitsForARunningInvocation(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	f := newFeed(t, func(ctx context.Context, _ events.SQSEvent) error {
		close(begun)
		<-finish
		return ctx.Err()
	})
	f.put("a")
	stop := f.run()
	<-begun
	go close(finish)
	stop()
	want := []string{"a1: 0 failed, 0 lost"}
	if diff := cmp.Diff(f.bodies(), want); diff != "" {
		t.Errorf("batches (-got +want):\n%s", diff)
	}
}
