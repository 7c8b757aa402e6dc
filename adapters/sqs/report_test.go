package sqs_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/sqs/internal/bodytest"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

// Each message waits for 90 seconds.
func TestARecordIsOneLogLineAndItsMetrics(t *testing.T) {
	type line = map[string]any
	for name, tt := range map[string]struct {
		result     order.Result
		deliveries int
		age        time.Duration // instead of 90 s
		fails      bool          // the dead-letter queue
		line       line          // what differs from the line of an order without a result
		meter      []string      // beside Received and flush
	}{
		"a paid order": {
			result: paid(),
			line:   line{"status": "paid", "verdict": "done", "reason": "settled", "intent_id": "pi_1", "attempt": 1.0},
			meter:  []string{"Settled paid", "OrderAge 90"},
		},
		"a duplicate, with a failure that no redelivery repairs": {
			result: order.Result{
				Verdict: order.Done, Reason: order.ReasonDuplicate, Status: order.Declined, Intent: "pi_2",
				Err: order.ErrConflict,
			},
			line: line{
				"level": "WARN", "status": "declined", "verdict": "done", "reason": "duplicate", "intent_id": "pi_2",
				"error": "order id already used with different content",
			},
			meter: []string{"Duplicates"},
		},
		"an order whose outcome is unknown": {
			result: order.Result{
				Verdict: order.Redeliver, Reason: order.ReasonUnknown, Transient: true, Status: order.Open, Attempt: 3,
				RequestID: "req_1", Takeover: true,
				Err: &order.PaymentError{Kind: order.KindUnknown, RequestID: "req_1", Err: context.DeadlineExceeded},
			},
			line: line{
				"level": "WARN", "verdict": "redeliver", "reason": "provider_unknown", "status": "open", "attempt": 3.0,
				"retry_after_s": 3.0, "provider_request_id": "req_1",
				"error": "unknown: context deadline exceeded (request req_1)",
			},
			meter: []string{"Unknown", "Takeovers", "Redelivered provider_unknown", "WaitingAge 90"},
		},
		"an order that another attempt holds": {
			result: inProgress(150 * time.Second),
			line:   line{"verdict": "redeliver", "reason": "in_progress", "retry_after_s": 61.0},
			meter:  []string{"InProgress", "Redelivered in_progress", "WaitingAge 90"},
		},
		"a claim that was lost": {
			result: order.Result{Verdict: order.Redeliver, Reason: order.ReasonClaimLost, Transient: true},
			line:   line{"level": "WARN", "verdict": "redeliver", "reason": "claim_lost", "retry_after_s": 3.0},
			meter:  []string{"ClaimsLost", "Redelivered claim_lost", "WaitingAge 90"},
		},
		"a parked order": {
			result: conflict(),
			line: line{
				"level": "ERROR", "verdict": "park", "reason": "conflict",
				"error": "order id already used with different content",
			},
			meter: []string{"Parked conflict"},
		},
		"an order that waited too long": {
			result: order.Result{Verdict: order.Redeliver, Reason: order.ReasonUnavailable, Transient: true, Attempt: 7},
			age:    6 * day, deliveries: 33,
			line: line{
				"level": "ERROR", "verdict": "park", "reason": "provider_unavailable", "attempt": 7.0, "delivery": 33.0,
			},
			meter: []string{"Parked provider_unavailable"},
		},
		"an order that cannot be parked": {
			result: order.Result{Verdict: order.Park, Reason: order.ReasonRefused, Attempt: 2, Intent: "pi_2"}, fails: true,
			line:  line{"level": "WARN", "verdict": "redeliver", "reason": "park_failed", "retry_after_s": 3.0},
			meter: []string{"Redelivered park_failed", "WaitingAge 90"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, standard)
			w.script["ORD12345"], w.deliveries = tt.result, tt.deliveries
			if tt.fails {
				w.server.Fail("SendMessage", 1, "AccessDenied")
			}
			id := w.send(good)[0]
			w.advance(max(tt.age, 90*time.Second))
			w.deliver()
			want := line{
				"level": "INFO", "msg": "order", "order_id": "ORD12345", "message_id": id, "delivery": 1.0, "attempt": 0.0,
				"status": "", "intent_id": "", "request_id": "request-1",
			}
			maps.Copy(want, tt.line)
			got := w.line("msg", "order")
			if text := fmt.Sprint(got["error"]); tt.fails && strings.HasPrefix(text, "park message "+id+" for refused: ") &&
				strings.Contains(text, "AccessDenied") {
				delete(got, "error")
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("log (-got +want):\n%s", diff)
			}
			counts := map[string]int{"Received": 1, "flush": 1}
			for _, metric := range tt.meter {
				counts[metric] = 1
			}
			if diff := cmp.Diff(w.meter, counts); diff != "" {
				t.Errorf("metrics (-got +want):\n%s", diff)
			}
		})
	}
}

