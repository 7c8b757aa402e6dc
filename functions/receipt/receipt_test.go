package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/sqs"
	"orderonce/adapters/stripe"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/receipt/receipttest"
	"orderonce/functions/internal/functiontest"
)

// environ returns a valid environment with changes.
func environ(changes ...string) []string {
	return append(functiontest.Environ(
		"", "RECEIPTS_TABLE=receipts", "RECEIPT_FROM=Shop <receipts@shop.invalid>", "RECEIPT_CONFIGURATION_SET=receipts",
	), changes...)
}

// processor returns what the function makes of an environment.
func processor(t *testing.T, changes ...string) (*receipt.Processor, error) {
	t.Helper()
	c, err := config.Read[environment](environ(changes...))
	if err != nil {
		return nil, err
	}
	return newProcessor(c, c.Function(io.Discard, 1, c.Stripe.Address, ""), stripe.Options{Scope: "test"})
}

func TestEnvironment(t *testing.T) {
	for change, want := range map[string]string{
		"":                       "10s, again false", // SES, a write, the response to the queue
		"RECEIPTS=at_most_once":  "10s, again false",
		"RECEIPTS=at_least_once": "10s, again true",
		"SES_TIMEOUT=6s":         "11s, again false",
		"RECEIPTS=exactly_once":  "RECEIPTS: want at_most_once or at_least_once",
		"SES_TIMEOUT=12s":        "ORDER_BUDGET: want more than the time-outs of its calls, 20s together, or nothing would be sent",
		"SES_TIMEOUT=0s":         "SES_TIMEOUT: want more than 0",
		"PARALLEL_ORDERS=0":      "PARALLEL_ORDERS: want at least 1", // as every function of a queue
		"STRIPE_SECRET_KEY=":     "STRIPE_SECRET_ARN, STRIPE_SECRET_KEY: want exactly one of them",
		"RECEIPT_FROM=":          `RECEIPT_FROM: want the sender, such as "Shop <receipts@shop.example>", got empty`,
	} {
		var got string
		p, err := processor(t, change)
		if problems, ok := errors.AsType[*config.Error](err); ok {
			got = strings.Join(problems.Problems, "; ")
		} else if err == nil {
			got = fmt.Sprintf("%v, again %t", p.SendTime, p.AtLeastOnce)
		}
		if got != want || strings.Contains(fmt.Sprint(err), "canary") {
			t.Errorf("%s: got %q, %v, want %q", change, got, err, want)
		}
	}
}

const (
	paidEvent = `{"source":"orderonce.test","detail-type":"Order Paid","detail":{"version":1,"orderId":"ORD-1","seq":1,` +
		`"type":"order.paid","from":"open","status":"paid","amount":3998,"currency":"usd","paymentIntentId":"pi_1",` +
		`"occurredAt":"2026-05-01T12:00:00.000Z"}}`
	deliveredEvent = `{"source":"aws.ses","detail-type":"Email Delivered","detail":{"eventType":"Delivery","mail":{"messageId":"message-1",` +
		`"tags":{"orderonce-scope":["test"],"orderonce-order":["T1JELTE"],"orderonce-receipt":["cGFpZA"],"orderonce-attempt":["1"]}}}}`
)

// counter records the counted metrics.
type counter []string

func (c *counter) Count(metric, _, value string)                 { *c = append(*c, metric+" "+value) }
func (c *counter) Observe(string, string, string, time.Duration) {}
func (c *counter) Flush()                                        {}

