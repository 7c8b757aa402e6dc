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

const (
	parallel = 10              // messages of a batch
	timeout  = 3 * time.Second // of a call to the provider
)

func main() {
	c, err := config.Read[struct {
		AWS         config.AWS
		Table       string     `env:"LABEL_TABLE,notEmpty"`
		Queue       config.URL `env:"QUEUE_URL,notEmpty"`
		DeadLetters config.URL `env:"DEAD_LETTER_QUEUE_URL,notEmpty"`
		Scope       string     `env:"SCOPE,notEmpty"`
		Provider    config.URL `env:"LABEL_URL,notEmpty"`
	}](os.Environ())
	if err != nil {
		lambda.Fail(os.Stdout, err)
	}
	dimensions := map[string]string{"Scope": c.Scope, "Function": "label"}
	meter := lambda.NewMeter(os.Stdout, "orderonce", dimensions, time.Now)
	clients := config.Clients{MaxCalls: parallel, Observe: meter.Observe, Now: time.Now}
	job := Job{Table: Table{dynamodb.NewClient(c.AWS.Config(config.DynamoDB, clients.AWS())), c.Table}}
	calls := clients.Transport(timeout, func(r *http.Request) string { return r.Method + " label" })
	job.Provider = Provider{&http.Client{Transport: calls, Timeout: timeout}, string(c.Provider), c.Scope}
	handler := sqs.Handler{
		Decode: job.Task, Policy: sqs.DefaultPolicy(), Settings: new(sqs.SettingsCheck),
		Queue: sqs.NewQueue(c.AWS.Config(config.SQS, clients.AWS()), string(c.Queue), string(c.DeadLetters)),
		Name:  "label", Log: lambda.NewLogger(os.Stdout, slog.LevelInfo), Meter: meter, RequestID: lambda.RequestID,
		Now: time.Now, NewOwner: rand.Text, Jitter: mathrand.Float64,
		// Together below the function's time-out, or nothing is ever begun.
		Parallel: parallel, OrderBudget: 10 * time.Second, AnswerTime: 3 * time.Second,
	}
	lambda.Start(context.Background(), handler.Handle)
}
