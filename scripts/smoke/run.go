package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/lambda"
	"orderonce/adapters/sqs"
	"orderonce/adapters/stripe"
	"orderonce/domain/order"
)

type run struct {
	Customer string        `and:"payer" help:"Who pays, instead of a new customer of Stripe's test mode. Needs --method."`
	Method   string        `and:"payer" help:"A payment method of that customer, such as pm_card_visa where Stripe is pretend."`
	Limit    time.Duration `default:"2m" help:"Give up when the order is not settled by then."`
}

type config struct {
	AWS     lambda.AWS
	Table   string         `env:"ORDERS_TABLE,notEmpty"      want:"the name of the orders table"`
	Queue   lambda.Address `env:"QUEUE_URL,notEmpty"         want:"the URL of the order queue"`
	Scope   string         `env:"SCOPE,notEmpty"             want:"the deployment's scope"`
	Key     lambda.Secret  `env:"STRIPE_SECRET_KEY,notEmpty" want:"a Stripe test key"`
	Address string         `env:"STRIPE_API_BASE"`

	// What the function is told, if that differs from what infra/terraform deploys.
	DeadLetters lambda.Address `env:"DEAD_LETTER_QUEUE_URL" want:"the URL of the dead-letter queue"`
	Retention   time.Duration  `env:"QUEUE_RETENTION"`
}

// Problems are what one variable alone cannot show.
func (c config) Problems() []string {
	switch key := c.Key.Reveal(); {
	case stripe.CheckKey(key, "") != nil:
		return []string{"STRIPE_SECRET_KEY: want a test key, which starts with sk_test_ or rk_test_"}
	case stripe.Live(key): // to whatever address
		return []string{"STRIPE_SECRET_KEY: want a test key, got a live one: the smoke test pays with a test card, which live mode refuses"}
	}
	return nil
}

// answer bounds the wait for one answer of AWS or Stripe, in seconds that a person waits as well.
const answer = 15 * time.Second

// Run posts one order and follows it.
func (r run) Run(ctx context.Context) error { return r.run(ctx, os.Environ(), os.Stdout) }

func (r run) run(ctx context.Context, environ []string, out io.Writer) error {
	c, err := lambda.ReadEnv[config](environ)
	if err != nil {
		return err
	}
	if err := c.compareQueues(ctx, out); err != nil {
		return err
	}
	id := newID(time.Now())
	who := payer{Customer: r.Customer, Method: r.Method}
	if who == (payer{}) {
		if who, err = newTill(c).newPayer(ctx, c.Scope+"/smoke/"+id); err != nil {
			return err
		}
		fmt.Fprintf(out, "Made customer %s with payment method %s in Stripe's test mode\n", who.Customer, who.Method)
	}
	body, o, err := compose(id, who)
	if err != nil {
		return err
	}
	p := probe{
		send: c.send, load: dynamodb.New(c.AWS.Config(lambda.DynamoDB, client()), c.Table).Load,
		read:  stripe.New(stripe.Options{Key: c.Key.Reveal(), BaseURL: c.Address, Timeout: answer}).Read,
		scope: order.Scope(c.Scope), now: time.Now, every: 500 * time.Millisecond, out: out,
	}
	return p.follow(ctx, o, body, r.Limit)
}

func client() *http.Client { return &http.Client{Transport: lambda.Transport(1, answer)} }

// newID is an orderId that nobody has used, and that says what it is for.
func newID(now time.Time) string {
	return "SMOKE-" + now.UTC().Format("20060102-150405-") + strings.ToLower(rand.Text()[:6])
}

// compose writes the message and reads it as the function will.
func compose(id string, who payer) (string, order.Order, error) {
	body, err := json.Marshal(map[string]any{
		"orderId": id, "customerId": "smoke", "currency": "usd",
		"lines":   []map[string]any{{"sku": "SMOKE", "quantity": 1, "unitAmount": 100}},
		"payment": map[string]string{"customer": who.Customer, "method": who.Method},
	})
	if err != nil {
		return "", order.Order{}, err
	}
	o, err := sqs.NewDecoder().Decode(string(body))
	return string(body), o, err
}

// send posts one message. On a FIFO queue it is alone in its group.
func (c config) send(ctx context.Context, id order.ID, body string) error {
	in := &sdk.SendMessageInput{QueueUrl: aws.String(string(c.Queue)), MessageBody: &body}
	if strings.HasSuffix(string(c.Queue), ".fifo") {
		in.MessageGroupId, in.MessageDeduplicationId = aws.String(string(id)), aws.String(string(id))
	}
	if _, err := sdk.NewFromConfig(c.AWS.Config(lambda.SQS, client())).SendMessage(ctx, in); err != nil {
		return fmt.Errorf("post to %s: %w", c.Queue, err)
	}
	return nil
}
