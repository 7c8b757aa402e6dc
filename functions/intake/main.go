// Command intake is the Lambda function of the entrance by HTTP. It sends each order that
// a client puts to the order queue, and answers what became of it. It has no access to
// Stripe.
package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"orderonce/adapters/apigateway"
	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	"orderonce/adapters/httpapi"
	"orderonce/adapters/lambda"
	"orderonce/adapters/sqs/orders"
	"orderonce/domain/intake"
)

func main() {
	handler, err := wire(os.Environ(), os.Stdout)
	if err != nil {
		lambda.Fail(os.Stdout, err)
	}
	lambda.Start(context.Background(), apigateway.Handle(handler))
}

func wire(environ []string, out io.Writer) (http.Handler, error) {
	c, err := config.Read[environment](environ)
	if err != nil {
		return nil, err
	}
	config.LoadCertificates(config.URL(c.AWS.DynamoDBEndpoint))
	meter := lambda.NewMeter(out, "orderonce", map[string]string{"Scope": string(c.Scope)}, time.Now)
	clients := config.Clients{MaxCalls: 1, Observe: meter.Observe, Now: time.Now}
	store := dynamodb.New(c.AWS.Config(config.DynamoDB, clients.AWS()), c.Table)
	entrance := &intake.Intake{
		Book:  &dynamodb.Registrations{Store: store},
		Queue: orders.NewSender(c.AWS.Config(config.SQS, clients.AWS()), string(c.Queue)),
		Owned: c.Owner != "", Now: time.Now,
	}
	return httpapi.New(httpapi.Options{
		Put: paidBy(c.Payer, entrance.Put), Post: paidBy(c.Payer, entrance.Post), Get: entrance.Get,
		Decode: orders.NewDecoder().DecodeNamed, Caller: identify(c.Owner),
		Log: lambda.NewLogger(out, slog.LevelInfo), Count: func(result string) {
			meter.Count("Intake", "Result", result)
			meter.Flush() // one request is one invocation
		},
	}), nil
}
