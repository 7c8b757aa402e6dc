package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/config"
	"orderonce/adapters/sqs"
	"orderonce/adapters/stripe"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/receipt/receipttest"
)

const (
	paidEvent = `{"source":"orderonce.test","detail-type":"Order Paid","detail":{"version":1,"orderId":"ORD-1","seq":1,` +
		`"type":"order.paid","from":"open","status":"paid","amount":3998,"currency":"usd","paymentIntentId":"pi_1",` +
		`"occurredAt":"2026-05-01T12:00:00.000Z"}}`
	deliveredEvent = `{"source":"aws.ses","detail-type":"Email Delivered","detail":{"eventType":"Delivery","mail":{"messageId":"message-1",` +
		`"tags":{"orderonce-scope":["test"],"orderonce-order":["T1JELTE"],"orderonce-receipt":["cGFpZA"],"orderonce-attempt":["1"]}}}}`
)

// counter records the counted metrics.
type counter map[string]int

func (c counter) Count(metric, dimension, value string)         { c[metric+" "+dimension+" "+value]++ }
func (c counter) Observe(string, string, string, time.Duration) {}
func (c counter) Flush()                                        {}

func TestTasks(t *testing.T) {
	t.Parallel()
	renderer, err := receipt.NewRenderer()
	must(t, err)
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	mailbox := new(receipttest.Mailbox)
	tt := tasks{&receipt.Processor{
		Store: new(receipttest.Memory), Payers: new(receipttest.Payers), Mailer: mailbox, Render: renderer.Render,
		Now: func() time.Time { return now }, SendTime: time.Second,
	}, "test"}
	counted := counter{}
	for _, step := range []struct {
		body   string
		id     order.ID
		reason order.Reason
	}{
		{strings.ReplaceAll(paidEvent, "paid", "declined"), "ORD-1", receipt.ReasonIgnored},
		{strings.Replace(deliveredEvent, `["test"]`, `["other"]`, 1), "", receipt.ReasonIgnored},
		{paidEvent, "ORD-1", order.ReasonSettled},
		{paidEvent, "ORD-1", order.ReasonDuplicate},
		{deliveredEvent, "ORD-1", order.ReasonSettled},
		{deliveredEvent, "ORD-1", order.ReasonDuplicate},
	} {
		task, err := tt.task(step.body)
		must(t, err)
		got := task.Run(t.Context(), sqs.Delivery{}, order.Lease{Owner: "owner", From: now, Until: now.Add(time.Minute)})
		if got.Reason != step.reason || got.Verdict != order.Done || task.ID != step.id {
			t.Errorf("%s: got %q, %+v, want %s", step.body, task.ID, got, step.reason)
		}
		if task.Count != nil {
			task.Count(counted, got, 0)
		}
	}
	if diff := cmp.Diff(counted, counter{"Receipts Result sent": 1, "Receipts Result delivered": 1}); diff != "" {
		t.Errorf("counted (-got +want):\n%s", diff)
	}
	if n := len(mailbox.Sent()); n != 1 {
		t.Errorf("%d e-mails, want 1", n)
	}
	refunded := strings.NewReplacer("order.paid", "refund.succeeded", `"from":"open"`, `"from":"paid"`, `"status":"paid"`,
		`"status":"refunded","refundId":"R-1","refundAmount":3998`).Replace(paidEvent)
	if task, err := tt.task(refunded); err != nil || task.ID != "ORD-1" || fmt.Sprint(task.Attrs) != "[receipt=refund#R-1]" {
		t.Errorf("got %+v, %v, want ORD-1 and the receipt of its refund", task, err)
	}
	for claim, body := range map[string]string{
		"no event":                "canary",
		"another scope":           strings.Replace(paidEvent, "orderonce.test", "orderonce.other", 1),
		"no intent":               strings.Replace(paidEvent, "pi_1", "", 1),
		"an event of SES, broken": strings.Replace(deliveredEvent, "T1JELTE", "*", 1),
	} {
		if _, err := tt.task(body); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v, want an error without the body", claim, err)
		}
	}
}

