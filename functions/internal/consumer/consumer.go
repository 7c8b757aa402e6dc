// Package consumer is a function that handles the messages of a queue: its variables, and
// its handler. It does not know what the messages ask for.
package consumer

import (
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"orderonce/adapters/config"
	"orderonce/adapters/lambda"
	"orderonce/adapters/sqs"
	"orderonce/domain/order"
	"orderonce/functions/internal/setup"
)

// Queue has the variables of a function's queue.
type Queue struct {
	URL         config.URL    `env:"QUEUE_URL,notEmpty"             want:"the URL of the function's queue"`
	DeadLetters config.URL    `env:"DEAD_LETTER_QUEUE_URL,notEmpty" want:"the URL of the dead-letter queue"`
	AnswerTime  time.Duration `env:"ANSWER_TIME"                    envDefault:"3s"`
	FirstDelay  time.Duration `env:"FIRST_DELAY"                    envDefault:"5s"`
	Retention   time.Duration `env:"QUEUE_RETENTION"                envDefault:"168h"`
	Parallel    int           `env:"PARALLEL_ORDERS"                envDefault:"10"`
}

// Problems returns what is wrong with the variables together, and with ORDER_BUDGET and
// the time that calls may take within it.
func (q Queue) Problems(budget, calls time.Duration) (problems []string) {
	check := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	url, deadLetters := string(q.URL), string(q.DeadLetters)
	check(url != deadLetters,
		"QUEUE_URL, DEAD_LETTER_QUEUE_URL: want two queues, or parked messages would be received again")
	check(sqs.FIFO(url) == sqs.FIFO(deadLetters),
		"QUEUE_URL, DEAD_LETTER_QUEUE_URL: want two FIFO queues or two standard queues")
	check(q.Parallel >= 1, "PARALLEL_ORDERS: want at least 1")
	check(q.AnswerTime > 0, "ANSWER_TIME: want more than 0")
	check(calls < budget, "ORDER_BUDGET: want more than the time-outs of its calls, "+calls.String()+
		" together, or nothing would be sent")
	check(budget+q.AnswerTime < order.MaxLease,
		"ORDER_BUDGET, ANSWER_TIME: want less than "+order.MaxLease.String()+" together, or nothing would begin")
	longest := q.Policy().LongestDelay
	check(q.FirstDelay > 0 && q.FirstDelay <= longest,
		"FIRST_DELAY: want more than 0 and at most "+longest.String())
	check(q.Retention > 24*time.Hour,
		"QUEUE_RETENTION: want more than 24h, because messages are parked a day before it ends")
	return problems
}

// Policy returns when a message is redelivered or parked.
func (q Queue) Policy() sqs.Policy {
	p := sqs.DefaultPolicy()
	p.FirstDelay, p.Retention = q.FirstDelay, q.Retention
	return p
}

// Budget returns how the time of a message is spent whose effect is one call to a
// provider. A write to the table gets the time of one attempt.
func (q Queue) Budget(whole, call time.Duration) order.Budget {
	return order.Budget{Order: whole, Provider: call, Write: config.AWSResponseTimeout, Response: q.AnswerTime}
}

// Handler returns the handler of the queue. name is a task's in the log.
func (q Queue) Handler(
	f setup.Function, name string, budget time.Duration, decode func(string) (sqs.Task, error),
) *sqs.Handler {
	return &sqs.Handler{
		Decode: decode, Policy: q.Policy(), Settings: new(sqs.SettingsCheck),
		Queue: sqs.NewQueue(f.Config(config.SQS), string(q.URL), string(q.DeadLetters)),
		Name:  name, Log: f.Log, Meter: f.Meter, RequestID: lambda.RequestID,
		Now: time.Now, NewOwner: rand.Text, Jitter: mathrand.Float64,
		Parallel: q.Parallel, OrderBudget: budget, AnswerTime: q.AnswerTime,
	}
}

// Serve returns what handles an invocation.
func Serve(h *sqs.Handler) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return h.Handle
}
