// Package batch handles the messages of a batch in parallel, as the functions do that the
// bench compares with the product.
package batch

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
)

// Start serves invocations. A message whose body cannot be handled is redelivered.
func Start(handle func(ctx context.Context, body string) error) {
	lambda.Start(func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		var mu sync.Mutex
		var running sync.WaitGroup
		out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
		for _, r := range e.Records {
			running.Go(func() {
				if err := handle(ctx, r.Body); err != nil {
					fmt.Println(err)
					mu.Lock()
					defer mu.Unlock()
					failed := events.SQSBatchItemFailure{ItemIdentifier: r.MessageId}
					out.BatchItemFailures = append(out.BatchItemFailures, failed)
				}
			})
		}
		running.Wait()
		return out, nil
	})
}
