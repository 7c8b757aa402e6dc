package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/internal/bodytest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

func TestEveryRecordIsOneLogLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		result order.Result
		want   map[string]any // what differs from the line of a paid order
	}{
		{"a paid order", paid(), nil},
		{
			"a duplicate",
			order.Result{Verdict: order.Done, Reason: order.ReasonDuplicate, Status: order.Declined, Intent: "pi_2"},
			map[string]any{"reason": "duplicate", "status": "declined", "intent_id": "pi_2", "attempt": 0.0},
		},
		{
			"a redelivered order",
			order.Result{
				Verdict: order.Redeliver, Reason: order.ReasonUnknown, Transient: true, Status: order.Open, Attempt: 3, Intent: "pi_3",
				RequestID: "req_1", Err: &order.PaymentError{
					Kind: order.KindUnknown, RequestID: "req_1", Err: context.DeadlineExceeded,
				},
			},
			map[string]any{
				"level": "WARN", "verdict": "redeliver", "reason": "provider_unknown", "status": "open", "attempt": 3.0, "intent_id": "pi_3",
				"retry_after_s": 3.0, "provider_request_id": "req_1", "error": "unknown: context deadline exceeded (request req_1)",
			},
		},
		{
			"an order that another attempt holds", held(time.Minute),
			map[string]any{
				"verdict": "redeliver", "reason": "in_progress", "status": "", "attempt": 0.0, "intent_id": "",
				"retry_after_s": 61.0,
			},
		},
		{
			"a parked order", conflict(),
			map[string]any{
				"level": "ERROR", "verdict": "park", "reason": "conflict", "status": "", "attempt": 0.0, "intent_id": "",
				"error": "order id already used with different content",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.script["ORD12345"] = tt.result
			id := w.send(good)[0]
			w.deliverVisible()
			want := map[string]any{
				"level": "INFO", "msg": "order", "order_id": "ORD12345", "message_id": id, "delivery": 1.0, "attempt": 1.0,
				"status": "paid", "verdict": "done", "reason": "settled", "intent_id": "pi_1", "request_id": "request-1",
			}
			maps.Copy(want, tt.want)
			got := w.lines()
			for _, line := range got {
				delete(line, "time")
			}
			if diff := cmp.Diff(got, []map[string]any{want}); diff != "" {
				t.Errorf("mismatch (-got +want):\n%s", diff)
			}
		})
	}
}

const (
	first       = "0af7651916cd43dd8448eb211c80319c"
	second      = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent      = "b7ad6b7169203331"
	traceparent = "00-" + first + "-" + parent + "-01"
)

func TestALogLineHasTheTraceOfTheOrderAndOfItsMessage(t *testing.T) {
	t.Parallel()
	xray := "Root=1-" + first[:8] + "-" + first[8:] + ";Parent=" + parent + ";Sampled=1"
	const other = "00-" + second + "-" + parent + "-01"
	for claim, tt := range map[string]struct {
		attribute, xray string
		ofOrder, lease  order.Trace
		want            map[string]any
	}{
		"no trace":                 {want: map[string]any{}},
		"an attribute of no trace": {attribute: "canary", want: map[string]any{}},
		"the message's":            {attribute: traceparent, lease: traceparent, want: map[string]any{"trace_id": first}},
		"X-Ray's":                  {xray: xray, lease: traceparent, want: map[string]any{"trace_id": first}},
		"X-Ray's with blanks": {
			xray: strings.ReplaceAll(xray, ";", "; "), lease: traceparent, want: map[string]any{"trace_id": first},
		},
		"X-Ray's, not sampled": {
			xray: strings.Replace(xray, "d=1", "d=0", 1), lease: "00-" + first + "-" + parent + "-00",
			want: map[string]any{"trace_id": first},
		},
		"X-Ray's without a parent": {xray: strings.SplitN(xray, ";", 2)[0], want: map[string]any{}},
		"both":                     {attribute: other, xray: xray, lease: other, want: map[string]any{"trace_id": second}},
		"the order's":              {ofOrder: traceparent, want: map[string]any{"trace_id": first}},
		"a duplicate's": {
			attribute: other, ofOrder: traceparent, lease: other,
			want: map[string]any{"trace_id": first, "message_trace_id": second},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			settled := paid()
			settled.Trace = tt.ofOrder
			w.script["ORD12345"] = settled
			w.send(good)
			e := w.receive()
			e.Records[0].Attributes["AWSTraceHeader"] = tt.xray
			e.Records[0].MessageAttributes = map[string]events.SQSMessageAttribute{
				"traceparent": {DataType: "String", StringValue: &tt.attribute},
			}
			w.deliver(t.Context(), e)
			got := w.lines()[0]
			maps.DeleteFunc(got, func(name string, _ any) bool { return !strings.HasSuffix(name, "trace_id") })
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			if lease := w.processed()[0].Lease; lease.Trace != tt.lease {
				t.Errorf("got a lease with trace %q, want %q", lease.Trace, tt.lease)
			}
		})
	}
}

