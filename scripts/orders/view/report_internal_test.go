package view

import (
	"strings"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

func TestReport(t *testing.T) {
	t.Parallel()
	usd := order.Money{Amount: 2400, Currency: "usd"}
	paid := order.Record{OrderID: "ORD-1", Status: order.Paid, Intent: "pi_1", Total: usd}
	one := order.Intent{ID: "pi_1", State: order.Succeeded, Total: usd, Mode: order.TestMode}
	other := order.Intent{ID: "pi_2", State: order.Succeeded, Total: usd, Mode: order.LiveMode}
	stray := order.Intent{ID: "pi_3", State: order.NeedsConfirmation, Total: usd}
	third := other
	third.ID = "pi_4"
	open := order.Record{OrderID: "ORD-1", Status: order.Open, Total: usd, LastError: "mismatch"}
	held, parked, open1 := open, open, open
	open1.Intent = one.ID
	held.Owner, held.Until = "canary", noon().Add(time.Minute)
	parked.ParkedAt = noon()
	waits := paid
	waits.Status, waits.DueAt = order.ActionRequired, noon().Add(time.Hour)
	for claim, tt := range map[string]struct {
		report Report
		want   string
		next   string
	}{
		"charged once": {
			Report{Record: &paid, Asked: true, Intents: []order.Intent{one, stray}},
			"charged    once\nat Stripe  pi_1, succeeded, 24.00 USD\n" +
				"           https://dashboard.stripe.com/test/payments/pi_1\n" +
				"at Stripe  pi_3, needs_confirmation, 24.00 USD, not bound to the order\n",
			"nothing: it is settled",
		},
		"charged twice": {
			Report{Record: &paid, Asked: true, Intents: []order.Intent{one, other}},
			"charged    2 TIMES\n", "refund pi_2 at Stripe, unless that was done: " +
				"docs/guides/runbooks.md#4-a-customer-says-they-were-charged-twice",
		},
		"charged three times, the row is open": {
			Report{Record: &open1, Asked: true, Intents: []order.Intent{other, stray, third, one}},
			"charged    3 TIMES\n", "refund pi_2 and pi_4 at Stripe, unless that was done: " +
				"docs/guides/runbooks.md#4-a-customer-says-they-were-charged-twice",
		},
		"not charged": {Report{Record: &open, Asked: true}, "charged    no\n", "its message comes back"},
		"receipts": {
			Report{Record: &paid, Receipts: []receipt.Item{
				{Key: receipt.Paid, Status: receipt.Delivered, Message: "message-1", UpdatedAt: noon()},
				{Key: "refund#R-1", Status: receipt.Doubtful, Failure: receipt.Abandoned, UpdatedAt: noon()},
			}},
			"receipt    2026-11-21 12:00:00.123 UTC  paid delivered  message-1\n" +
				"receipt    2026-11-21 12:00:00.123 UTC  refund#R-1 doubtful  claim_abandoned\n",
			"nothing: it is settled",
		},
		"a row is missing": {
			Report{Asked: true, Intents: []order.Intent{other}},
			"charged    once\nat Stripe  pi_2, succeeded, 24.00 USD, not bound to the order\n" +
				"           https://dashboard.stripe.com/payments/pi_2\n",
			"a message of this order prepares another payment: restore the row first (orders restore --help)",
		},
		"Stripe was not read": {Report{Record: &paid}, "", "nothing: it is settled"},
		"in progress":         {Report{Record: &held}, "", "a function works on it until 2026-11-21 12:01:00.123 UTC"},
		"parked": {
			Report{Record: &parked}, "", "nothing by itself: its message is in the dead-letter queue, because of mismatch",
		},
		"the customer must act": {
			Report{Record: &waits},
			"",
			"the customer must authenticate; reconcile looks at it from 2026-11-21 13:00:00.123 UTC on",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			f := tt.report
			f.ID, f.Now = "ORD-1", noon()
			text := f.Text()
			if !strings.Contains(text, tt.want) || !strings.HasSuffix(text, "next       "+tt.next+"\n") {
				t.Errorf("got\n%s\nwant %q, then next %q", text, tt.want, tt.next)
			}
			if !f.Asked && strings.Contains(text, "charged") {
				t.Errorf("got\n%s\nwant no word about charges, because Stripe was not read", text)
			}
			if o := f.JSON(); o.OrderID != "ORD-1" || (o.Charges != nil) != f.Asked || len(o.AtStripe) != len(f.Intents) ||
				len(o.Receipts) != len(f.Receipts) {
				t.Errorf("got %+v", o)
			}
		})
	}
}
