package sqs_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/orders"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
)

type dropped struct{}

func (dropped) Count(_, _, _ string)                     {}
func (dropped) Observe(_, _, _ string, _ time.Duration)  {}
func (dropped) Flush()                                   {}
func (dropped) Write(line []byte) (written int, _ error) { return len(line), nil }

// costs has batches whose orders are paid at once, without a store and a provider.
func costs(tb testing.TB) []ordertest.Cost {
	tb.Helper()
	tasks := orders.Tasks{
		Decoder: orders.NewDecoder(),
		Process: func(context.Context, order.Order, time.Time, order.Lease) order.Result { return paid() },
	}
	h := sqs.Handler{
		Decode: tasks.Task, Policy: sqs.DefaultPolicy(), Queue: new(sqs.Queue), Meter: dropped{}, Name: "order",
		Log: slog.New(slog.NewJSONHandler(dropped{}, nil)), Now: start, Jitter: func() float64 { return minJitter },
		NewOwner: func() string { return "owner" }, RequestID: func(context.Context) string { return "request-1" },
		Parallel: 4, OrderBudget: orderBudget, AnswerTime: answerTime,
	}
	var batch events.SQSEvent
	for i := range 10 {
		sent := map[string]string{"ApproximateReceiveCount": "1", "SentTimestamp": fmt.Sprint(start().UnixMilli())}
		id := fmt.Sprint("ORD-", i)
		batch.Records = append(batch.Records, events.SQSMessage{MessageId: id, Body: orderWithID(id), Attributes: sent})
	}
	handle := func() error {
		response, err := h.Handle(tb.Context(), batch)
		if n := len(response.BatchItemFailures); n > 0 {
			err = fmt.Errorf("%d batch item failures, want none", n)
		}
		return err
	}
	return []ordertest.Cost{{Name: "messages=10", Objects: 1_269, Bytes: 120_000, Call: handle}}
}

func TestABatchKeepsItsBudget(t *testing.T) { ordertest.TestCosts(t, costs(t)) }
func BenchmarkHandle(b *testing.B)          { ordertest.BenchmarkCosts(b, costs(b)) }
