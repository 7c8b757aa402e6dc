package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/sqs"
	"orderonce/functions/internal/consumer"
	"orderonce/functions/internal/provider"
	"orderonce/functions/internal/setup"
)

// complete returns a valid environment with changes.
func complete(changes ...string) []string {
	environ := []string{
		"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=canary", "RECEIPTS_TABLE=receipts",
		"QUEUE_URL=https://sqs.example/1/receipts", "DEAD_LETTER_QUEUE_URL=https://sqs.example/1/dead",
		"SCOPE=test", "STRIPE_SECRET_KEY=sk_test_canary",
		"RECEIPT_FROM=Shop <receipts@shop.invalid>", "RECEIPT_CONFIGURATION_SET=receipts",
	}
	return append(environ, changes...) // the last of two values counts
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c, err := config.Read[environment](complete())
	must(t, err)
	c.AWS, c.Stripe.Key = config.AWS{}, config.Secret{}
	want := environment{
		Environment: setup.Environment{Scope: "test"}, Table: "receipts", Queue: consumer.Queue{
			URL: "https://sqs.example/1/receipts", DeadLetters: "https://sqs.example/1/dead", AnswerTime: 3 * time.Second,
			FirstDelay: 5 * time.Second, Retention: 7 * 24 * time.Hour, Parallel: 10,
		},
		Stripe: provider.Stripe{Timeout: 8 * time.Second}, From: "Shop <receipts@shop.invalid>", ConfigurationSet: "receipts",
		Promise: atMostOnce, SESTimeout: 5 * time.Second, Budget: 20 * time.Second,
	}
	if diff := cmp.Diff(c, want, cmp.AllowUnexported(config.Secret{})); diff != "" {
		t.Errorf("environment: got -, want +\n%s", diff)
	}
	if diff := cmp.Diff(c.Queue.Policy(), sqs.DefaultPolicy()); diff != "" {
		t.Errorf("policy: got -, want +\n%s", diff)
	}
	if got, want := c.sendTime(), 10*time.Second; got != want { // SES, a write, the response to the queue
		t.Errorf("time to send: got %v, want %v", got, want)
	}
}

func TestInvalidEnvironments(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"RECEIPTS=exactly_once": "RECEIPTS: want at_most_once or at_least_once",
		"SES_TIMEOUT=12s":       "ORDER_BUDGET: want more than the time-outs of its calls, 20s together, or nothing would be sent",
		"SES_TIMEOUT=0s":        "SES_TIMEOUT: want more than 0",
		"SES_TIMEOUT=1ns":       "",
		"PARALLEL_ORDERS=0":     "PARALLEL_ORDERS: want at least 1", // as every function of a queue
		"STRIPE_SECRET_KEY=":    "STRIPE_SECRET_ARN, STRIPE_SECRET_KEY: want exactly one of them",
		"RECEIPT_FROM=":         `RECEIPT_FROM: want the sender, such as "Shop <receipts@shop.example>", got empty`,
	} {
		_, err := config.Read[environment](complete(change))
		if want == "" && err == nil {
			continue
		}
		got, ok := errors.AsType[*config.Error](err)
		if !ok || !slices.Equal(got.Problems, []string{want}) {
			t.Errorf("%s: got %v, want %q", change, err, want)
		}
		if strings.Contains(fmt.Sprint(err), "canary") {
			t.Errorf("%s: the error shows a secret: %v", change, err)
		}
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
