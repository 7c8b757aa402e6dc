package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// TestRefundOfTheLocalSystem refunds an order that the compiled function charged.
func TestRefundOfTheLocalSystem(t *testing.T) {
	t.Parallel()
	kit := systemtest.New(t)
	for claim, fifo := range map[string]bool{"through a standard queue": false, "through a FIFO queue": true} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s, _ := kit.Start(t, unhurried(system.Options{FIFO: fifo}))
			ctx, cancel := s.Function.UntilExit(t.Context())
			defer cancel()
			var out strings.Builder
			sh := testShell(s.OperatorEnv(), "", &out)
			sh.Now = time.Now
			must(t, smoke{Customer: "cus_Smoke", Method: "pm_card_visa", Limit: time.Minute}.Run(ctx, sh))
			id := regexp.MustCompile(`SMOKE-[0-9a-z-]+`).FindString(out.String())
			part := makeRefund{Order: id, Amount: 30, Reason: "duplicate", Yes: true, Limit: time.Minute}
			rest := makeRefund{Order: id, All: true, Reason: "duplicate", Yes: true, Limit: time.Minute}
			for _, r := range []makeRefund{part, rest, part, rest} {
				if err := r.Run(ctx, sh); err != nil {
					t.Errorf("%v (%v), printed\n%s", err, context.Cause(ctx), &out)
				}
			}
			out.Reset()
			must(t, show{id}.Run(ctx, sh))
			for _, want := range []string{
				"status     refunded\n", "refunded   1.00 USD\nleft       0.00 USD\n",
				"refund     0.30 USD, operator-30, succeeded, re_", "refund     0.30 USD, operator-all, succeeded, re_",
			} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("printed\n%s\nwant %q in it", &out, want)
				}
			}
		})
	}
}
