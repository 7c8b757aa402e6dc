// Command intake is the Lambda function of the entrance by HTTP. It sends each order that
// a client puts to the order queue, and answers what became of it. It has no access to
// Stripe.
package main

import (
	"context"
	"io"
	"net/http"
	"time"

	"orderonce/adapters/apigateway"
	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	registrationtable "orderonce/adapters/dynamodb/registrations"
	"orderonce/adapters/httpapi"
	intakequeue "orderonce/adapters/sqs/intake"
	"orderonce/domain/intake"
	"orderonce/functions/internal/setup"
)

func main() { setup.Main(wire, apigateway.Handle) }

func wire(_ context.Context, environ []string, out io.Writer) (http.Handler, error) {
	c, err := config.Read[environment](environ)
	if err != nil {
		return nil, err
	}
	f := c.Function(out, 1, config.URL(c.AWS.DynamoDBEndpoint), "")
	entrance := &intake.Intake{
		Book:  &registrationtable.Store{Orders: dynamodb.New(f.Config(config.DynamoDB), c.Table)},
		Queue: intakequeue.NewSender(f.Config(config.SQS), string(c.Queue)),
		Owned: c.Owner != "", Now: time.Now,
	}
	return httpapi.New(httpapi.Options{
		Put: paidBy(c.Payer, entrance.Put), Post: paidBy(c.Payer, entrance.Post), Get: entrance.Get,
		Decode: intakequeue.NewDecoder(), Caller: identify(c.Owner),
		Log: f.Log, Count: func(result string) {
			f.Meter.Count("Intake", "Result", result)
			f.Meter.Flush() // one request is one invocation
		},
	}), nil
}
