package main

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	striperefund "orderonce/adapters/stripe/refund"
	"orderonce/domain/order"
)

// answerTimeout bounds the wait for one answer of AWS or Stripe. A person waits for it.
const answerTimeout = 15 * time.Second

func httpClient() *http.Client {
	return &http.Client{Transport: config.NewTransport(1, answerTimeout)}
}

// queueConfig is the environment of `orders post`.
type queueConfig struct {
	Queue config.URL `env:"QUEUE_URL,notEmpty" want:"the URL of the order queue"`
}

// tableConfig is the environment of `orders list`. Commands that settle orders need Stock
// if the functions have it.
type tableConfig struct {
	Table string `env:"ORDERS_TABLE,notEmpty" want:"the name of the orders table"`
	Stock string `env:"STOCK_TABLE"           want:"the name of the stock table, or nothing"`
}

func (c tableConfig) store(cfg aws.Config) *dynamodb.Store {
	return dynamodb.New(cfg, c.Table).WithStock(c.Stock)
}

// showConfig is the environment of `orders show`.
type showConfig struct {
	Orders   tableConfig
	Receipts string `env:"RECEIPTS_TABLE" want:"the name of the receipts table, or nothing"`
}

// stockConfig is the environment of `orders stock`.
type stockConfig struct {
	Table  string `env:"STOCK_TABLE,notEmpty" want:"the name of the stock table"`
	Orders string `env:"ORDERS_TABLE"         want:"the name of the orders table"` // to count what orders hold
}

func (c tableConfig) refunds(cfg aws.Config) *dynamodb.Refunds {
	return dynamodb.NewRefunds(c.store(cfg))
}

// stripeConfig is the environment of the commands that read PaymentIntents.
type stripeConfig struct {
	Orders  tableConfig
	Scope   string        `env:"SCOPE,notEmpty"             want:"the deployment's scope"`
	Key     config.Secret `env:"STRIPE_SECRET_KEY,notEmpty"`
	Address config.URL    `env:"STRIPE_API_BASE"            want:"a URL, or nothing for Stripe itself"`
}

// Problems returns what one variable alone cannot show.
func (c stripeConfig) Problems() (all []string) {
	if _, err := order.NewScope(c.Scope); err != nil {
		all = append(all, "SCOPE: "+err.Error())
	}
	if err := stripe.CheckKey(c.Key.Reveal(), string(c.Address)); err != nil {
		all = append(all, "STRIPE_SECRET_KEY: "+err.Error())
	}
	return all
}

func (c stripeConfig) payments() *charge.Payments { return charge.New(c.options()) }

func (c stripeConfig) refunds() *striperefund.Refunds { return striperefund.New(c.options()) }

func (c stripeConfig) options() stripe.Options {
	return stripe.Options{
		Key: c.Key.Reveal(), Scope: order.Scope(c.Scope), BaseURL: string(c.Address), Timeout: answerTimeout,
		Transport: config.NewTransport(1, answerTimeout),
		Dedicated: config.NewTransport(1, answerTimeout), Now: time.Now,
	}
}

// deadLettersConfig is the environment of `orders dead-letters`.
type deadLettersConfig struct {
	Stripe      stripeConfig
	Queue       config.URL `env:"QUEUE_URL,notEmpty"             want:"the URL of the order queue"`
	DeadLetters config.URL `env:"DEAD_LETTER_QUEUE_URL,notEmpty" want:"the URL of the dead-letter queue"`
}

// Problems returns what one variable alone cannot show.
func (c deadLettersConfig) Problems() []string { return c.Stripe.Problems() }

// smokeConfig is the environment of `orders smoke`. DeadLetters and Retention are set
// where the function's differ from what infra/terraform deploys.
type smokeConfig struct {
	Stripe      stripeConfig
	Queue       config.URL    `env:"QUEUE_URL,notEmpty"    want:"the URL of the order queue"`
	DeadLetters config.URL    `env:"DEAD_LETTER_QUEUE_URL" want:"the URL of the dead-letter queue"`
	Retention   time.Duration `env:"QUEUE_RETENTION"       want:"a duration such as 168h"`
}

// Problems refuses every key but a test key, whatever the address.
func (c smokeConfig) Problems() []string {
	const name, rule = "STRIPE_SECRET_KEY: ", "want a test key, which starts with sk_test_ or rk_test_"
	key := c.Stripe.Key.Reveal()
	if !stripe.Live(key) && stripe.CheckKey(key, "") == nil {
		return c.Stripe.Problems()
	}
	all := slices.DeleteFunc(c.Stripe.Problems(), func(p string) bool { return strings.HasPrefix(p, name) })
	if stripe.CheckKey(key, "") != nil {
		return append(all, name+rule)
	}
	return append(all, name+rule+"; got a live one, which refuses the smoke test's card")
}
