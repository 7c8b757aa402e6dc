package run_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/scripts/lab/storm/run"
)

// TestFates compares a workload with the same one without fates.
func TestFates(t *testing.T) {
	t.Parallel()
	plain := run.Workload{Seed: 7, Orders: 20_000, Duplicates: 0.3}
	later := plain
	later.Later = true
	lost, ends := 0, map[order.Status]int{}
	for n := range plain.Orders {
		before, after := plain.Messages(n), later.Messages(n)
		if later.Loses(n) {
			if lost++; len(after) > 1 || after[0].Invalid {
				t.Errorf("order %d has %d messages, the first invalid: %t; want one valid message to lose", n, len(after), after[0].Invalid)
			}
		}
		if diff := cmp.Diff(after, later.Messages(n)); diff != "" {
			t.Fatalf("two calls differ:\n%s", diff)
		}
		if before[0].Body != after[0].Body || before[0].Want == order.ActionRequired {
			ends[after[0].Want]++
		}
		if len(before) != len(after) || before[0].Total != after[0].Total || before[0].Invalid != after[0].Invalid {
			t.Errorf("got %+v, want %+v but for the payment method and the end", after, before)
		}
	}
	if lost < 300 || lost > 600 { // 3 % of those with one valid message
		t.Errorf("got %d orders that lose their message, want about 450", lost)
	}
	for status, least := range map[order.Status]int{
		order.Paid: 300, order.Declined: 80, order.Pending: 80, order.ActionRequired: 150,
	} {
		if ends[status] < least {
			t.Errorf("got %v of the orders that wait for customer or bank, want at least %d %s", ends, least, status)
		}
	}
}

func TestWebhooksAreLostTwiceAndLate(t *testing.T) {
	t.Parallel()
	w, seen := run.Workload{Seed: 7}, map[string]int{}
	for number := range 10_000 {
		planned := w.Webhooks(number)
		if diff := cmp.Diff(planned, w.Webhooks(number)); diff != "" {
			t.Fatalf("two calls differ:\n%s", diff)
		}
		switch {
		case len(planned) == 0:
			seen["lost"]++
		case len(planned) == 2:
			seen["twice"]++
		case planned[0] > 0:
			seen["late"]++
		default:
			seen["at once"]++
		}
		for _, delay := range planned {
			if delay < 0 || delay >= 48*time.Hour {
				t.Errorf("got a delay of %v, want at most two days", delay)
			}
		}
	}
	for what, n := range map[string]int{"lost": 2000, "twice": 1000, "late": 1000, "at once": 6000} {
		if got := seen[what]; got < n*9/10 || got > n*11/10 {
			t.Errorf("got %d of 10,000 events %s, want about %d", got, what, n)
		}
	}
}

func TestOrdersThatAreSettledWithoutAMessageAreCounted(t *testing.T) {
	t.Parallel()
	got, err := run.SettledLater(filepath.Join(t.TempDir(), "function.log"),
		`{"message":"webhook","order_id":"storm-000001","result":"settled","status":200}`,
		`{"message":"webhook","order_id":"storm-000002","result":"unavailable","error":"settle order: no response"}`,
		`{"message":"reconciled","results":{"settled":3,"unchanged":4},"more":false}`,
		`{"message":"reconciled","results":{"unchanged":4},"more":false}`,
		`{"message":"order","order_id":"storm-000003","verdict":"done","reason":"settled"}`,
		`panic: settled`,
	)
	if err != nil || got != 4 {
		t.Errorf("got %d, %v, want 4: one by a webhook, three by reconcile", got, err)
	}
}