// cloud answers every service and records the calls.
type cloud struct {
	mu    sync.Mutex
	asked []string
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var in struct {
		TableName, FromEmailAddress, ConfigurationSetName string

		QueueURL       string `json:"QueueUrl"`
		ConsistentRead bool
		EmailTags      []struct{ Value string }
	}
	_ = json.Unmarshal(body, &in) // Stripe's is a form
	for _, tag := range in.EmailTags {
		in.ConfigurationSetName += " " + tag.Value
	}
	c.mu.Lock()
	c.asked = append(c.asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Amz-Target")+" "+in.TableName+
		in.FromEmailAddress+in.ConfigurationSetName+in.QueueURL+map[bool]string{true: " consistent"}[in.ConsistentRead]))
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	answer := "{}"
	switch {
	case strings.HasPrefix(r.URL.Path, "/v1/"):
		answer = `{"id":"pi_1","customer":{"email":"canary@example.invalid"}}`
	case strings.HasPrefix(r.URL.Path, "/v2/"):
		answer = `{"MessageId":"message-1"}`
	}
	_, _ = io.WriteString(w, answer)
}

func TestWire(t *testing.T) {
	t.Parallel()
	c := new(cloud)
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	var out bytes.Buffer
	h, err := wire(t.Context(), complete("AWS_ENDPOINT_URL="+server.URL, "STRIPE_API_BASE="+server.URL), &out)
	must(t, err)
	h.Settings = nil
	got, err := h.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "m-1", Body: paidEvent}, {MessageId: "m-2", Body: "no event"},
	}})
	if err != nil || len(got.BatchItemFailures) != 0 {
		t.Errorf("got %+v, %v\n%s", got, err, out.String())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // too short
	defer cancel()
	got, err = h.Handle(ctx, events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m-3", Body: paidEvent}}})
	if err != nil || len(got.BatchItemFailures) != 1 {
		t.Errorf("got %+v, %v, want it redelivered", got, err)
	}
	want := []string{
		"GET /v1/payment_intents/pi_1",
		"POST / AmazonSQS.ChangeMessageVisibilityBatch https://sqs.example/1/receipts",
		"POST / AmazonSQS.SendMessage https://sqs.example/1/dead",
		"POST / DynamoDB_20120810.GetItem receipts consistent",
		"POST / DynamoDB_20120810.PutItem receipts", "POST / DynamoDB_20120810.PutItem receipts",
		"POST /v2/email/outbound-emails  Shop <receipts@shop.invalid>receipts test T1JELTE cGFpZA 1",
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(c.asked)), want); diff != "" {
		t.Errorf("calls (-got +want):\n%s", diff)
	}
	for _, want := range []string{
		`"receipt":"paid"`, `"reason":"settled"`, `"Receipts":[1]`, `"Result":"sent"`, `"SES.SendEmail"`,
		`"Function":"receipt"`, `"Scope":"test"`, `"message":"receipt"`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %s:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "canary") {
		t.Errorf("the output has the address or the key:\n%s", out.String())
	}
}

func TestThePromiseAndTheTimeFollowTheEnvironment(t *testing.T) {
	t.Parallel()
	for promise, again := range map[string]bool{"": false, "RECEIPTS=at_most_once": false, "RECEIPTS=at_least_once": true} {
		c, err := config.Read[environment](complete("SES_TIMEOUT=6s", promise))
		must(t, err)
		p, err := newProcessor(c, c.Function(io.Discard, 1, c.Stripe.Address, ""), stripe.Options{Scope: "test"})
		must(t, err)
		if p.AtLeastOnce != again || p.SendTime != c.sendTime() || p.SendTime < 8*time.Second {
			t.Errorf("%s: at least once = %t, time to send = %v, want %t, %v", promise, p.AtLeastOnce, p.SendTime, again, c.sendTime())
		}
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
	c, err := config.Read[environment](complete("AWS_ENDPOINT_URL="+server.URL, "SES_TIMEOUT=50ms"))
	must(t, err)
	p, err := newProcessor(c, c.Function(io.Discard, 1, c.Stripe.Address, ""), stripe.Options{Scope: "test"})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = p.Mailer.Send(ctx, receipt.Mail{Subject: "s", Text: "t", OrderID: "ORD-1", Key: receipt.Paid})
	if got, ok := errors.AsType[*receipt.SendError](err); !ok || got.Kind != order.KindUnknown || ctx.Err() != nil {
		t.Errorf("got %v, want unknown before the function's own deadline", err)
	}
}
