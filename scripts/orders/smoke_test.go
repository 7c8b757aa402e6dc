package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/sqs"
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

// methods are payment methods of the double for every step.
const methods = pays + "," + declines + "," + asks

// TestSmoke runs each step against the local system, which runs the compiled functions.
func TestSmoke(t *testing.T) {
	t.Parallel()
	kit := systemtest.New(t)
	built := func(function string) string { return kit.Build(t, "functions/"+function) }
	const paid = "pay      ok   SMOKE-\nrow paid, pi_\n succeeded, 1.00 USD\nrepeat   ok   queue left, row unchanged, one charge\n" +
		"park     ok   message\nparked as conflict, times: 1\nredrive  ok   message\nparked as conflict, times: 2\n"
	for claim, tt := range map[string]struct {
		options system.Options
		want    string
	}{
		"everything is deployed, and stock is tracked": {system.Options{
			Webhook: built("webhook"), Intake: built("intake"), Publish: built("publish"), Receipt: built("receipt"),
			Stock: map[string]int64{"SMOKE": 0},
		}, paid + "decline  ok   SMOKE-\nrow canceled, pi_\ncancel   ok   SMOKE-\nrow canceled\nrefund   ok   SMOKE-\n0.40 USD back\n" +
			"webhook  ok   SMOKE-\nrow canceled\nhttp     ok   SMOKE-\nrow paid\nreceipt  ok   receipt \npublish  not run: not observable\n" +
			"removed  dead letter"},
		"FIFO queues": {system.Options{FIFO: true}, paid + "decline  ok   SMOKE-\nrow declined\ncancel   ok   SMOKE-\nrefund   ok   SMOKE-\n" +
			"webhook  not run: not deployed, WEBHOOK_URL is not set\nhttp     not run\nreceipt  not run\npublish  not run\nremoved  dead letter"},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s, _ := kit.Start(t, incidents.Unhurried(tt.options))
			ctx, cancel := s.UntilExit(t.Context())
			defer cancel()
			sh := testShell(s.OperatorEnv())
			sh.Now = time.Now
			printed, code := runs(ctx, t, sh, "smoke --customer cus_Smoke --method "+methods, "")
			if part := missingPart(printed, tt.want); part != "" || code != 0 {
				t.Errorf("got exit code %d (%v) and\n%s\nwant %q", code, context.Cause(ctx), printed, part)
			}
			for id := range strings.FieldsSeq(strings.Trim(regexp.MustCompile(`\[SMOKE.*]`).FindString(printed), "[]")) {
				r, err := s.Store.Load(ctx, order.ID(id))
				if err != nil || !r.Status.Charged() && r.Status != order.Canceled {
					t.Errorf("left %s %s, %v, want each order charged or canceled", id, r.Status, err)
				}
			}
			if dead, err := s.Dead(); len(dead)+s.Waiting() > 0 || err != nil {
				t.Errorf("left %d dead letters and %d messages, %v", len(dead), s.Waiting(), err)
			}
			if s.Stock != "" {
				if left, err := s.Store.Stock(ctx, "SMOKE"); left.Available+left.Reserved > 0 || err != nil {
					t.Errorf("left %+v, %v", left, err)
				}
			}
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

func TestAPayerIsCreatedUnderKeysOfItsOrderAndDeleted(t *testing.T) {
	t.Parallel()
	c, requests := serveStripe(t, http.StatusOK, map[string]string{
		"/v1/customers": `{"id":"cus_New"}`, "/v1/payment_methods/pm_card_visa/attach": `{"id":"pm_New"}`, "/v1/customers/cus_New": "{}",
	})
	c.ReceiptsTable = "receipts"
	who, got, err := cloud.NewPayers(c).Create(t.Context(), "dev/smoke/SMOKE-1", "pm_card_visa")
	if err != nil || who != "cus_New" || !slices.Equal(got, []string{"pm_New"}) {
		t.Errorf("payer %s %v, %v", who, got, err)
	}
	must(t, cloud.NewPayers(c).Delete(t.Context(), "dev/smoke/SMOKE-1/delete", who))
	want := []string{
		"POST /v1/customers description=dev%2Fsmoke%2FSMOKE-1 dev/smoke/SMOKE-1/customer",
		"POST /v1/payment_methods/pm_card_visa/attach customer=cus_New dev/smoke/SMOKE-1/pm_card_visa",
		"DELETE /v1/customers/cus_New  dev/smoke/SMOKE-1/delete",
	}
	want[0] = strings.Replace(want[0], "SMOKE-1 ", "SMOKE-1&email=success%40simulator.amazonses.com ", 1)
	if differs := diff.Diff(*requests, want); differs != "" {
		t.Errorf("- got, + want:\n%s", differs)
	}
	for status, want := range map[int]string{
		http.StatusForbidden: "create a customer at Stripe: status 403: No.; " +
			"name an existing payer with --customer and --method",
		http.StatusUnauthorized: "create a customer at Stripe: status 401: No.",
	} {
		refused := map[string]string{"/v1/customers": `{"error":{"type":"invalid_request_error","message":"No."}}`}
		c, requests := serveStripe(t, status, refused)
		_, _, err := cloud.NewPayers(c).Create(t.Context(), "dev/smoke/SMOKE-1")
		if err == nil || err.Error() != want || len(*requests) != 1 {
			t.Errorf("status %d: error = %v after %q, want %q", status, err, *requests, want)
		}
	}
}

// TestSmokeEndsBeforeItWaits runs smoke with a wrong environment, queue or payer.
func TestSmokeEndsBeforeItWaits(t *testing.T) {
	t.Parallel()
	const compared = "queues  orders are kept 168h0m0s and received 1000 times, dead letters are kept 336h0m0s\n"
	keeps := func(d time.Duration) func(orders, dead *sqstest.Settings) {
		return func(orders, _ *sqstest.Settings) { orders.Retention = d }
	}
	for claim, tt := range map[string]struct {
		flags   string
		queues  func(orders, dead *sqstest.Settings)
		environ string            // a change; QUEUE: is the URL up to a queue's name
		refuses string            // an operation of SQS
		payers  map[string]string // nil: any customer is created
		asked   int               // requests to Stripe
		want    string            // what is printed, in parts
	}{
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
		"SQS's default retention with QUEUE_RETENTION to match": {
			queues: keeps(4 * day), environ: "QUEUE_RETENTION=96h", payers: map[string]string{"/v1/customers": "{"},
			asked: 1, want: "queues  orders are kept 96h0m0s\ncreate a customer",
		},
		"a payer that cannot be created": {
			payers: map[string]string{"/v1/customers": "{"}, asked: 1, want: compared + "orders: error: create a customer at Stripe: ",
		},
		"a card that cannot be attached": {
			payers: map[string]string{"/v1/customers": `{"id":"cus_New"}`, "/v1/customers/cus_New": "{}"}, asked: 3,
			want: compared + "removed  customer cus_New\nattach pm_card_visa to customer cus_New",
		},
		"a step that is none": {flags: " --only pay,parks", want: `--only "parks": no such step`},
		"a payment method that is not valid in an order": {
			flags: " --customer cus_Me --method a/b", want: compared + "orders: error: smoke step pay: \npayment.method",
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
			sh := testShell(append(environment(environ...), "STRIPE_API_BASE="+string(c.StripeURL), change))
			printed, code := runs(t.Context(), t, sh, "smoke"+tt.flags, "")
			if part := missingPart(printed, tt.want); part != "" || code != 1 || strings.Contains(printed, "canary") {
				t.Errorf("got exit code %d and\n%s\nwant 1 and %q", code, printed, part)
			}
			if len(*asked) != tt.asked {
				t.Errorf("asked Stripe for %q, want %d requests", *asked, tt.asked)
			}
		})
	}
}

// TestEachFaultFailsItsStep plants what can be wrong with a deployment. The test
// processes orders in place of the function, and each message stays in its queue.
func TestEachFaultFailsItsStep(t *testing.T) {
	t.Parallel()
	wrong := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	t.Cleanup(wrong.Close)
	for fault, tt := range map[string]struct {
		step, environ, methods, want string
		stripe                       stripetest.Endpoint // that is down
		parks                        order.Reason        // once; else no message is parked
		never, stops, refused        bool
	}{
		"a declined card": {step: "pay", methods: declines, want: "got declined generic_decline, 1.00 USD, " +
			"intent requires_payment_method, want paid, 1.00 USD, intent succeeded: see orders show"},
		"no function":              {step: "pay", never: true, want: "gave up after 5s: no row yet: check the function's log"},
		"Stripe is down":           {step: "pay", stripe: stripetest.Create, want: "open, last error provider_unavailable: see docs"},
		"a queue that refuses":     {step: "pay", refused: true, want: "post to \nAccessDenied"},
		"Ctrl-C":                   {step: "pay", stops: true, want: "context canceled\nnot removed, or not closed: "},
		"a repetition that stays":  {step: "repeat", want: "its repetition may still be in the queue"},
		"a conflict that is lost":  {step: "park", want: "with another amount is not parked"},
		"another reason":           {step: "park", parks: order.ReasonRefused, want: "parked as refused, times: 1: want conflict"},
		"not parked again":         {step: "redrive", parks: order.ReasonConflict, want: "with another amount is not parked"},
		"a card that pays":         {step: "decline", methods: pays + "," + pays, want: "got paid , 1.00 USD, intent succeeded, want declined"},
		"a cancel that fails":      {step: "cancel", stripe: stripetest.Cancel, want: "cancel intent pi_\nnot removed, or not closed: cancel"},
		"no refunds":               {step: "refund", environ: "REFUND_QUEUE_URL=QUEUE", want: "refund operator-40: not settled after 5s"},
		"no events of Stripe":      {step: "webhook", environ: "WEBHOOK_URL=URL", want: "action_required\nsee the webhook function's log, and Stripe's deliveries to http"},
		"HTTP with another status": {step: "http", environ: "INTAKE_URL=URL", want: ": got 200 , want 202"},
		"no receipt":               {step: "receipt", environ: "RECEIPTS_TABLE=TABLE", want: "gave up after 5s: receipt "},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			d := deploy(t)
			receipts := d.create("receipts", dynamodbtest.ReceiptsDefinition)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var queue *sqstest.Server
			park := sync.OnceFunc(func() {
				m := messagesOf(t, queue, "orders")[1]
				sendDead(t, queue, sqstest.Draft{Body: m.Body, Attributes: map[string]sqstest.Attribute{
					sqs.AttrReason: sqstest.Text(string(tt.parks)), sqs.AttrFirstMessageID: sqstest.Text(m.ID),
				}})
			})
			environ, queue := serveQueues(t, sqstest.Options{Before: func(c sqstest.Call) {
				var in struct{ MessageBody string }
				must(t, json.Unmarshal(c.Request, &in))
				job, err := jobs.NewDecoder().Decode(in.MessageBody)
				switch sends := c.Operation == "SendMessage"; {
				case tt.stops && sends:
					stop()
				case tt.parks != "" && c.Operation == "ReceiveMessage":
					park()
				case sends && err == nil && !job.IsRefund() && !tt.never:
					d.deliver(job.Order, noon())
				}
			}}, nil)
			if tt.refused {
				queue.Fail("SendMessage", 1, "AccessDenied")
			}
			if tt.stripe != "" {
				d.stripe.Fail(stripetest.Fault{Kind: stripetest.Unavailable, On: tt.stripe, Times: -1})
			}
			change := strings.NewReplacer("=QUEUE", "="+queue.QueueURL("refunds"), "=URL", "="+wrong.URL, "=TABLE", "="+receipts).Replace(tt.environ)
			sh := testShell(append(append(d.environ, environ...), change, "REFUND_DEAD_LETTER_QUEUE_URL="+queue.QueueURL("dead")))
			line := "smoke --limit 5s --customer cus_Me --method " + cmp.Or(tt.methods, methods) + " --only " + tt.step
			printed, code := runs(ctx, t, sh, line, "")
			want := fmt.Sprintf("%-8s FAILED\nsmoke step %[1]s: \n%s", tt.step, tt.want)
			if part := missingPart(printed, want); part != "" || code != 1 || strings.Count(printed, "FAILED") != 1 {
				t.Errorf("got exit code %d and\n%s\nwant 1 and %q", code, printed, part)
			}
			for _, id := range regexp.MustCompile(`SMOKE-[0-9a-z-]+`).FindAllString(printed, -1) {
				if r, _ := d.store.Load(t.Context(), order.ID(id)); r.Status == order.Declined || r.Status == order.Open && tt.stripe == "" {
					t.Errorf("left %s %s", id, r.Status)
				}
			}
			if dead := messagesOf(t, queue, "dead"); len(dead) > 0 {
				t.Errorf("left %d dead letters", len(dead))
			}
		})
	}
}

func TestARowAndAChargeMustBeThoseOfTheOrder(t *testing.T) {
	t.Parallel()
	o := ordertest.Order("SMOKE-1")
	for claim, change := range map[string]func(*order.Record, *order.Intent){
		"":                                func(*order.Record, *order.Intent) {},
		"a row with a different amount":   func(r *order.Record, _ *order.Intent) { r.Total.Amount++ },
		"an intent that is not succeeded": func(_ *order.Record, i *order.Intent) { i.State = order.NeedsConfirmation },
		"an intent of a different scope":  func(_ *order.Record, i *order.Intent) { i.Scope = "other" },
	} {
		r := order.Record{OrderID: o.ID(), Status: order.Paid, Total: o.Total(), Intent: "pi_1"}
		i := order.Intent{ID: "pi_1", State: order.Succeeded, Total: o.Total(), OrderID: o.ID(), Scope: scope}
		change(&r, &i)
		if err := compare(scope, o, r, i, order.Paid); (err == nil) != (claim == "") {
			t.Errorf("%s: got error %v", claim, err)
		}
	}
}
