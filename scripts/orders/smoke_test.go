package main

import (
	"cmp"
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
	"orderonce/scripts/orders/cloud"
)

// TestSmoke posts to the local system, which runs the compiled function.
func TestSmoke(t *testing.T) {
	t.Parallel()
	kit := systemtest.New(t)
	for claim, fifo := range map[string]bool{"an order is paid": false, "an order is paid through FIFO queues": true} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s, _ := kit.Start(t, system.Options{FIFO: fifo})
			var out strings.Builder
			r := smoke{Customer: "cus_Smoke", Method: "pm_card_visa", Limit: time.Minute}
			ctx, cancel := s.Function.UntilExit(t.Context())
			defer cancel()
			sh := testShell(s.OperatorEnv(), "", &out)
			sh.Now = time.Now
			if err := r.Run(ctx, sh); err != nil {
				t.Errorf("%v (%v), printed\n%s", err, context.Cause(ctx), out.String())
			}
			for _, want := range []string{"charge  succeeded, 1.00 USD, pi_", "refunded   0.40 USD\nleft       0.60 USD\n"} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("printed\n%s\nwant %q in it", out.String(), want)
				}
			}
		})
	}
}

func TestSmokeConfig(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"STRIPE_SECRET_KEY=sk_test_canary":   "",
		"STRIPE_SECRET_KEY=rk_test_canary\n": "",
		"STRIPE_SECRET_KEY=sk_live_canary":   "got a live one",
		"STRIPE_SECRET_KEY=rk_live_canary":   "got a live one",
		"STRIPE_SECRET_KEY=\nsk_live_canary": "got a live one",
		"STRIPE_SECRET_KEY=pk_test_canary":   "starts with sk_test_ or rk_test_",
		"STRIPE_SECRET_KEY=sk_canary":        "starts with sk_test_ or rk_test_",
		"STRIPE_SECRET_KEY=":                 "STRIPE_SECRET_KEY: want a secret, got empty",
		"QUEUE_URL=orders":                   `QUEUE_URL: want the URL of the order queue, got "orders"`,
	} {
		t.Run("with "+change, func(t *testing.T) {
			t.Parallel()
			_, err := config.Read[cloud.SmokeEnv](environment("STRIPE_API_BASE=https://stripe.example", change))
			if (err == nil) != (want == "") ||
				err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary")) {
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
	if _, o, err := compose(one, cloud.Payer{Customer: "cus_1", Method: "pm_1"}); err != nil ||
		o.Total() != (order.Money{Amount: 100, Currency: "usd"}) {
		t.Errorf("order %v of %s, %v", o.ID(), o.Total(), err)
	}
}

// TestSmokeEndsBeforeItWaits runs smoke with a wrong environment, queue or payer.
func TestSmokeEndsBeforeItWaits(t *testing.T) {
	t.Parallel()
	const compared = "queues  orders are kept 168h0m0s and received 1000 times, dead letters are kept 336h0m0s\n"
	payers := map[string]string{
		"/v1/customers": `{"id":"cus_New"}`,
		"/v1/payment_methods/pm_card_visa/attach": `{"id":"pm_New"}`,
	}
	for claim, tt := range map[string]struct {
		run     smoke
		change  string // of the environment
		keeps   time.Duration
		refuses string // an operation of SQS
		payers  map[string]string
		asked   int // requests to Stripe
		printed string
		err     string
	}{
		"a live key, which is not shown": {change: "STRIPE_SECRET_KEY=sk_live_canary", err: "got a live one"},
		"a queue that does not exist": {
			change: "QUEUE_URL=http://127.0.0.1:1/none", err: "read the settings of queue http://127.0.0.1:1/none: ",
		},
		"queues that would lose orders": {keeps: 4 * day, err: "MessageRetentionPeriod of the order queue is 96h0m0s"},
		"a payer that cannot be created": {
			payers: map[string]string{"/v1/customers": "{"}, asked: 1, printed: compared, err: "create a customer at Stripe: ",
		},
		"a queue that refuses the message, with a new payer": {
			refuses: "SendMessage", asked: 2,
			printed: compared + "Created customer cus_New with payment method pm_New in Stripe's test mode\n", err: "post to ",
		},
		"a queue that refuses the message, with an existing payer": {
			run: smoke{Customer: "cus_Me", Method: "pm_Mine"}, refuses: "SendMessage", printed: compared, err: "post to ",
		},
		"a payment method that is not valid in an order": {
			run: smoke{Customer: "cus_Me", Method: "no method"}, printed: compared, err: "payment.method",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			if tt.payers == nil {
				tt.payers = payers
			}
			c, asked := serveStripe(t, http.StatusOK, tt.payers)
			_, queue := serveQueues(t, func(orders, _ *sqstest.Settings) {
				orders.Retention = cmp.Or(tt.keeps, orders.Retention)
			})
			queue.Fail(tt.refuses, 1, "AccessDenied")
			environ := environment("AWS_ENDPOINT_URL="+queue.URL, "QUEUE_URL="+queue.QueueURL("orders"),
				"STRIPE_API_BASE="+string(c.Address), tt.change)
			var out strings.Builder
			err := tt.run.Run(t.Context(), testShell(environ, "", &out))
			if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(cloud.Hint(err).Error(), "canary") {
				t.Errorf("error = %v, want %q", err, tt.err)
			}
			if out.String() != tt.printed || len(*asked) != tt.asked {
				t.Errorf("printed %q after %q, want %q after %d requests", &out, *asked, tt.printed, tt.asked)
			}
		})
	}
}
