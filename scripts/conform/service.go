package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/orders/cloud"
)

type service struct {
	name   string
	title  string
	rules  func() []Rule
	double func(ctx context.Context) (World, error) // a fresh one for each rule
	stripe bool                                     // else it is one of AWS
	stack  bool                                     // its rules need what a stack has
	atOnce int                                      // rules that are checked at once; 0: one
	calls  int64                                    // of a run, about
	price  float64                                  // dollars of a million calls, at most
	source string                                   // of the price, with its date
}

func (s service) cost(calls int64) string {
	if s.price == 0 {
		return "no cost"
	}
	return fmt.Sprintf("%.4f USD at most", s.price*float64(calls)/1e6)
}

func services() []service {
	return []service{
		{
			name: "stripe", title: "Stripe", rules: stripeRules, double: doubleStripe, stripe: true, calls: 160, atOnce: 6,
			source: "calls in test mode cost nothing",
		},
		{
			name: "sqs", title: "SQS", rules: sqsRules, double: doubleSQS, calls: 300, atOnce: 6, price: 0.50,
			source: "aws.amazon.com/sqs/pricing: FIFO",
		},
		{
			name: "lambda", title: "Lambda, from SQS", rules: lambdaRules, double: doubleFunction, stack: true,
			calls: 400, atOnce: 5, price: 1.10,
			source: "aws.amazon.com/sqs/pricing and aws.amazon.com/lambda/pricing",
		},
		{
			name: "dynamodb", title: "DynamoDB", rules: dynamoRules, double: doubleDynamo, calls: 700, atOnce: 4, price: 3,
			source: "aws.amazon.com/dynamodb/pricing: write units on demand, a call takes less than five",
		},
		{
			name: "eventbridge", title: "EventBridge", rules: eventRules, double: doubleBus, calls: 10, price: 20,
			source: "aws.amazon.com/eventbridge/pricing: a call has less than twenty times 64 KB",
		},
		{
			name: "ses", title: "SES", rules: mailRules, double: doubleMail, calls: 12, price: 100,
			source: "aws.amazon.com/ses/pricing",
		},
		{
			name: "apigateway", title: "API Gateway", rules: apiRules, double: doubleAPI, stack: true, calls: 10, price: 21,
			source: "aws.amazon.com/api-gateway/pricing: at most 10 MB a call, in units of 512 KB",
		},
	}
}

// The --endpoint of the doubles and of the real service.
const (
	double = "double"
	live   = "live"
)

type target struct {
	endpoint string // double, live, or the URL of an emulator
	account  cloud.Account
	key      string // STRIPE_SECRET_KEY
	identity string // World.Identity
	stack    *stack // nil: none, also at an emulator
	meter    *meter
	prefix   string
}

// newTarget returns a target with a name of its own for everything that it makes.
func newTarget(endpoint string, account cloud.Account, key string, limit int64) target {
	return target{
		endpoint: endpoint, account: account, key: key,
		meter: &meter{base: http.DefaultTransport, limit: limit}, prefix: prefix + strings.ToLower(rand.Text()[:8]) + "-",
	}
}

// prefix begins the name of everything that a run makes.
const prefix = "orderonce-conform-"

var (
	errLiveKey = errors.New("STRIPE_SECRET_KEY: want a test key, which starts with sk_test_ or rk_test_; " +
		"a live key would move money")
	errNoKey = errors.New("STRIPE_SECRET_KEY is not set: want a test key, from dashboard.stripe.com/test/apikeys")
)

func (t target) name() string {
	if _, host, isURL := strings.Cut(t.endpoint, "://"); isURL {
		return strings.NewReplacer(":", "-", "/", "-").Replace(host)
	}
	return t.endpoint
}

func (t target) world(ctx context.Context, s service, id string) (w World, err error) {
	_, name, _ := strings.Cut(id, "/")
	switch {
	case t.endpoint == double:
		w, err = s.double(ctx)
	case s.stripe:
		w, err = t.atStripe()
	default:
		if t.endpoint != live {
			t.account.EndpointURL = t.endpoint
		}
		if w.Identity = t.identity; t.stack != nil {
			w.Lambda, w.API = t.stack, t.stack.output["api"]
		}
		w.Config, err = t.account.Load(ctx)
	}
	if err != nil {
		return w, err
	}
	w.HTTP = &http.Client{Transport: t.meter, Timeout: time.Minute}
	w.Config = awsConfig(w.Config, w.HTTP)
	w.Prefix = t.prefix + name + "-"
	return w, nil
}

func (t target) atStripe() (w World, err error) {
	switch {
	case t.endpoint != live:
		return World{URL: t.endpoint, Key: "sk_test_pretend"}, nil
	case t.key == "":
		err = errNoKey
	case stripe.Live(t.key):
		err = errLiveKey
	}
	return World{URL: "https://api.stripe.com", Key: t.key}, err
}

// start is the time of a double when a check begins.
func start() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func doubleSQS(context.Context) (World, error) {
	c := newClock(start())
	s, err := sqstest.Serve(sqstest.Options{Now: c.Now})
	if err != nil {
		return World{}, fmt.Errorf("start the double: %w", err)
	}
	w := World{URL: s.URL, Double: s, clock: c, moved: s.Wake, close: s.Close}
	w.Config = aws.Config{Region: sqstest.Region, BaseEndpoint: &s.URL, Credentials: aws.AnonymousCredentials{}}
	return w, nil
}

func doubleStripe(context.Context) (World, error) {
	c := newClock(start())
	s, err := stripetest.Serve(stripetest.Options{Now: c.Now})
	if err != nil {
		return World{}, fmt.Errorf("start the double: %w", err)
	}
	return World{URL: s.URL, Key: "sk_test_pretend", Double: s, clock: c, close: s.Close}, nil
}
