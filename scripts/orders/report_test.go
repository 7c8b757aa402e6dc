package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
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
		report report
		want   string
		next   string
	}{
		"charged once": {
			report{record: &paid, asked: true, intents: []order.Intent{one, stray}},
			"charged    once\nat Stripe  pi_1, succeeded, 24.00 USD\n" +
				"           https://dashboard.stripe.com/test/payments/pi_1\n" +
				"at Stripe  pi_3, needs_confirmation, 24.00 USD, not bound to the order\n",
			"nothing: it is settled",
		},
		"charged twice": {
			report{record: &paid, asked: true, intents: []order.Intent{one, other}},
			"charged    2 TIMES\n", "refund pi_2 at Stripe, unless that was done: " +
				"docs/guides/runbooks.md#4-a-customer-says-they-were-charged-twice",
		},
		"charged three times, the row is open": {
			report{record: &open1, asked: true, intents: []order.Intent{other, stray, third, one}},
			"charged    3 TIMES\n", "refund pi_2 and pi_4 at Stripe, unless that was done: " +
				"docs/guides/runbooks.md#4-a-customer-says-they-were-charged-twice",
		},
		"not charged": {report{record: &open, asked: true}, "charged    no\n", "its message comes back"},
		"receipts": {
			report{record: &paid, receipts: []receipt.Item{
				{Key: receipt.Paid, Status: receipt.Delivered, Message: "message-1", UpdatedAt: noon()},
				{Key: "refund#R-1", Status: receipt.Doubtful, Failure: receipt.Abandoned, UpdatedAt: noon()},
			}},
			"receipt    2026-11-21 12:00:00.123 UTC  paid delivered  message-1\n" +
				"receipt    2026-11-21 12:00:00.123 UTC  refund#R-1 doubtful  claim_abandoned\n",
			"nothing: it is settled",
		},
		"a row is missing": {
			report{asked: true, intents: []order.Intent{other}},
			"charged    once\nat Stripe  pi_2, succeeded, 24.00 USD, not bound to the order\n" +
				"           https://dashboard.stripe.com/payments/pi_2\n",
			"a message of this order prepares another payment: restore the row first (orders restore --help)",
		},
		"Stripe was not read": {report{record: &paid}, "", "nothing: it is settled"},
		"in progress":         {report{record: &held}, "", "a function works on it until 2026-11-21 12:01:00.123 UTC"},
		"parked": {
			report{record: &parked}, "", "nothing by itself: its message is in the dead-letter queue, because of mismatch",
		},
		"the customer must act": {
			report{record: &waits},
			"",
			"the customer must authenticate; reconcile looks at it from 2026-11-21 13:00:00.123 UTC on",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			f := tt.report
			f.id, f.now = "ORD-1", noon()
			text := f.text()
			if !strings.Contains(text, tt.want) || !strings.HasSuffix(text, "next       "+tt.next+"\n") {
				t.Errorf("got\n%s\nwant %q, then next %q", text, tt.want, tt.next)
			}
			if !f.asked && strings.Contains(text, "charged") {
				t.Errorf("got\n%s\nwant no word about charges, because Stripe was not read", text)
			}
			if o := f.json(); o.OrderID != "ORD-1" || (o.Charges != nil) != f.asked || len(o.AtStripe) != len(f.intents) ||
				len(o.Receipts) != len(f.receipts) {
				t.Errorf("got %+v", o)
			}
		})
	}
}

// A table in the engine, a pretend Stripe, and every source that show reads.
func TestShow(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	process(t, d.store, d.payments, "ORD-1", "pm_card_visa")
	d.stripe.Advance(2 * time.Minute) // the search lags
	var out strings.Builder
	sh := testShell(d.environ, "", &out)
	sh.json = true
	must(t, show{"ORD-1"}.Run(t.Context(), sh))
	var got orderJSON
	must(t, json.Unmarshal([]byte(out.String()), &got))
	if strings.Contains(out.String(), "CUST987") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("got %s, want one line without the customer", &out)
	}
	got.CreatedAt, got.UpdatedAt = nil, nil
	want := orderJSON{
		OrderID: "ORD-1", Status: "paid", Amount: 3998, Currency: "usd", Intent: "pi_000001", Attempts: 1,
		Events:  []eventJSON{{Seq: 1, Type: "order.paid", From: "open", To: "paid", At: noon()}},
		Charges: new(1), WhatIsNext: "nothing: it is settled",
		AtStripe: []paymentJSON{{"pi_000001", "succeeded", 3998, true, "https://dashboard.stripe.com/test/payments/pi_000001"}},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("- got, + want:\n%s", diff)
	}
}

func TestShowPrintsTheOrderIfTheReceiptsCannotBeRead(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	process(t, d.store, d.payments, "ORD-1", "pm_card_visa")
	var out strings.Builder
	err := show{"ORD-1"}.Run(t.Context(), testShell(append(d.environ, "RECEIPTS_TABLE=none"), "", &out))
	if err == nil || !strings.Contains(hint(err).Error(), `read the receipts of order "ORD-1"`) ||
		!strings.Contains(hint(err).Error(), "RECEIPTS_TABLE, --region") {
		t.Errorf("got %v, want the table to check", err)
	}
	if !strings.Contains(out.String(), "status     paid\n") || !strings.Contains(out.String(), "charged    once\n") {
		t.Errorf("printed\n%s\nwant the row and its charge", &out)
	}
}

// Stripe has the order, and its row is missing, as after a restore from backup.
func TestShowFindsAPaymentWithoutARow(t *testing.T) {
	t.Parallel()
	d, lost := deploy(t), deploy(t)
	process(t, lost.store, d.payments, "ORD-1", "pm_card_visa")
	d.stripe.Advance(time.Minute) // the newest intent is not the one that was charged
	_, err := d.payments.Prepare(t.Context(), ordertest.Order("ORD-1"), order.PrepareAgainKey(scope, "ORD-1", 1))
	must(t, err)
	d.stripe.Advance(2 * time.Minute)
	var out strings.Builder
	err = show{"ORD-1"}.Run(t.Context(), testShell(d.environ, "", &out))
	code, ok := errors.AsType[exit](err)
	if !ok || code.ExitCode() != 2 || !strings.Contains(err.Error(), "restore it from pi_000001") {
		t.Errorf("got %v, want exit code 2 and the payment", err)
	}
	if !strings.Contains(out.String(), "charged    once") {
		t.Errorf("printed\n%s", &out)
	}
}
