package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda"
)

// complete is an environment that is right, with one change.
func complete(change ...string) []string {
	environ := []string{
		"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=canary",
		"ORDERS_TABLE=orders", "QUEUE_URL=https://sqs.example/1/orders", "DEAD_LETTER_QUEUE_URL=https://sqs.example/1/dead",
		"SCOPE=test", "STRIPE_SECRET_KEY=sk_test_canary",
	}
	return append(environ, change...) // the last of two wins
}

func TestConfig(t *testing.T) {
	t.Parallel()
	t.Run("a complete environment is enough", func(t *testing.T) {
		t.Parallel()
		c, err := lambda.ReadEnv[config](complete())
		if err != nil {
			t.Fatal(err)
		}
		if p := c.policy(); p.FirstDelay != 5*time.Second || p.MaxDeliveries != 20 || p.Retention != 7*24*time.Hour {
			t.Errorf("policy %+v", p)
		}
	})
	t.Run("every missing and wrong name is reported at once, and no secret", func(t *testing.T) {
		t.Parallel()
		_, err := lambda.ReadEnv[config]([]string{
			"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=canary",
			"QUEUE_URL=orders", "SCOPE=Prod EU", "STRIPE_SECRET_KEY=canary", "STRIPE_TIMEOUT=fast", "PARALLEL_ORDERS=0",
		})
		want := &lambda.EnvError{Problems: []string{
			"ORDERS_TABLE: want the name of the orders table, got missing",
			`QUEUE_URL: want the URL of the order queue, got "orders"`,
			"DEAD_LETTER_QUEUE_URL: want the URL of the dead-letter queue, got missing",
			`SCOPE: want 1 to 32 lower-case letters, digits or '-', the first a letter, got "Prod EU"`,
			"STRIPE_SECRET_KEY: want a key that starts with sk_ or rk_, got [redacted]",
			`STRIPE_TIMEOUT: want a duration such as "30s", got "fast"`,
			"PARALLEL_ORDERS: want at least 1",
		}}
		var got *lambda.EnvError
		if !errors.As(err, &got) {
			t.Fatalf("got %v, want an EnvError", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("the error holds a secret: %v", err)
		}
	})
	for name, tc := range map[string]struct{ change, want string }{
		"two keys are one too many": {
			"STRIPE_SECRET_ARN=arn:aws:secretsmanager:x",
			"STRIPE_SECRET_ARN, STRIPE_SECRET_KEY: want exactly one of them",
		},
		"no key is one too few": {"STRIPE_SECRET_KEY=", "STRIPE_SECRET_ARN, STRIPE_SECRET_KEY: want exactly one of them"},
		"a live key goes to Stripe and nobody else": {
			"STRIPE_SECRET_KEY=rk_live_canary\nSTRIPE_API_BASE=http://127.0.0.1:1",
			"STRIPE_API_BASE: want nothing with a live key: it goes to Stripe and nobody else",
		},
		"Stripe must answer within an order's budget": {"STRIPE_TIMEOUT=10s", "STRIPE_TIMEOUT: want more than 0 and less than ORDER_BUDGET"},
		"an order must be parked before it is lost": {
			"QUEUE_RETENTION=24h",
			"QUEUE_RETENTION: want more than 24h, because orders are parked a day before it ends",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := lambda.ReadEnv[config](complete(strings.Split(tc.change, "\n")...))
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestWire(t *testing.T) {
	t.Parallel()
	t.Run("a function is wired from its environment alone", func(t *testing.T) {
		t.Parallel()
		h, err := wire(t.Context(), complete())
		if err != nil || h.Process == nil {
			t.Fatalf("got %v, %v", h, err)
		}
	})
	t.Run("two owners are never the same", func(t *testing.T) {
		t.Parallel()
		a, b := newOwner(), newOwner()
		if a == b || len(a) != 32 {
			t.Errorf("owners %q and %q, want two of 32 hexadecimal digits", a, b)
		}
	})
}