func TestEveryResultIsCounted(t *testing.T) {
	t.Parallel()
	for reason, tt := range map[order.Reason]struct {
		verdict order.Verdict
		want    []string
	}{
		order.ReasonSettled:     {order.Done, []string{"Settled", "Settled paid", "OrderAge", "OrderAge 90"}},
		order.ReasonDuplicate:   {order.Done, []string{"Duplicates"}},
		order.ReasonInProgress:  {order.Redeliver, []string{"InProgress", "Redelivered", "Redelivered in_progress"}},
		order.ReasonClaimLost:   {order.Redeliver, []string{"ClaimsLost", "Redelivered", "Redelivered claim_lost"}},
		order.ReasonUnknown:     {order.Redeliver, []string{"Unknown", "Redelivered", "Redelivered provider_unknown"}},
		order.ReasonUnavailable: {order.Redeliver, []string{"Redelivered", "Redelivered provider_unavailable"}},
		order.ReasonConflict:    {order.Park, []string{"Parked", "Parked conflict"}},
	} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.script["ORD12345"] = order.Result{
				Verdict: tt.verdict, Reason: reason, Status: order.Paid, Takeover: true,
			}
			w.send(good)
			w.advance(90 * time.Second)
			w.deliverVisible()
			want := map[string]int{"Received": 1, "Takeovers": 1, "flush": 1}
			for _, metric := range tt.want {
				want[metric] = 1
			}
			if tt.verdict == order.Redeliver {
				want["WaitingAge"], want["WaitingAge 90"] = 1, 1
			}
			if diff := cmp.Diff(w.meter, want); diff != "" {
				t.Errorf("mismatch (-got +want):\n%s", diff)
			}
		})
	}
}

// OrderAge is about the order queue: the days in the dead-letter queue would raise its
// alarm at every redrive.
func TestTheAgeOfASettledOrderCountsFromItsRedrive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script["ORD12345"] = conflict()
	w.send(good)
	w.deliverVisible()
	w.advance(3 * day)
	w.redrive()
	w.script["ORD12345"] = paid()
	w.advance(2 * time.Second)
	w.deliverVisible()
	if got := w.counted("OrderAge 2"); got != 1 {
		t.Errorf("metrics = %v, want an OrderAge of 2 seconds", w.meter)
	}
}

// Parked is ERROR, because a person has to look at it; a failure is WARN, even if nothing
// comes back because of it; waiting for another attempt is INFO.
func TestTheLogLevelFollowsFromTheVerdict(t *testing.T) {
	t.Parallel()
	for _, reason := range order.Reasons() {
		for verdict, want := range map[order.Verdict]string{order.Done: "INFO", order.Redeliver: "WARN", order.Park: "ERROR"} {
			if verdict == order.Redeliver && reason == order.ReasonInProgress {
				want = "INFO"
			}
			w := newWorld(t)
			w.script["ORD12345"] = order.Result{Verdict: verdict, Reason: reason, Transient: true}
			w.send(good)
			w.deliverVisible()
			if got := w.line("order_id", "ORD12345")["level"]; got != want {
				t.Errorf("%s for %s has level %v, want %s", verdict, reason, got, want)
			}
		}
	}
	acknowledged := newWorld(t)
	acknowledged.script["ORD12345"] = order.Result{Verdict: order.Done, Err: errors.New("connection reset")}
	acknowledged.send(good)
	acknowledged.deliverVisible()
	if got := acknowledged.line("order_id", "ORD12345")["level"]; got != "WARN" {
		t.Errorf("an acknowledged failure has level %v, want WARN", got)
	}
	w := newFIFOWorld(t)
	w.script["HEAD"] = outage()
	w.sendGrouped("g", orderWithID("HEAD"), orderWithID("NEXT"))
	w.deliverVisible()
	if got := w.line("order_id", "NEXT")["level"]; got != "INFO" {
		t.Errorf("a message behind the head of its group has level %v, want INFO", got)
	}
}

