// Package batch handles the messages of a batch in parallel, as the functions do that the
// storm and the bench compare with the product.
package batch

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
)

// Start serves invocations, as Handle does.
func Start(handle func(ctx context.Context, m events.SQSMessage) error) {
	lambda.Start(func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		return Handle(ctx, e, handle), nil
	})
}

// Handle handles a batch. A message that cannot be handled is redelivered, and so is
// every message after it in its FIFO group.
func Handle(
	ctx context.Context, e events.SQSEvent, handle func(context.Context, events.SQSMessage) error,
) events.SQSEventResponse {
	lanes := map[string][]events.SQSMessage{}
	for _, m := range e.Records {
		lane := m.Attributes["MessageGroupId"]
		if lane == "" {
			lane = m.MessageId
		}
		lanes[lane] = append(lanes[lane], m)
	}
	var mu sync.Mutex
	var running sync.WaitGroup
	out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, messages := range lanes {
		running.Go(func() {
			var err error
			for _, m := range messages {
				if err == nil {
					err = handle(ctx, m)
				}
				if err != nil {
					fmt.Println(err)
					mu.Lock()
					failed := events.SQSBatchItemFailure{ItemIdentifier: m.MessageId}
					out.BatchItemFailures = append(out.BatchItemFailures, failed)
					mu.Unlock()
				}
			}
		})
	}
	running.Wait()
	return out
}
