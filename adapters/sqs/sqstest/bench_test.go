package sqstest_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/adapters/sqs/sqstest"
)

// BenchmarkServerAndMapping sends messages of 300 bytes through the SDK in batches and
// feeds them to a function that does nothing.
func BenchmarkServerAndMapping(b *testing.B) {
	s, err := sqstest.Serve(sqstest.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	sdk, url := newClient(s.URL), s.QueueURL("orders")
	s.Machine(
		func(m *sqstest.Machine, now time.Time) { err = m.Create(now, "orders", sqstest.DefaultSettings()) },
	)
	if err != nil {
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
		entries = append(entries, types.SendMessageBatchRequestEntry{
			Id: aws.String(fmt.Sprint(i)), MessageBody: &body,
		})
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

// BenchmarkMachine sends 100,000 messages, receives them ten at a time and deletes them
// one by one.
func BenchmarkMachine(b *testing.B) {
	for name, groups := range map[string]int{"standard": 0, "FIFO, one group": 1, "FIFO, 100,000 groups": 100_000} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := play(groups); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// play runs BenchmarkMachine once, with so many groups, or on a standard queue if there
// are none.
func play(groups int) error {
	const messages = 100_000
	now, name, settings := start(), "orders", sqstest.DefaultSettings()
	if groups > 0 {
		name, settings.FIFO = "orders.fifo", true
	}
	m := sqstest.New(1)
	if err := m.Create(now, name, settings); err != nil {
		return err
	}
	for i := range messages {
		d := sqstest.Draft{Body: "a"}
		if groups > 0 {
			d.Group, d.DeduplicationID = strconv.Itoa(i%groups), strconv.Itoa(i)
		}
		if _, err := m.Send(now, name, d); err != nil {
			return err
		}
	}
	for range messages / 10 {
		got, err := m.Receive(now, name, 10, nil)
		if err != nil {
			return err
		}
		for _, message := range got {
			if err := m.Delete(now, name, message.Receipt); err != nil {
				return err
			}
		}
	}
	return nil
}
