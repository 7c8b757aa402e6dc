package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/local/system"
)

// up is `local up`.
type up struct {
	DynamoDB int `name:"dynamodb-port" default:"8000" help:"Port of the DynamoDB-compatible engine."`
	SQS      int `name:"sqs-port" default:"9324" help:"Port of the queue."`
	Stripe   int `default:"12111" name:"stripe-port" help:"Port of the pretend Stripe."`
}

// Run keeps the system running until the context ends or the function exits by itself.
func (u up) Run(ctx context.Context) error {
	for flag, port := range map[string]int{"dynamodb-port": u.DynamoDB, "sqs-port": u.SQS, "stripe-port": u.Stripe} {
		if err := free(ctx, port); err != nil {
			return fmt.Errorf("port %d is in use: end the program that uses it, perhaps another make up, or choose another: "+
				"go run ./scripts/local up --%s=PORT: %w", port, flag, err)
		}
	}
	fmt.Println("Building functions/order and starting queue, engine and pretend Stripe ...")
	s, err := start(ctx, system.Options{Ports: system.Ports{DynamoDB: u.DynamoDB, SQS: u.SQS, Stripe: u.Stripe}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(envPath, []byte(environment(s.System)), 0o600); err != nil {
		return errors.Join(err, s.Close())
	}
	fmt.Printf(usage, envPath, s.SQS.URL, s.SQS.QueueURL(system.OrderQueue), s.Engine.Endpoint, s.Options.Table, logPath)
	err = wait(ctx, s.Function)
	fmt.Println("\nEnding ...")
	return errors.Join(err, s.Close(), os.Remove(envPath))
}

// wait returns nil when the context ends, and an error when the function exits by itself.
func wait(ctx context.Context, function *lambdatest.Host) error {
	running, cancel := function.UntilExit(ctx)
	defer cancel()
	<-running.Done()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("see %s: %w", logPath, context.Cause(running))
}

// free returns an error if somebody listens on a port of 127.0.0.1.
func free(ctx context.Context, port int) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}

const envPath = "build/local/env"

// environment is what scripts/orders and the AWS CLI need to find the system; none of it is secret.
func environment(s *system.System) string {
	var b strings.Builder
	for _, v := range s.OperatorEnv() {
		b.WriteString("export " + v + "\n")
	}
	return b.String()
}

const usage = `
Running. In another terminal:

  . ./%[1]s    # endpoints and pretend credentials

Post orders, look at one, ask Stripe what became of it:

  go run ./scripts/orders post examples/orders.jsonl
  go run ./scripts/orders show ORD-1001
  go run ./scripts/orders refresh ORD-1008

The same with the AWS CLI:

  aws sqs send-message --endpoint-url %[2]s --queue-url %[3]s \
    --message-body "$(grep -m1 ORD-1001 examples/orders.jsonl)"
  aws dynamodb get-item --endpoint-url %[4]s --table-name %[5]s --consistent-read \
    --key '{"orderId":{"S":"ORD-1001"},"sk":{"S":"order"}}'

The function's log: tail -f %[6]s
Ctrl-C ends everything; nothing is kept.
`
