package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	"orderonce/adapters/lambda"
	"orderonce/adapters/sqs"
)

const parallel, timeout = 10, 3 * time.Second

func main() {
	c, err := config.Read[struct {
		AWS         config.AWS
		Table       string     `env:"LABELS_TABLE,notEmpty"`
		Queue       config.URL `env:"QUEUE_URL,notEmpty"`
		DeadLetters config.URL `env:"DEAD_LETTER_QUEUE_URL,notEmpty"`
		Scope       string     `env:"SCOPE,notEmpty"`
		Carrier     config.URL `env:"CARRIER_URL,notEmpty"`
	}](os.Environ())
	if err != nil {
		lambda.Fail(os.Stdout, err)
	}
	meter := lambda.NewMeter(os.Stdout, "label", map[string]string{"Scope": c.Scope}, time.Now)
	clients := config.Clients{MaxCalls: parallel, Observe: meter.Observe, Now: time.Now}
	carrier := clients.Transport(timeout, func(r *http.Request) string { return r.Method + " shipment" })
	job := Job{
		dynamodb.NewClient(c.AWS.Config(config.DynamoDB, clients.AWS())), c.Table,
		Carrier{&http.Client{Transport: carrier, Timeout: timeout}, string(c.Carrier) + "/shipments", c.Scope},
	}
	handler := sqs.Handler{
		Decode: job.Task, Policy: sqs.DefaultPolicy(), Settings: new(sqs.SettingsCheck),
		Queue: sqs.NewQueue(c.AWS.Config(config.SQS, clients.AWS()), string(c.Queue), string(c.DeadLetters)),
		Name:  "label", Log: lambda.NewLogger(os.Stdout, slog.LevelInfo), Meter: meter, RequestID: lambda.RequestID,
		Now: time.Now, NewOwner: rand.Text, Jitter: mathrand.Float64,
		// Together below the function's time-out, or nothing is ever begun.
		Parallel: parallel, OrderBudget: 8 * time.Second, AnswerTime: 3 * time.Second,
	}
	lambda.Start(context.Background(), handler.Handle)
}
