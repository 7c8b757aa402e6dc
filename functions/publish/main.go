// Command publish is the Lambda function of the table's stream. It sends the event items
// that the stream reports to an event bus, at least once and in order for each order.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	"orderonce/adapters/eventbridge"
	"orderonce/adapters/lambda"
	"orderonce/domain/order"
)

func main() {
	run, err := wire(os.Environ(), os.Stdout)
	if err != nil {
		lambda.Fail(os.Stdout, err)
	}
	lambda.Start(context.Background(), dynamodb.HandleStream(run.publish))
}

func wire(environ []string, out io.Writer) (*run, error) {
	c, err := config.Read[environment](environ)
	if err != nil {
		return nil, err
	}
	config.LoadCertificates(config.URL(c.AWS.EventBridgeEndpoint))
	meter := lambda.NewMeter(out, "orderonce", map[string]string{"Scope": string(c.Scope)}, time.Now)
	clients := config.Clients{MaxCalls: 1, Observe: meter.Observe, Now: time.Now}
	bus := eventbridge.New(c.AWS.Config(config.EventBridge, clients.AWS()), c.Bus, c.Scope.Order())
	return &run{
		publisher: order.Publisher{Bus: bus}, log: lambda.NewLogger(out, slog.LevelInfo), meter: meter,
	}, nil
}
