package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/sqs"
	"orderonce/functions/internal/consumer"
	"orderonce/functions/internal/functiontest"
	"orderonce/functions/internal/provider"
	"orderonce/functions/internal/setup"
)

const secretARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stripe-AbCdEf"

func TestDefaults(t *testing.T) {
	c, err := config.Read[environment](functiontest.Environ(""))
	functiontest.Must(t, err)
	c.AWS, c.Stripe.Key = config.AWS{}, config.Secret{}
	want := environment{
		Environment: setup.Environment{Scope: "test"}, Table: "orders", Queue: consumer.Queue{
			URL: "https://sqs.example/1/live", DeadLetters: "https://sqs.example/1/dead", AnswerTime: 3 * time.Second,
			FirstDelay: 5 * time.Second, Retention: 7 * 24 * time.Hour, Parallel: 10,
		},
		Stripe: provider.Stripe{Timeout: 8 * time.Second}, Budget: 10 * time.Second,
	}
	if diff := cmp.Diff(c, want, cmp.AllowUnexported(config.Secret{})); diff != "" {
		t.Errorf("environment: got -, want +\n%s", diff)
	}
	if diff := cmp.Diff(c.Queue.Policy(), sqs.DefaultPolicy()); diff != "" {
		t.Errorf("policy: got -, want +\n%s", diff)
	}
}

func TestEnvironments(t *testing.T) {
	const (
		scope     = `SCOPE: want 1 to 32 lower-case letters, digits or '-', the first a letter, got "Prod EU"`
		oneKey    = "STRIPE_SECRET_ARN, STRIPE_SECRET_KEY: want exactly one of them"
		noKey     = "STRIPE_SECRET_KEY: want a key that starts with sk_test_, sk_live_, rk_test_ or rk_live_"
		live      = "STRIPE_SECRET_KEY: live key with another base URL: a live key may be sent to Stripe only"
		notARN    = "STRIPE_SECRET_ARN: want the ARN of a secret, got [redacted]"
		notURL    = `STRIPE_API_BASE: want a URL, or nothing for Stripe itself, got "localhost"`
		parks     = "QUEUE_RETENTION: want more than 24h, because messages are parked a day before it ends"
		oneKind   = "QUEUE_URL, DEAD_LETTER_QUEUE_URL: want two FIFO queues or two standard queues"
		twoQueues = "QUEUE_URL, DEAD_LETTER_QUEUE_URL: want two queues, or parked messages would be received again"
		delay     = "FIRST_DELAY: want more than 0 and at most 15m0s"
		budget    = "ORDER_BUDGET: want more than the time-outs of its calls, "
		lease     = "ORDER_BUDGET, ANSWER_TIME: want less than 15m0s together, or nothing would begin"
	)
	for claim, tt := range map[string]struct{ change, want string }{
		"a key and a secret":                       {"STRIPE_SECRET_ARN=" + secretARN, oneKey},
		"neither a key nor a secret":               {"STRIPE_SECRET_KEY=", oneKey},
		"another scope":                            {"SCOPE=Prod EU", scope},
		"a publishable key":                        {"STRIPE_SECRET_KEY=pk_test_canary", noKey},
		"a secret live key for a base URL":         {"STRIPE_SECRET_KEY=sk_live_canary\nSTRIPE_API_BASE=http://127.0.0.1:1", live},
		"a restricted live key for a base URL":     {"STRIPE_SECRET_KEY=rk_live_canary\nSTRIPE_API_BASE=http://127.0.0.1:1", live},
		"a base URL without a scheme":              {"STRIPE_API_BASE=localhost", notURL},
		"a key instead of an ARN is not shown":     {"STRIPE_SECRET_KEY=\nSTRIPE_SECRET_ARN=sk_live_canary", notARN},
		"the order queue as dead-letter queue":     {"DEAD_LETTER_QUEUE_URL=https://sqs.example/1/live", twoQueues},
		"a FIFO queue with standard dead letters":  {"QUEUE_URL=https://sqs.example/1/orders.fifo", oneKind},
		"a standard queue with FIFO dead letters":  {"DEAD_LETTER_QUEUE_URL=https://sqs.example/1/dead.fifo", oneKind},
		"a Stripe time-out of the order's budget":  {"STRIPE_TIMEOUT=10s", budget + "10s together, or nothing would be sent"},
		"an order budget of Stripe's time-out":     {"ORDER_BUDGET=8s", budget + "8s together, or nothing would be sent"},
		"no time for Stripe":                       {"STRIPE_TIMEOUT=0s", "STRIPE_TIMEOUT: want more than 0"},
		"no time to answer the queue":              {"ANSWER_TIME=0s", "ANSWER_TIME: want more than 0"},
		"an order budget as long as a lease":       {"ORDER_BUDGET=15m", lease},
		"budget and answer as long as a lease":     {"ORDER_BUDGET=14m\nANSWER_TIME=1m", lease},
		"a first delay of zero":                    {"FIRST_DELAY=0s", delay},
		"a first delay above the longest":          {"FIRST_DELAY=15m1s", delay},
		"no order at a time":                       {"PARALLEL_ORDERS=0", "PARALLEL_ORDERS: want at least 1"},
		"a retention of a day leaves none to park": {"QUEUE_RETENTION=24h", parks},

		"two FIFO queues": {
			"QUEUE_URL=https://sqs.example/orders.fifo\nDEAD_LETTER_QUEUE_URL=https://sqs.example/dead.fifo", "",
		},
		"one order at a time":                  {"PARALLEL_ORDERS=1", ""},
		"a live key for Stripe":                {"STRIPE_SECRET_KEY=rk_live_canary", ""},
		"a secret instead of a key":            {"STRIPE_SECRET_KEY=\nSTRIPE_SECRET_ARN=" + secretARN, ""},
		"a first delay as long as the longest": {"FIRST_DELAY=15m", ""},
		"the short times of the local system":  {"STRIPE_TIMEOUT=600ms\nORDER_BUDGET=800ms\nANSWER_TIME=200ms\nFIRST_DELAY=1s", ""},
	} {
		_, err := config.Read[environment](functiontest.Environ("", strings.Split(tt.change, "\n")...))
		if tt.want == "" && err != nil || tt.want != "" && fmt.Sprint(err) != "invalid environment:\n  "+tt.want {
			t.Errorf("%s: got %v, want %q", claim, err, tt.want)
		}
	}
}
