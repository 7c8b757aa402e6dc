package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"testing"
	"time"

	"orderonce/adapters/lambda"
	"orderonce/domain/order"
	"orderonce/domain/refund"
)

// A refund whose message is gone, one that is unknown, and one whose status Stripe does
// not name, are reported at each recheck, also if it failed. A refund that an attempt
// touched within a day is not.
func TestARecheckReportsRefundsThatAPersonMustLookAt(t *testing.T) {
	account := refund.Account{Seq: 7, Items: []refund.Item{
		{ID: "GONE", Status: refund.Open, UpdatedAt: noon(), Until: noon().Add(time.Minute)},
		{ID: "NEW", Status: refund.Open, UpdatedAt: noon().Add(time.Second)},
		{ID: "UNNAMED", Status: refund.Pending, Failure: refund.UnknownStatus},
		{ID: "PENDING", Status: refund.Pending},
		{ID: "UNKNOWN", Status: refund.Unknown},
	}}
	errDown := errors.New("unavailable")
	for after, want := range map[time.Duration]string{
		24*time.Hour - time.Second: "[UNNAMED UNKNOWN] [] [1]", 24 * time.Hour: "[GONE UNNAMED UNKNOWN] [86400000] [1]",
	} {
		var out bytes.Buffer
		now := func() time.Time { return noon().Add(after) }
		r := refunds{
			func(context.Context, order.ID) (refund.Account, error) { return account, errDown }, now,
			func(context.Context) error { return nil }, slog.New(slog.NewJSONHandler(&out, nil)), lambda.NewMeter(&out, "", nil, now),
		}
		if seq, err := r.recheck(t.Context(), "ORD-1"); seq != 7 || !errors.Is(err, errDown) {
			t.Errorf("after %v: got %d, %v, want the number of events and the error", after, seq, err)
		}
		r.meter.Flush()
		found := func(pattern string) (all []string) {
			for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(out.String(), -1) {
				all = append(all, match[1])
			}
			return all
		}
		if got := fmt.Sprint(found(`"refund_id":"(\w*)"`), found(`"OldestWaiting":\[(\d*)\]`), found(`"RefundsUnknown":\[(\d*)\]`)); got != want {
			t.Errorf("after %v: got refunds, ages and counts %s, want %s\n%s", after, got, want, &out)
		}
	}
}

// A recheck that does not get its turn makes no call.
func TestARecheckWaitsForItsTurn(t *testing.T) {
	r := refunds{allow: func(context.Context) error { return context.Canceled }}
	if _, err := r.recheck(t.Context(), "ORD-1"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
