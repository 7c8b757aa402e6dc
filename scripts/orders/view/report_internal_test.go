package view

import (
	"strings"
	"testing"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
	"orderonce/domain/refund"
)

// noon is when the orders of these tests were created.
func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 123_000_000, time.UTC) }

// The sessions of the pages show reports whole.
func TestReport(t *testing.T) {
	usd := order.Money{Amount: 2400, Currency: "usd"}
	intent := func(id order.IntentID, s order.IntentState) order.Intent {
		return order.Intent{ID: id, State: s, Total: usd, OrderID: "ORD-1", Mode: order.TestMode}
	}
	one, other := intent("pi_1", order.Succeeded), intent("pi_2", order.Succeeded)
	other.Mode = order.LiveMode
	paid := order.Record{OrderID: "ORD-1", CustomerID: "canary", Fingerprint: "v1:canary", Status: order.Paid, Intent: "pi_1", Total: usd}
	with := func(change func(*order.Record)) *order.Record {
		r := paid
		change(&r)
		return &r
	}
	unbound := func(change func(*order.Record)) *order.Record {
		return with(func(r *order.Record) { r.Status, r.Intent, r.LastError = order.Open, "", "mismatch"; change(r) })
	}
	back := func(amount int64) refund.Ledger {
		total := order.Money{Amount: amount, Currency: "usd"}
		return refund.Ledger{Refunds: []refund.Refund{{ID: "re_1", Status: refund.Succeeded, Total: total}}}
	}
	won := order.Dispute{ID: "du_1", Status: order.DisputeWon, CreatedAt: noon().AddDate(0, 0, 2)}
	for claim, tt := range map[string]struct {
		report Report
		want   string // in parts
	}{
		"the second charge went back": {
			Report{Record: &paid, Asked: true, Intents: []order.Intent{one, other}, Ledgers: map[order.IntentID]refund.Ledger{"pi_2": back(2400)}},
			"charged    once\nat Stripe  pi_2, succeeded, 24.00 USD, not bound\nat Stripe  re_1, 24.00 USD, succeeded, of others\nnext       nothing",
		},
		"a part of the second charge went back": {
			Report{Record: &paid, Asked: true, Intents: []order.Intent{one, other}, Ledgers: map[order.IntentID]refund.Ledger{"pi_2": back(1000)}},
			"charged    2 TIMES\nnext       refund 14.00 USD of pi_2 in Stripe's Dashboard: it charged the order and is not bound to it; 10.00 USD went back: ",
		},
		"not charged": {
			Report{Record: unbound(func(*order.Record) {}), Asked: true},
			"intent     none bound: no money has moved\nlast error mismatch\ncharged    no\n",
		},
		"paid after a failed attempt": {
			Report{Record: with(func(r *order.Record) { r.LastError = "canary" })}, "intent     pi_1\nattempts   0\n",
		},
		"all of it went back": {
			Report{Record: with(func(r *order.Record) { r.Status = order.Refunded })}, "next       nothing: all of it went back\n",
		},
		"receipts": {
			Report{Record: &paid, Receipts: []receipt.Item{
				{Key: receipt.Paid, Status: receipt.Delivered, Message: "message-1", UpdatedAt: noon()},
				{Key: "refund#R-1", Status: receipt.Doubtful, Failure: receipt.Abandoned, UpdatedAt: noon()},
				{Key: "refund#R-2", Status: receipt.Failed, Failure: receipt.ResolvedByOperator, UpdatedAt: noon()},
				{Key: "refund#R-3", Status: receipt.Failed, Failure: "Reject", UpdatedAt: noon()},
			}},
			"receipt    2026-11-21 12:00:00.123 UTC  paid delivered  message-1\n" +
				"receipt    2026-11-21 12:00:00.123 UTC  refund#R-1 doubtful  claim_abandoned\n" +
				"receipt    2026-11-21 12:00:00.123 UTC  refund#R-2 failed  resolved_by_operator\n" +
				"receipt    2026-11-21 12:00:00.123 UTC  refund#R-3 failed  Reject\n" +
				"next       orders republish ORD-1: receipt refund#R-2 is to be sent\n" +
				"next       SES's report may still say whether receipt refund#R-1 was sent\nnext       Stripe was not read",
		},
		"a row is missing": {
			Report{Asked: true, Intents: []order.Intent{other}},
			"charged    once\nat Stripe  pi_2, succeeded, 24.00 USD, not bound to the order\n" +
				"           https://dashboard.stripe.com/payments/pi_2\n",
		},
		"a row that was lost, of which Stripe has an intent": {
			Report{Record: unbound(func(r *order.Record) { r.Suspect = "pi_4" })},
			"intent     none bound, but Stripe has pi_4: orders restore ORD-1 pi_4\nnext       orders restore ORD-1 pi_4: ",
		},
		"the customer must act": {
			Report{Record: with(func(r *order.Record) { r.Status, r.DueAt = order.ActionRequired, noon().Add(time.Hour) })},
			"recheck at 2026-11-21 13:00:00.123 UTC\nnext       the customer must authenticate; its recheck is due at 2026-11-21 13:00:00.123 UTC",
		},
		"a dispute, and times in UTC": {
			Report{Record: with(func(r *order.Record) {
				r.Dispute, r.UpdatedAt = won, noon().In(time.FixedZone("", 3600))
				r.Events = []order.Event{
					{Seq: 1, From: order.Open, To: order.Declined, Failure: "lost_card", At: noon()},
					{Seq: 3, From: order.Paid, To: order.Paid, Dispute: won, At: noon().AddDate(0, 0, 9)},
				}
			})},
			"dispute    du_1 won, opened 2026-11-23 12:00:00.123 UTC\nupdated    2026-11-21 12:00:00.123 UTC\n" +
				"event 1    2026-11-21 12:00:00.123 UTC  open -> declined  lost_card\n" +
				"event 3    2026-11-30 12:00:00.123 UTC  dispute du_1 won\n",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			f := tt.report
			f.ID, f.Now = "ORD-1", noon()
			text := f.Text()
			rest := text
			for part := range strings.SplitSeq(tt.want, "\n") {
				_, after, found := strings.Cut(rest, part)
				if rest = after; !found {
					t.Fatalf("got\n%s\nwant %q", text, part)
				}
			}
			if strings.Contains(text, "canary") {
				t.Errorf("got\n%s\nwant no customer, fingerprint or owner", text)
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