// No log line, metric or attribute contains personal or payment data, or a misplaced
// value.
func TestNoPersonalOrPaymentDataLeavesTheMessage(t *testing.T) {
	t.Parallel()
	const (
		customer, payer, method = "CANARY-JANE", "cus_CANARY", "pm_CANARY"
		sku, trace, panicked    = "CANARY-SKU", "CANARY-TRACE", "canary panic"
	)
	personal := []string{bodytest.CardNumber, "jane.doe@example.com", "Jane Doe, 1 Main Street", "+49 151 23456"}
	body := func(id string) string {
		return strings.NewReplacer("ORD12345", id, "CUST987", customer, "cus_NffrFeUfNV2Hib", payer,
			"pm_1MqLiJLkdIwHu7ix", method, "TSHIRT-M", sku).Replace(good)
	}
	bodies := []string{
		body("PAID"), body("WAITS"), body("CLASHES"), body("PANICS"), body("PANICS-AGAIN"),
		bodytest.CardNumber, `"` + bodytest.CardNumber + `"`, `{"payment":` + bodytest.CardNumber + `}`,
		strings.Replace(body("A"), method, bodytest.CardNumber, 1),
		strings.Replace(body("B"), payer, bodytest.CardNumber, 1),
		strings.Replace(body("C"), `"`+method+`"`, bodytest.CardNumber, 1),
		strings.Replace(body("D"), `"`+customer+`"`, `["`+customer+`"]`, 1),
		strings.Replace(body("E"), customer, customer+" Doe", 1),
		body("F")[:150], body("G") + body("G"), body("H") + customer,
		strings.Replace(body("I"), `"usd"`, `"USD"`, 1), strings.Replace(body("J"), "1999", "19.99", 1),
		bodytest.FromSNS(body("K") + "x"),
	}
	for _, misplaced := range personal {
		for old, replacement := range map[string]string{
			`"L"`:                 `" ` + misplaced + `"`,
			`"usd"`:               `"` + misplaced + `"`,
			`"sku":"` + sku + `"`: `"sku":" ` + misplaced + strings.Repeat("x", 80) + `"`,
			`"quantity"`:          `"` + misplaced + `":1,"quantity"`,
			`"orderId"`:           `"` + misplaced + `":1,"orderId"`,
			`"method"`:            `"` + misplaced + `":1,"method"`,
		} {
			bad := strings.Replace(body("L"), old, replacement, 1)
			twice := strings.Replace(bodytest.FromEventBridge(good), `"account"`, `"`+misplaced+`":{"a":1,"a":2},"account"`, 1)
			event := bodytest.FromEventBridge(bad)
			bodies = append(bodies, bad, event, bodytest.FromSNS(bad), bodytest.FromSNS(event), twice)
		}
	}
	w := newWorld(t)
	w.script["WAITS"], w.script["CLASHES"] = outage(), conflict()
	w.Process = func(ctx context.Context, o order.Order, sent time.Time, l order.Lease) order.Result {
		switch o.ID() {
		case "PANICS":
			panic(panicked + o.CustomerID())
		case "PANICS-AGAIN":
			panic(fmt.Errorf("%s %v", panicked, o.Payment()))
		}
		return w.process(ctx, o, sent, l)
	}
	for _, b := range bodies {
		w.sendDraft(sqstest.Draft{Body: b, Attributes: map[string]sqstest.Attribute{"trace": sqstest.Text(trace)}})
	}
	w.deliverVisible()
	if got := w.counted("Parked"); got != len(bodies)-4 {
		t.Errorf("got %d parked of %d, want all but four", got, len(bodies))
	}
	output := w.log.String() + strings.Join(slices.Sorted(maps.Keys(w.meter)), " ")
	for _, m := range w.messages(w.dead) {
		delete(m.Attributes, "trace") // the producer's own
		for name, a := range m.Attributes {
			output += name + a.Text
		}
	}
	for _, secret := range append(personal, customer, payer, method, sku, trace, panicked) {
		if at := strings.Index(output, secret); at >= 0 {
			t.Errorf("%q was disclosed: ...%s", secret, output[max(0, at-100):at+len(secret)])
		}
	}
}

func TestReasonsAreDistinctFromTheDomains(t *testing.T) {
	t.Parallel()
	for _, reason := range sqs.Reasons() {
		if slices.Contains(order.Reasons(), reason) {
			t.Errorf("reason %s is also a reason of the domain", reason)
		}
	}
}