// A redrive resets SentTimestamp. The age of a waiting message counts from the time that
// its first parking wrote, that of a settled order from its redrive: the days in the
// dead-letter queue would raise the alarm of the order queue.
func TestTheAgesOfARedrivenMessage(t *testing.T) {
	w := newWorld(t, standard)
	w.script["ORD12345"] = conflict()
	w.send(good)
	for _, wait := range []time.Duration{time.Hour, 3 * day, 9 * day} { // parked three times, redriven twice
		w.advance(wait)
		w.redrive()
		w.deliver()
	}
	w.redrive()
	for _, result := range []order.Result{outage(), paid()} {
		w.script["ORD12345"] = result
		w.advance(4 * time.Second)
		w.deliver()
	}
	if w.meter["WaitingAge 1.040404e+06"] != 1 || w.meter["OrderAge 8"] != 1 || w.meter["Parked conflict"] != 3 {
		t.Errorf("metrics = %v, want a WaitingAge of 12 days and an hour, and an OrderAge of 8 seconds", w.meter)
	}
}

// No log line, metric or attribute contains personal or payment data, or a misplaced
// value.
func TestNoPersonalOrPaymentDataLeavesTheMessage(t *testing.T) {
	const (
		customer, payer, method = "CANARY-JANE", "cus_CANARY", "pm_CANARY"
		sku, mine, panicked     = "CANARY-SKU", "CANARY-MINE", "canary panic"
	)
	personal := []string{bodytest.CardNumber, "jane.doe@example.com", "Jane Doe, 1 Main Street", "+49 151 23456"}
	body := func(id string) string {
		return strings.NewReplacer("ORD12345", id, "CUST987", customer, "cus_NffrFeUfNV2Hib", payer,
			"pm_1MqLiJLkdIwHu7ix", method, "TSHIRT-M", sku).Replace(good)
	}
	bodies := []string{
		body("PAID"), body("WAITS"), body("CLASHES"), body("PANICS"),
		bodytest.CardNumber, `"` + bodytest.CardNumber + `"`, `{"payment":` + bodytest.CardNumber + `}`,
		strings.Replace(body("A"), method, bodytest.CardNumber, 1),
		strings.Replace(body("B"), payer, bodytest.CardNumber, 1),
		strings.Replace(body("C"), `"`+customer+`"`, `["`+customer+`"]`, 1),
		strings.Replace(body("D"), customer, customer+" Doe", 1),
		body("E")[:150], body("F") + body("F"), bodytest.FromSNS(body("G") + "x"),
	}
	for _, misplaced := range personal {
		for old, replacement := range map[string]string{
			`"L"`:                 `" ` + misplaced + `"`,
			`"usd"`:               `"` + misplaced + `"`,
			`"sku":"` + sku + `"`: `"sku":" ` + misplaced + strings.Repeat("x", 80) + `"`,
			`"quantity"`:          `"` + misplaced + `":1,"quantity"`,
			`"method"`:            `"` + misplaced + `":1,"method"`,
		} {
			bad := strings.Replace(body("L"), old, replacement, 1)
			event := bodytest.FromEventBridge(bad)
			twice := strings.Replace(event, `"account"`, `"`+misplaced+`":{"a":1,"a":2},"account"`, 1)
			bodies = append(bodies, bad, event, bodytest.FromSNS(event), twice)
		}
	}
	w := newWorld(t, standard)
	w.script["WAITS"], w.script["CLASHES"] = outage(), conflict()
	w.duringOrder("PANICS", func() { panic(fmt.Errorf("%s %s %s", panicked, customer, payer)) })
	for _, b := range bodies {
		w.sendDraft(sqstest.Draft{Body: b, Attributes: map[string]sqstest.Attribute{"mine": sqstest.Text(mine)}})
	}
	w.deliver()
	if got := w.meter["Parked invalid_order"]; got != len(bodies)-4 {
		t.Errorf("got %d parked of %d, want all but four", got, len(bodies))
	}
	output := w.log.String() + strings.Join(slices.Sorted(maps.Keys(w.meter)), " ")
	for _, m := range w.messages(w.dead) {
		delete(m.Attributes, "mine") // the producer's own
		for name, a := range m.Attributes {
			output += name + a.Text
		}
	}
	for _, secret := range append(personal, customer, payer, method, sku, mine, panicked) {
		if at := strings.Index(output, secret); at >= 0 {
			t.Errorf("%q was disclosed: ...%s", secret, output[max(0, at-100):at+len(secret)])
		}
	}
}
