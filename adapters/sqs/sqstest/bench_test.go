package sqstest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/adapters/sqs/sqstest"
)

// BenchmarkFaceAndMapping sends messages of 300 bytes through the SDK in batches and feeds them to a function that does nothing.
func BenchmarkFaceAndMapping(b *testing.B) {
	s, err := sqstest.Serve(sqstest.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	sdk, url := newClient(s.URL), s.QueueURL("orders")
	if _, err := sdk.CreateQueue(b.Context(), &sqs.CreateQueueInput{QueueName: aws.String("orders")}); err != nil {
		b.Fatal(err)
	}
	m := sqstest.Mapping{
		Server: s, Queue: "orders", BatchSize: 10, Concurrency: 4,
		Invoke: func(context.Context, []byte) ([]byte, error) { return []byte(`{"batchItemFailures":[]}`), nil },
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(b.Context())
	go func() { ended <- m.Run(ctx) }()
	body := strings.Repeat("a", 300)
	var entries []types.SendMessageBatchRequestEntry
	for i := range 10 {
		entries = append(entries, types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: &body})
	}
	b.ReportAllocs()
	messages := 0
	for b.Loop() {
		if _, err := sdk.SendMessageBatch(b.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries}); err != nil {
			b.Fatal(err)
		}
		messages += len(entries)
	}
	if err := m.Drained(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "messages/s")
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
