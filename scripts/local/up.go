package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/eventbridge/eventbridgetest"
	"orderonce/scripts/local/system"
)

type up struct {
	DynamoDB int `name:"dynamodb-port" default:"8000" env:"DYNAMODB_PORT" help:"Port of the DynamoDB-compatible engine; 0: any."`
	SQS      int `name:"sqs-port" default:"9324" env:"SQS_PORT" help:"Port of the queue; 0: any."`
	Stripe   int `name:"stripe-port" default:"12111" env:"STRIPE_PORT" help:"Port of the pretend Stripe; 0: any."`
	Page     int `name:"console-port" default:"12113" env:"CONSOLE_PORT" help:"Port of the live page; 0: any."`
	API      int `name:"api-port" default:"12112" env:"API_PORT" help:"Port of the HTTP API for orders and Stripe's webhook; 0: any."`
}

// Run keeps the system running until the context ends or the function exits by itself.
func (u up) Run(ctx context.Context) (err error) {
	finally := func(end func() error) { err = errors.Join(err, end()) }
	engine, err := dynamodbtest.Find(os.Getenv, ".")
	if err != nil {
		return err
	}
	examples, err := readStages()
	if err != nil {
		return err
	}
	stock, err := examples.stock()
	if err != nil {
		return err
	}
	defer ownTerminal(os.Stdin)()
	o := system.Options{
		RefuseEvent: printEvents(os.Stdout, time.Now), LoseMailEvent: printMail(os.Stdout, time.Now), Stock: stock,
	}
	page := newPage(&o)
	s, err := start(ctx, upFolder, engine, o)
	if err != nil {
		if ctx.Err() != nil { // Ctrl-C is how it ends
			return nil
		}
		return err
	}
	defer finally(s.Close)
	gate, err := u.openGate(s.System)
	if err != nil {
		return err
	}
	defer finally(gate.Close)
	env := s.folder.env()
	if err := s.folder.writeEnv(gate.outside(environment(s.System))); err != nil {
		return err
	}
	defer finally(func() error { return os.Remove(env) })
	defer finally(page.Close)
	if err := page.serve(ctx, s.System, u.Page); err != nil {
		return inUse("console-port", err)
	}
	fmt.Print(gate.outside(fmt.Sprintf(usage, env, s.SQS.QueueURL(system.OrderQueue),
		s.Options.Table+" at "+s.Engine.Endpoint, s.folder.log(), s.API.URL, page.server.URL)))
	scheduled, stop := context.WithCancel(ctx)
	defer stop()
	go s.schedule(scheduled)
	err = s.wait(ctx)
	fmt.Println("\nEnding ...")
	return err
}

func inUse(flag string, err error) error {
	return fmt.Errorf("end the program that uses the port, perhaps another make up, "+
		"or choose another: build/up/local up --%s=PORT: %w", flag, err)
}

// wait returns nil when the context ends, and an error when the function exits by itself.
func (l *local) wait(ctx context.Context) error {
	running, cancel := l.UntilExit(ctx)
	defer cancel()
	<-running.Done()
	select { // Ctrl-C ends a busy function too, perhaps before this process knows
	case <-ctx.Done():
		return nil
	case <-time.After(time.Second):
		return fmt.Errorf("see %s: %w", l.folder.log(), context.Cause(running))
	}
}

// printEvents returns a function that prints each event that reaches the bus, and accepts
// it. The time is this machine's, as on the live page: the clocks of the queue and of
// Stripe can be ahead.
func printEvents(w io.Writer, now func() time.Time) func(eventbridgetest.Event) (code string) {
	return func(e eventbridgetest.Event) string {
		parsed, err := system.ParseBusEvent(e)
		if err != nil {
			return eventbridgetest.CodeMalformedDetail
		}
		at := now().Format(time.TimeOnly)
		fmt.Fprintf(w, "%s  event %d of %s: %s\n", at, parsed.Seq, parsed.OrderID, e.DetailType)
		return ""
	}
}

// printMail returns a function that prints each e-mail that reaches its recipient, and
// each event that follows, without an address. It loses no event.
func printMail(w io.Writer, now func() time.Time) func(json.RawMessage) (lost bool) {
	return func(event json.RawMessage) bool {
		e, err := system.ParseMailEvent(event)
		if err == nil && e.DetailType != "Email Sent" { // the next event follows at once
			at := now().Format(time.TimeOnly)
			fmt.Fprintf(w, "%s  e-mail of %s: %s, %s\n", at, e.OrderID, e.DetailType, e.Subject)
		}
		return false
	}
}

func (l *local) schedule(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_, _ = l.Reconcile.Invoke(ctx, []byte(`{}`)) // the function logs its errors
		case <-ctx.Done():
			return
		}
	}
}

// environment is what scripts/orders and the AWS CLI need to find the system. None of it
// is secret.
func environment(s *system.System) string {
	var b strings.Builder
	for _, v := range s.OperatorEnv() {
		b.WriteString("export " + v + "\n")
	}
	return b.String()
}

// writeEnv writes what a shell of another terminal sources: the environment, and the
// folder itself for the tool that make up has compiled.
func (f folder) writeEnv(environment string) error {
	programs, err := filepath.Abs(string(f))
	if err != nil {
		return err
	}
	path := "export PATH='" + strings.ReplaceAll(programs, "'", `'\''`) + "':\"$PATH\"\n"
	return os.WriteFile(f.env(), []byte(environment+path), 0o600)
}

const usage = `
See it, and attack it: %[6]s

Or in another terminal (more in docs/tutorial.md; three lines of the examples are invalid on purpose):

  . ./%[1]s    # endpoints, pretend credentials, and the tool orders on the PATH
  orders post --allow-invalid examples/orders.jsonl
  orders show ORD-1001
  orders refund ORD-1001 --amount 1999 --reason requested_by_customer
  orders receipts ORD-1001
  orders stock VINYL

Put an order by HTTP, twice: it is charged once. The same URL with GET shows its status:

  curl -sS --aws-sigv4 aws:amz:us-east-1:execute-api --user pretend:pretend -X PUT %[5]s/orders/ORD-1016 \
    -H 'Content-Type: application/json' -d "$(grep -m1 ORD-1016 examples/http.jsonl)"

The same with the AWS CLI, version 2.13 or later: the queue is %[2]s, the table %[3]s.

Each event is printed here when it reaches the event bus, and each e-mail when it reaches a mailbox.
The functions' log: tail -f %[4]s
Ctrl-C ends everything; nothing is kept.
`
