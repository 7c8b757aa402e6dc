// Command other is a Lambda function around one of the designs that people copy. It does for each of them what a careful user would:
// records in parallel, partial batch responses, a time-out for Stripe below the function's own.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"orderonce/adapters/config"
	"orderonce/adapters/lambda"
	"orderonce/scripts/lab/baselines"
)

type environment struct {
	AWS    config.AWS
	Design string `env:"DESIGN,notEmpty"`
	Table  string `env:"ORDERS_TABLE,notEmpty"`

	StripeKey     config.Secret `env:"STRIPE_SECRET_KEY,notEmpty"`
	StripeBase    string        `env:"STRIPE_API_BASE,notEmpty"`
	StripeTimeout time.Duration `env:"STRIPE_TIMEOUT,notEmpty"`
	Timeout       time.Duration `env:"FUNCTION_TIMEOUT,notEmpty"`
}

func main() {
	f, err := wire(os.Environ())
	if err != nil {
		lambda.Fail(os.Stdout, err)
	}
	lambda.Start(context.Background(), f.handle)
}

type function struct {
	design  baselines.Design
	table   baselines.Table
	stripe  *baselines.Stripe
	timeout time.Duration
}

func wire(environ []string) (*function, error) {
	c, err := config.Read[environment](environ)
	if err != nil {
		return nil, err
	}
	all := baselines.All()
	at := slices.IndexFunc(all, func(d baselines.Design) bool { return d.Name == c.Design })
	if at < 0 {
		return nil, fmt.Errorf("no design is named %q", c.Design)
	}
	transport := config.NewTransport(parallel, c.StripeTimeout)
	cfg := c.AWS.Config(config.DynamoDB, &http.Client{Transport: config.NewTransport(parallel, c.Timeout)})
	return &function{
		design: all[at], table: baselines.NewDynamoDB(cfg, c.Table), timeout: c.Timeout,
		stripe: baselines.NewStripe(baselines.StripeOptions{
			Key: c.StripeKey.Reveal(), BaseURL: c.StripeBase, Timeout: c.StripeTimeout, Transport: transport,
		}),
	}, nil
}

// parallel is Lambda's batch.
const parallel = 10

// handle gives each record to the design. In a FIFO batch, what follows a failure in its group fails too.
func (f *function) handle(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	lanes := map[string][]events.SQSMessage{}
	for i, r := range e.Records {
		lane := r.Attributes["MessageGroupId"]
		if lane == "" {
			lane = fmt.Sprint(i)
		}
		lanes[lane] = append(lanes[lane], r)
	}
	var mu sync.Mutex
	var work sync.WaitGroup
	out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	env := f.env(ctx)
	for _, records := range lanes {
		work.Go(func() {
			failed := false
			for _, r := range records {
				failed = failed || !f.one(ctx, env, r)
				if failed {
					mu.Lock()
					out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: r.MessageId})
					mu.Unlock()
				}
			}
		})
	}
	work.Wait()
	return out, nil
}

// env has the clock of the storm: the deadline that the host told, less the time-out, is when the invocation began.
func (f *function) env(ctx context.Context) baselines.Env {
	deadline, _ := ctx.Deadline()
	ahead := time.Until(deadline) - f.timeout
	return baselines.Env{
		Table: f.table, Stripe: f.stripe, Deadline: deadline, Now: func() time.Time { return time.Now().Add(ahead) },
		Warn: func(text string) { say("warn", text) },
	}
}

func (f *function) one(ctx context.Context, e baselines.Env, r events.SQSMessage) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			say("panic", fmt.Sprint(p))
		}
	}()
	if err := f.design.Handle(ctx, e, baselines.Message{ID: r.MessageId, Body: r.Body}); err != nil {
		say("error", err.Error())
		return false
	}
	return true
}

func say(level, text string) {
	line, _ := json.Marshal(map[string]string{"level": level, "message": strings.TrimSpace(text)})
	fmt.Println(string(line))
}