func TestTasks(t *testing.T) {
	renderer, err := receipt.NewRenderer()
	functiontest.Must(t, err)
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	all := tasks{&receipt.Processor{
		Store: new(receipttest.Memory), Payers: new(receipttest.Payers), Mailer: new(receipttest.Mailbox), Render: renderer.Render,
		Now: func() time.Time { return now },
	}, "test"}
	refunded := strings.NewReplacer("order.paid", "refund.succeeded", `"from":"open"`, `"from":"paid"`, `"status":"paid"`,
		`"status":"refunded","refundId":"R-1","refundAmount":3998`).Replace(paidEvent)
	for _, step := range []struct{ body, want string }{
		{strings.ReplaceAll(paidEvent, "paid", "declined"), "ORD-1 []: ignored []"},
		{strings.Replace(deliveredEvent, `["test"]`, `["other"]`, 1), " []: ignored []"},
		{paidEvent, "ORD-1 [receipt=paid]: settled [Receipts sent]"},
		{paidEvent, "ORD-1 [receipt=paid]: duplicate []"},
		{deliveredEvent, "ORD-1 [receipt=paid]: settled [Receipts delivered]"},
		{refunded, "ORD-1 [receipt=refund#R-1]: settled [Receipts sent]"},
		{"canary", "error"},
		{strings.Replace(paidEvent, "orderonce.test", "orderonce.other", 1), "error"},
		{strings.Replace(paidEvent, "pi_1", "", 1), "error"},          // no intent
		{strings.Replace(deliveredEvent, "T1JELTE", "*", 1), "error"}, // no order
	} {
		got, counted := "error", counter{}
		task, err := all.task(step.body)
		if err == nil {
			r := task.Run(t.Context(), sqs.Delivery{}, order.Lease{Owner: "owner", From: now, Until: now.Add(time.Minute)})
			if task.Count != nil {
				task.Count(&counted, r, 0)
			}
			got = fmt.Sprintf("%s %v: %s %v", task.ID, task.Attrs, r.Reason, counted)
		}
		if got != step.want || strings.Contains(fmt.Sprint(err), "canary") {
			t.Errorf("%s: got %q, %v, want %q", step.body, got, err, step.want)
		}
	}
}

func TestWire(t *testing.T) {
	t.Parallel()
	var read, mail string
	c := functiontest.Serve(t, func(call, body string) string {
		switch {
		case strings.HasPrefix(call, "DynamoDB_20120810.GetItem"):
			read = body
		case strings.HasPrefix(call, "GET /v1/"):
			return `{"id":"pi_1","customer":{"email":"canary@example.invalid"}}`
		case strings.HasPrefix(call, "POST /v2/"):
			mail = body
			return `{"MessageId":"message-1"}`
		}
		return ""
	})
	var out functiontest.Output
	h, err := wire(t.Context(), environ("AWS_ENDPOINT_URL="+c.URL, "STRIPE_API_BASE="+c.URL), &out)
	functiontest.Must(t, err)
	h.Settings = nil
	got, err := h.Handle(t.Context(), functiontest.Batch(paidEvent, "no event"))
	if err != nil || len(got.BatchItemFailures) != 0 {
		t.Errorf("got %+v, %v\n%s", got, err, &out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // too short
	defer cancel()
	got, err = h.Handle(ctx, functiontest.Batch(paidEvent))
	if err != nil || len(got.BatchItemFailures) != 1 {
		t.Errorf("got %+v, %v, want it redelivered", got, err)
	}
	want := []string{
		"AmazonSQS.ChangeMessageVisibilityBatch https://sqs.example/1/live", "AmazonSQS.SendMessage https://sqs.example/1/dead",
		"DynamoDB_20120810.GetItem receipts", "DynamoDB_20120810.PutItem receipts", "DynamoDB_20120810.PutItem receipts",
		"GET /v1/payment_intents/pi_1 sk_test_canary", "POST /v2/email/outbound-emails",
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(c.Calls())), want); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
	for body, want := range map[string][]string{read: {`"ConsistentRead":true`}, mail: {
		`"Shop <receipts@shop.invalid>"`, `"ConfigurationSetName":"receipts"`, `"test"`, `"T1JELTE"`, `"cGFpZA"`, `"1"`,
	}} {
		for _, part := range want {
			if !strings.Contains(body, part) {
				t.Errorf("want %s in the request %s", part, body)
			}
		}
	}
	if part := out.Lacks(
		`"receipt":"paid"`, `"reason":"settled"`, `"Receipts":[1]`, `"Result":"sent"`, `"SES.SendEmail"`,
		`"Function":"receipt"`, `"Scope":"test"`, `"message":"receipt"`,
	); part != "" {
		t.Errorf("want %s in the output:\n%s", part, &out)
	}
}

// The time-out of SES covers the body of its answer.
func TestAnAnswerThatStopsHalfwayIsGivenUp(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	p, err := processor(t, "AWS_ENDPOINT_URL="+server.URL, "SES_TIMEOUT=50ms")
	functiontest.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = p.Mailer.Send(ctx, receipt.Mail{Subject: "s", Text: "t", OrderID: "ORD-1", Key: receipt.Paid})
	if got, ok := errors.AsType[*receipt.SendError](err); !ok || got.Kind != order.KindUnknown || ctx.Err() != nil {
		t.Errorf("got %v, want unknown before the function's own deadline", err)
	}
}
