package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/lambda"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/refund"
	"orderonce/domain/refund/refundtest"
)

// A refund whose message is gone, and one whose status Stripe does not name, are reported
// at each look. A refund that an attempt touched within a day is not.
func TestALookReportsRefundsThatAPersonMustLookAt(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	intents, orders := &ordertest.Bank{Scope: "test"}, new(ordertest.Memory)
	p := order.Processor{Store: orders, Payments: intents, Scope: "test", Now: noon, ConfirmTime: time.Second}
	lease := order.Lease{Owner: "charge", From: noon(), Until: noon().Add(time.Minute)}
	if got := p.Process(t.Context(), ordertest.Order("ORD-1"), noon(), lease); got.Status != order.Paid {
		t.Fatalf("got %+v, want a paid order", got)
	}
	now := noon()
	clock := func() time.Time { return now }
	bank := &refundtest.Bank{Intents: intents, Now: clock, Takes: true}
	store := refundtest.NewMemory(orders)
	begin := func(id string) refund.Claim {
		r, err := refund.New(refund.Draft{OrderID: "ORD-1", RefundID: id, Amount: 1, Reason: "duplicate"})
		if err != nil {
			t.Fatal(err)
		}
		c, err := refund.Begin(t.Context(), store, r, order.Lease{Owner: id, From: now, Until: now.Add(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	begin("GONE")
	unnamed := refund.Outcome{Status: refund.Pending, Refund: "re_9", Failure: refund.UnknownStatus}
	if err := begin("UNNAMED").Finish(t.Context(), store, unnamed, now); err != nil {
		t.Fatal(err)
	}
	looks := refunds{
		refund.Refresher{Store: store, Provider: bank, Scope: "test", Now: clock},
		func(context.Context) error { return nil }, slog.New(slog.NewJSONHandler(&out, nil)), lambda.NewMeter(&out, "orderonce", nil, clock),
	}
	for _, tt := range []struct {
		after time.Duration
		want  string // refunds in the log
		age   string // metric
	}{
		{24*time.Hour - time.Second, "UNNAMED", ""},
		{24 * time.Hour, "GONE UNNAMED", `"OldestWaiting":[86400000]`},
	} {
		now = noon().Add(tt.after)
		out.Reset()
		if tt.age == "" {
			begin("NEW")
		}
		if _, err := looks.recheck(t.Context(), "ORD-1"); err != nil {
			t.Fatal(err)
		}
		looks.meter.Flush()
		var got []string
		for line := range strings.Lines(out.String()) {
			var l struct {
				Order  string `json:"order_id"`
				Refund string `json:"refund_id"`
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			if l.Order == "ORD-1" {
				got = append(got, l.Refund)
			}
		}
		if strings.Join(got, " ") != tt.want || strings.Contains(out.String(), "OldestWaiting") != (tt.age != "") ||
			!strings.Contains(out.String(), tt.age) {
			t.Errorf("after %v: got %q and\n%s\nwant %s, %s", tt.after, got, out.String(), tt.want, tt.age)
		}
	}
}

// A look that does not get its turn, or no answer, is one that failed.
func TestALookAtRefundsReturnsItsError(t *testing.T) {
	t.Parallel()
	orders := new(ordertest.Memory)
	looks := refunds{
		refresher: refund.Refresher{Store: refundtest.NewMemory(orders), Scope: "test", Now: noon},
		allow:     func(context.Context) error { return nil },
	}
	if _, err := looks.recheck(t.Context(), "MISSING"); !errors.Is(err, order.ErrNotFound) {
		t.Errorf("got %v, want %v", err, order.ErrNotFound)
	}
	looks.allow = func(context.Context) error { return context.Canceled }
	if _, err := looks.recheck(t.Context(), "MISSING"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
