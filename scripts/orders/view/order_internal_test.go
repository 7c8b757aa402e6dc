package view

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/domain/order"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	open := order.Record{
		OrderID: "ORD-1", CustomerID: "canary", Fingerprint: "v1:canary", Total: order.Money{Amount: 2500, Currency: "eur"},
		Status: order.Open, Owner: "canary", Until: noon().Add(time.Minute), Attempt: 3, LastError: "provider_unknown",
		CreatedAt: noon(), UpdatedAt: noon().Add(time.Second), DueAt: noon().Add(15 * time.Minute),
	}
	paid := order.Record{
		OrderID: "ORD-2", CustomerID: "canary", Fingerprint: "v1:canary", Total: order.Money{Amount: 99, Currency: "jpy"},
		Status: order.Paid, Intent: "pi_2", Failure: "", Attempt: 1, CreatedAt: noon(), UpdatedAt: noon().In(time.FixedZone("", 3600)),
		Events: []order.Event{
			{Seq: 1, From: order.Open, To: order.Declined, Failure: "lost_card", Intent: "pi_2", At: noon()},
			{Seq: 2, From: order.Declined, To: order.Paid, Intent: "pi_2", At: noon().Add(time.Hour)},
		},
	}
	won := order.Dispute{ID: "du_1", Status: order.DisputeWon, CreatedAt: noon().AddDate(0, 0, 2)}
	disputed := paid
	disputed.Dispute = won
	disputed.Events = []order.Event{{Seq: 3, From: order.Paid, To: order.Paid, Dispute: won, At: noon().AddDate(0, 0, 9)}}
	waits := order.Record{
		OrderID: "ORD-3", Status: order.ActionRequired, Failure: "authentication_required", Intent: "pi_3",
	}
	lost := order.Record{OrderID: "ORD-4", Status: order.Open, Suspect: "pi_4"}
	for claim, tt := range map[string]struct {
		record order.Record
		want   []string
	}{
		"an order whose row was lost shows the intent that Stripe has": {lost, []string{
			"order      ORD-4", "status     open", "amount     " + lost.Total.String(),
			"intent     none bound, but Stripe has pi_4: orders restore ORD-4 pi_4", "attempts   0",
			"created    0001-01-01 00:00:00.000 UTC", "updated    0001-01-01 00:00:00.000 UTC",
		}},
		"an open order shows its lease and that no intent is bound": {open, []string{
			"order      ORD-1", "status     open", "amount     25.00 EUR",
			"intent     none bound: no money has moved", "last error provider_unknown", "attempts   3",
			"held until 2026-11-21 12:01:00.123 UTC", "created    2026-11-21 12:00:00.123 UTC",
			"updated    2026-11-21 12:00:01.123 UTC", "recheck at 2026-11-21 12:15:00.123 UTC",
		}},
		"a settled order shows its events, in UTC": {paid, []string{
			"order      ORD-2", "status     paid", "amount     99 JPY", "intent     pi_2", "attempts   1",
			"created    2026-11-21 12:00:00.123 UTC", "updated    2026-11-21 12:00:00.123 UTC",
			"event 1    2026-11-21 12:00:00.123 UTC  open -> declined  lost_card",
			"event 2    2026-11-21 13:00:00.123 UTC  declined -> paid",
		}},
		"a disputed order shows its dispute": {disputed, []string{
			"order      ORD-2", "status     paid", "amount     99 JPY", "intent     pi_2",
			"dispute    du_1 won, opened 2026-11-23 12:00:00.123 UTC", "attempts   1",
			"created    2026-11-21 12:00:00.123 UTC", "updated    2026-11-21 12:00:00.123 UTC",
			"event 3    2026-11-30 12:00:00.123 UTC  dispute du_1 won",
		}},
		"an order that needs the customer shows why": {waits, []string{
			"order      ORD-3", "status     action_required", "amount     " + waits.Total.String(),
			"intent     pi_3", "failure    authentication_required", "attempts   0",
			"created    0001-01-01 00:00:00.000 UTC", "updated    0001-01-01 00:00:00.000 UTC",
		}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			got := Order(tt.record)
			if diff := cmp.Diff(strings.Split(got, "\n"), append(tt.want, "")); diff != "" {
				t.Errorf("- got, + want:\n%s", diff)
			}
			if strings.Contains(got, "canary") {
				t.Errorf("the customer, the fingerprint or the owner is shown:\n%s", got)
			}
		})
	}
}

// noon is when the orders of these tests were created.
func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 123_000_000, time.UTC) }
