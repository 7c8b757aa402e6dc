// Command publish is the Lambda function of the table's stream. It sends the event items
// that the stream reports to an event bus, at least once and in order for each order.
package main

import (
	"context"
	"io"

	"github.com/aws/aws-lambda-go/events"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb/stream"
	"orderonce/adapters/eventbridge"
	"orderonce/domain/outbox"
	"orderonce/functions/internal/setup"
)

// environment is the function's whole environment; docs/reference/configuration.md
// explains each variable.
type environment struct {
	setup.Environment

	Bus string `env:"EVENT_BUS,notEmpty" want:"the name or the ARN of an event bus"`
}

func main() { setup.Main(wire, serve) }

func serve(r *run) func(context.Context, events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return stream.Handle(r.publish)
}

func wire(_ context.Context, environ []string, out io.Writer) (*run, error) {
	c, err := config.Read[environment](environ)
	if err != nil {
		return nil, err
	}
	f := c.Function(out, 1, config.URL(c.AWS.EventBridgeEndpoint), "")
	bus := eventbridge.New(f.Config(config.EventBridge), c.Bus, c.Scope.Order())
	return &run{publisher: outbox.Publisher{Bus: bus}, log: f.Log, meter: f.Meter}, nil
}
