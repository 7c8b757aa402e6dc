package main

import (
	"errors"
	"strings"
	"testing"

	"orderonce/domain/order"
	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

func TestCancel(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	process(t, d.store, d.payments, "DECLINED", "pm_card_chargeDeclined")
	process(t, d.store, d.payments, "PAID", "pm_card_visa")
	for _, step := range []struct {
		claim   string
		command cancel
		typed   string
		printed string
		err     error
		status  order.Status
	}{
		{"a word that is not the order id", cancel{ID: "DECLINED"}, "yes\n", "table ", shell.ErrNotConfirmed, order.Declined},
		{"the end of the input", cancel{ID: "DECLINED"}, "", "scope test", shell.ErrNotConfirmed, order.Declined},
		{"the order id", cancel{ID: "DECLINED"}, "DECLINED\n", "canceled: it was declined", nil, order.Canceled},
		{"a canceled order", cancel{ID: "DECLINED", Yes: true}, "", "canceled: it was canceled", nil, order.Canceled},
		{"a paid order", cancel{ID: "PAID", Yes: true}, "", "status     paid", cloud.NotCanceledError{Status: order.Paid}, order.Paid},
	} {
		var out strings.Builder
		err := step.command.Run(t.Context(), testShell(d.environ, step.typed, &out))
		if !errors.Is(err, step.err) || !strings.Contains(out.String(), step.printed) {
			t.Errorf("%s: got %v and\n%s\nwant %v and %q", step.claim, err, &out, step.err, step.printed)
		}
		if r, err := d.store.Load(t.Context(), order.ID(step.command.ID)); err != nil || r.Status != step.status {
			t.Errorf("%s: got status %s, %v, want %s", step.claim, r.Status, err, step.status)
		}
	}
	process(t, d.store, d.payments, "LATER", "pm_card_chargeDeclined")
	var out strings.Builder
	sh := testShell(d.environ, "", &out)
	sh.JSON = true
	must(t, cancel{ID: "LATER", Yes: true}.Run(t.Context(), sh))
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `{"orderId":"LATER","status":"canceled",`) {
		t.Errorf("printed %q as JSON, want the order as it is afterwards", got)
	}
	err := cancel{ID: "NONE", Yes: true}.Run(t.Context(), testShell(d.environ, "", new(strings.Builder)))
	if !errors.Is(err, order.ErrNotFound) || !strings.Contains(err.Error(), `cancel order "NONE"`) {
		t.Errorf("an order that was not posted: got %v, want ErrNotFound", err)
	}
}
