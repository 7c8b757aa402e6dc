package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"orderonce/adapters/lambda"
	"orderonce/adapters/sqs"
	"orderonce/adapters/stripe"
	"orderonce/domain/order"
)

// config is the function's whole environment; docs/reference/configuration.md explains each name.
type config struct {
	AWS lambda.AWS

	Table         string  `env:"ORDERS_TABLE,notEmpty"          want:"the name of the orders table"`
	Queue         address `env:"QUEUE_URL,notEmpty"             want:"the URL of the order queue"`
	DeadLetters   address `env:"DEAD_LETTER_QUEUE_URL,notEmpty" want:"the URL of the dead-letter queue"`
	Scope         scope   `env:"SCOPE,notEmpty"                 want:"1 to 32 lower-case letters, digits or '-', the first a letter"`
	StripeSecret  string  `env:"STRIPE_SECRET_ARN"`
	StripeKey     key     `env:"STRIPE_SECRET_KEY"              want:"a key that starts with sk_ or rk_"`
	StripeAddress address `env:"STRIPE_API_BASE"                want:"a URL, or nothing for Stripe itself"`

	StripeTimeout time.Duration `env:"STRIPE_TIMEOUT"  envDefault:"8s"`
	OrderBudget   time.Duration `env:"ORDER_BUDGET"    envDefault:"10s"`
	AnswerTime    time.Duration `env:"ANSWER_TIME"     envDefault:"1s"`
	FirstDelay    time.Duration `env:"FIRST_DELAY"     envDefault:"5s"`
	Retention     time.Duration `env:"QUEUE_RETENTION" envDefault:"168h"`
	Parallel      int           `env:"PARALLEL_ORDERS" envDefault:"10"`
}

// Problems are what one variable alone cannot show.
func (c config) Problems() []string {
	var all []string
	check := func(ok bool, problem string) {
		if !ok {
			all = append(all, problem)
		}
	}
	check((c.StripeSecret == "") != c.StripeKey.empty(), "STRIPE_SECRET_ARN, STRIPE_SECRET_KEY: want exactly one of them")
	check(c.StripeAddress == "" || !c.StripeKey.live(), "STRIPE_API_BASE: want nothing with a live key: it goes to Stripe and nobody else")
	check(c.Parallel >= 1, "PARALLEL_ORDERS: want at least 1")
	check(c.StripeTimeout > 0 && c.StripeTimeout < c.OrderBudget, "STRIPE_TIMEOUT: want more than 0 and less than ORDER_BUDGET")
	check(c.AnswerTime > 0, "ANSWER_TIME: want more than 0")
	check(c.FirstDelay > 0, "FIRST_DELAY: want more than 0")
	check(c.Retention > 24*time.Hour, "QUEUE_RETENTION: want more than 24h, because orders are parked a day before it ends")
	return all
}

// address is the URL of a service.
type address string

func (a *address) UnmarshalText(text []byte) error {
	u, err := url.Parse(string(text))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("%q is no http or https URL", text)
	}
	*a = address(text)
	return nil
}

// policy is how patient the queue is.
func (c config) policy() sqs.Policy {
	p := sqs.DefaultPolicy()
	p.FirstDelay, p.Retention = c.FirstDelay, c.Retention
	return p
}

// stripe is how Stripe is called.
func (c config) stripe(key string, transport http.RoundTripper) stripe.Options {
	return stripe.Options{
		Key: key, Scope: c.Scope.order(), BaseURL: string(c.StripeAddress), Timeout: c.StripeTimeout, Transport: transport,
	}
}

type scope order.Scope

func (s scope) order() order.Scope { return order.Scope(s) }

func (s *scope) UnmarshalText(text []byte) error {
	parsed, err := order.NewScope(string(text))
	*s = scope(parsed)
	return err
}

// key is a Stripe secret or restricted key.
type key struct{ lambda.Secret }

var errNotAKey = errors.New("want a key that starts with sk_ or rk_")

func (k key) live() bool { return strings.Contains(k.Reveal(), "_live_") }

func (k key) empty() bool { return k.Reveal() == "" }

func (k *key) UnmarshalText(text []byte) error {
	if s := string(text); s != "" && !strings.HasPrefix(s, "sk_") && !strings.HasPrefix(s, "rk_") {
		return errNotAKey
	}
	return k.Secret.UnmarshalText(text)
}
