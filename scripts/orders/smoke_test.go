package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/scripts/jobs"
	"orderonce/scripts/local/incidents"
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
			s, _ := kit.Start(t, incidents.Unhurried(system.Options{FIFO: fifo}))
			ctx, cancel := s.UntilExit(t.Context())
			defer cancel()
			sh := testShell(s.OperatorEnv())
			sh.Now = time.Now
			follows := func(line, want string) (printed string) {
				printed, code := runsUntil(ctx, t, sh, line, "")
				if part := missingPart(printed, want); part != "" || code != 0 {
					t.Errorf("orders %s: got exit code %d (%v), printed\n%s\nwant %q", line, code, context.Cause(ctx), printed, part)
				}
				return printed
			}
			printed := follows("smoke --customer cus_Smoke --method pm_card_visa",
				"charge  succeeded, 1.00 USD, pi_\nrefunded   0.40 USD\nleft       0.60 USD")
			rest := "refund " + regexp.MustCompile(`SMOKE-[0-9a-z-]+`).FindString(printed) + " --all --reason duplicate --yes"
			follows(rest, "refund     0.60 USD, operator-all, succeeded, re_")
			follows(rest, "nothing posted: refund operator-all was made before")
		})
	}
}

// serveStripe serves one response for each path, and records the requests.
func serveStripe(t *testing.T, status int, responses map[string]string) (c cloud.Env, requests *[]string) {
	t.Helper()
	requests = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form, _ := io.ReadAll(r.Body)
		key := r.Header.Get("Idempotency-Key")
		*requests = append(*requests, fmt.Sprintf("%s %s %s %s", r.Method, r.URL.Path, form, key))
		w.Header().Set("Stripe-Should-Retry", "false")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, responses[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	return cloud.Env{Key: config.NewSecret("sk_test_pretend"), StripeURL: config.URL(server.URL)}, requests
}

func TestAPayerIsCreatedUnderKeysOfItsOrder(t *testing.T) {
	t.Parallel()
	c, requests := serveStripe(t, http.StatusOK, map[string]string{
		"/v1/customers": `{"id":"cus_New"}`, "/v1/payment_methods/pm_card_visa/attach": `{"id":"pm_New"}`,
	})
	got, err := cloud.NewPayers(c).Create(t.Context(), "dev/smoke/SMOKE-1")
	if want := (order.Payment{Customer: "cus_New", Method: "pm_New"}); err != nil || got != want {
		t.Errorf("payer %v, %v, want %v", got, err, want)
	}
	want := []string{
		"POST /v1/customers description=dev%2Fsmoke%2FSMOKE-1 dev/smoke/SMOKE-1/customer",
		"POST /v1/payment_methods/pm_card_visa/attach customer=cus_New dev/smoke/SMOKE-1/method",
	}
	if diff := cmp.Diff(*requests, want); diff != "" {
		t.Errorf("- got, + want:\n%s", diff)
	}
	for status, want := range map[int]string{
		http.StatusForbidden: "create a customer at Stripe: status 403: No.; " +
			"name an existing payer with --customer and --method",
		http.StatusUnauthorized: "create a customer at Stripe: status 401: No.",
	} {
		refused := map[string]string{"/v1/customers": `{"error":{"type":"invalid_request_error","message":"No."}}`}
		c, requests := serveStripe(t, status, refused)
		_, err := cloud.NewPayers(c).Create(t.Context(), "dev/smoke/SMOKE-1")
		if err == nil || err.Error() != want || len(*requests) != 1 {
			t.Errorf("status %d: error = %v after %q, want %q", status, err, *requests, want)
		}
	}
}

// TestSmokeEndsBeforeItWaits runs smoke with a wrong environment, queue or payer.
func TestSmokeEndsBeforeItWaits(t *testing.T) {
	t.Parallel()
	const compared = "queues  orders are kept 168h0m0s and received 1000 times, dead letters are kept 336h0m0s\n"
	const created = "Created customer cus_New with payment method pm_New in Stripe's test mode\n"
	const payer = " --customer cus_Me --method pm_Mine"
	keeps := func(d time.Duration) func(orders, dead *sqstest.Settings) {
		return func(orders, _ *sqstest.Settings) { orders.Retention = d }
	}
	for claim, tt := range map[string]struct {
		flags   string
		queues  func(orders, dead *sqstest.Settings)
		environ string            // a change; QUEUE: is the URL up to a queue's name
		real    bool              // Stripe itself, and not the double
		refuses string            // an operation of SQS
		payers  map[string]string // nil: any customer is created
		asked   int               // requests to Stripe
		want    string            // what is printed, in parts
	}{
		"a live key":        {environ: "STRIPE_SECRET_KEY=sk_live_canary", real: true, want: "got a live one"},
		"a publishable key": {environ: "STRIPE_SECRET_KEY=pk_test_canary", want: "starts with sk_test_, "},
		"a refund queue without its dead-letter queue": {
			environ: "REFUND_QUEUE_URL=QUEUE:refunds", want: "REFUND_DEAD_LETTER_QUEUE_URL: want the URL",
		},
		"no such queue": {environ: "QUEUE_URL=QUEUE:none", want: "read the settings of queue \n/none: "},
		"no permission for the order queue": {
			refuses: "GetQueueAttributes", want: "/orders: operation error SQS: GetQueueAttributes\nlacks this permission",
		},
		"SQS's default retention": {
			queues: keeps(4 * day), want: "queues of orders misconfigured:\n  MessageRetentionPeriod of the queue is 96h0m0s, " +
				"want at least 168h0m0s",
		},
		"SQS's default retention with QUEUE_RETENTION to match, and a queue that refuses": {
			queues: keeps(4 * day), environ: "QUEUE_RETENTION=96h", flags: payer, refuses: "SendMessage",
			want: "queues  orders are kept 96h0m0s\npost to ",
		},
		"a payer that cannot be created": {
			payers: map[string]string{"/v1/customers": "{"}, asked: 1, want: compared + "orders: error: create a customer at Stripe: ",
		},
		"a queue that refuses the message, with a new payer": {
			refuses: "SendMessage", asked: 2, want: compared + created + "orders: error: post to ",
		},
		"a payment method that is not valid in an order": {
			flags: " --customer cus_Me --method a/b", want: compared + "orders: error: \npayment.method",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			if tt.payers == nil {
				tt.payers = map[string]string{
					"/v1/customers": `{"id":"cus_New"}`, "/v1/payment_methods/pm_card_visa/attach": `{"id":"pm_New"}`,
				}
			}
			c, asked := serveStripe(t, http.StatusOK, tt.payers)
			environ, queue := serveQueues(t, sqstest.Options{}, tt.queues)
			queue.Fail(tt.refuses, 1, "AccessDenied")
			change := strings.Replace(tt.environ, "=QUEUE:", "="+strings.TrimSuffix(queue.QueueURL("none"), "none"), 1)
			address := string(c.StripeURL)
			if tt.real {
				address = ""
			}
			sh := testShell(append(environment(environ...), "STRIPE_API_BASE="+address, change))
			printed, code := runs(t, sh, "smoke"+tt.flags, "")
			if part := missingPart(printed, tt.want); part != "" || code != 1 || strings.Contains(printed, "canary") {
				t.Errorf("got exit code %d and\n%s\nwant 1 and %q", code, printed, part)
			}
			if len(*asked) != tt.asked {
				t.Errorf("asked Stripe for %q, want %d requests", *asked, tt.asked)
			}
		})
	}
}

