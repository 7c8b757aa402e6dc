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
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
	"orderonce/scripts/orders/view"
)

// A table in the engine, a pretend Stripe, and every source that show reads.
func TestShow(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	process(t, d.store, d.payments, "ORD-1", "pm_card_visa")
	d.stripe.Advance(2 * time.Minute) // the search lags
	var out strings.Builder
	sh := testShell(d.environ, "", &out)
	sh.JSON = true
	must(t, show{"ORD-1"}.Run(t.Context(), sh))
	var got view.OrderJSON
	must(t, json.Unmarshal([]byte(out.String()), &got))
	if strings.Contains(out.String(), "CUST987") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("got %s, want one line without the customer", &out)
	}
	got.CreatedAt, got.UpdatedAt = nil, nil
	want := view.OrderJSON{
		OrderID: "ORD-1", Status: "paid", Amount: 3998, Currency: "usd", Intent: "pi_000001", Attempts: 1,
		Events:  []view.EventJSON{{Seq: 1, Type: "order.paid", From: "open", To: "paid", At: noon()}},
		Charges: new(1), WhatIsNext: "nothing: it is settled",
		AtStripe: []view.PaymentJSON{{ID: "pi_000001", State: "succeeded", Amount: 3998, Bound: true, Dashboard: "https://dashboard.stripe.com/test/payments/pi_000001"}},
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
	if err == nil || !strings.Contains(cloud.Hint(err).Error(), `read the receipts of order "ORD-1"`) ||
		!strings.Contains(cloud.Hint(err).Error(), "RECEIPTS_TABLE, --region") {
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
	code, ok := errors.AsType[shell.LeftError](err)
	if !ok || code.ExitCode() != 2 || !strings.Contains(err.Error(), "restore it from pi_000001") {
		t.Errorf("got %v, want exit code 2 and the payment", err)
	}
	if !strings.Contains(out.String(), "charged    once") {
		t.Errorf("printed\n%s", &out)
	}
}
