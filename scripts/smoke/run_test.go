package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
)

// TestRun posts to the local system: the compiled function, a queue, an engine and a pretend Stripe.
func TestRun(t *testing.T) {
	t.Parallel()
	engine, err := dynamodbtest.Find(os.Getenv, ".")
	if errors.Is(err, dynamodbtest.ErrNoEngine) && os.Getenv("ORDERONCE_REQUIRE_ENGINE") != "1" && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "bootstrap")
	if err := lambdatest.Build(t.Context(), "orderonce/functions/order", binary); err != nil {
		t.Fatal(err)
	}
	for claim, fifo := range map[string]bool{"an order is paid": false, "an order is paid through FIFO queues": true} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s, err := system.Start(t.Context(), system.Options{Engine: engine, Binary: binary, FIFO: fifo})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			var out strings.Builder
			r := run{Customer: "cus_Smoke", Method: "pm_card_visa", Limit: time.Minute}
			if err := r.run(t.Context(), s.OperatorEnv(), &out); err != nil {
				t.Errorf("%v, printed\n%s", err, out.String())
			}
			if !strings.Contains(out.String(), "charge  succeeded, 1.00 USD, pi_") {
				t.Errorf("printed\n%s", out.String())
			}
		})
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	complete := []string{
		"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=canary",
		"ORDERS_TABLE=orders", "QUEUE_URL=https://sqs.example/1/orders", "SCOPE=test",
	}
	for key, want := range map[string]string{
		"sk_test_canary": "", "rk_test_canary": "",
		"sk_live_canary": "got a live one", "rk_live_canary": "got a live one",
		"pk_test_canary": "starts with sk_test_ or rk_test_",
		"":               "STRIPE_SECRET_KEY: want a Stripe test key, got empty",
	} {
		t.Run("a key such as "+key, func(t *testing.T) {
			t.Parallel()
			_, err := lambda.ReadEnv[config](append(slices.Clone(complete), "STRIPE_SECRET_KEY="+key))
			if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary")) {
				t.Errorf("error = %v, want %q", err, want)
			}
		})
	}
}

func TestEveryOrderIsNew(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	one, other := newID(at), newID(at)
	if one == other || !regexp.MustCompile(`^SMOKE-20260102-030405-[a-z2-7]{6}$`).MatchString(one) {
		t.Errorf("ids %q and %q", one, other)
	}
	if _, o, err := compose(one, payer{"cus_1", "pm_1"}); err != nil || o.Total() != (order.Money{Amount: 100, Currency: "usd"}) {
		t.Errorf("order %v of %s, %v", o.ID(), o.Total(), err)
	}
}