// The function works on the order while the command posts it. Each has a new id.
func TestSmokeSaysWhatBecameOfTheOrder(t *testing.T) {
	t.Parallel()
	d, stopped := deploy(t), false
	environ, _ := serveQueues(t, sqstest.Options{Before: func(c sqstest.Call) {
		if c.Operation != "SendMessage" || stopped {
			return
		}
		var in struct{ MessageBody string }
		must(t, json.Unmarshal(c.Request, &in))
		job, err := jobs.NewDecoder().Decode(in.MessageBody)
		must(t, err)
		process(t, d.store, d.payments, job.Order, noon())
	}}, nil)
	d.environ = append(d.environ, environ...)
	const smoke = "smoke --limit 1s --customer cus_Me --method "
	d.steps(
		step{
			line: smoke + pays, want: "Posted order SMOKE-\n  0.0 s  paid\nrow     paid, 1.00 USD, attempt 1, pi_\n" +
				"charge  succeeded, 1.00 USD, pi_\nnothing refunded: REFUND_QUEUE_URL is not set",
		},
		step{
			line: smoke + declines, code: 1,
			want: "row     declined, \ncharge  requires_payment_method, \nstatus declined, generic_decline: want paid",
		},
		step{
			line: smoke + pays, code: 1, claim: "an order that stays open",
			before: func() { d.stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: stripetest.Create}) },
			want: "  0.0 s  open, attempt 1\nnot settled after 0s: open, attempt 1, no intent bound, " +
				"last error provider_unavailable: see docs/reference/failures.md",
		},
		step{
			line: smoke + pays, code: 1, claim: "an order that is never processed", before: func() { stopped = true },
			want: "  0.0 s  no row yet\nnot settled after 0s: no row yet: check the function's log",
		},
	)
}

func TestARowAndAChargeMustBeThoseOfTheOrder(t *testing.T) {
	t.Parallel()
	o := ordertest.Order("SMOKE-1")
	for claim, change := range map[string]func(*order.Record, *order.Intent){
		"":                                 func(*order.Record, *order.Intent) {},
		"a row with a different amount":    func(r *order.Record, _ *order.Intent) { r.Total.Amount++ },
		"a charge of a different amount":   func(_ *order.Record, i *order.Intent) { i.Total.Amount++ },
		"a charge in a different currency": func(_ *order.Record, i *order.Intent) { i.Total.Currency = "jpy" },
		"an intent that is not succeeded":  func(_ *order.Record, i *order.Intent) { i.State = order.NeedsConfirmation },
		"an intent of a different order":   func(_ *order.Record, i *order.Intent) { i.OrderID = "SMOKE-2" },
		"an intent of a different scope":   func(_ *order.Record, i *order.Intent) { i.Scope = "other" },
	} {
		r := order.Record{OrderID: o.ID(), Status: order.Paid, Total: o.Total(), Intent: "pi_1"}
		i := order.Intent{ID: "pi_1", State: order.Succeeded, Total: o.Total(), OrderID: o.ID(), Scope: scope}
		change(&r, &i)
		if err := compare(scope, o, r, i); (err == nil) != (claim == "") {
			t.Errorf("%s: got error %v", claim, err)
		}
	}
}
