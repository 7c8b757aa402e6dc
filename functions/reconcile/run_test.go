package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/lambda"
	"orderonce/domain/order"
	"orderonce/domain/order/ordertest"
	"orderonce/domain/settle"
)

// noon is in the future, because the deadline of a context is on the real clock.
func noon() time.Time { return time.Date(2126, 5, 1, 12, 0, 0, 0, time.UTC) }

// waiting returns a store and a bank in which n payments wait for the bank since noon.
func waiting(t *testing.T, n int) (*ordertest.Memory, *ordertest.Bank) {
	t.Helper()
	store, bank := new(ordertest.Memory), &ordertest.Bank{Scope: "test"}
	p := order.Processor{Store: store, Payments: bank, Scope: "test", Now: noon, ConfirmTime: time.Second}
	for i := range n {
		d := ordertest.Draft(order.ID(fmt.Sprintf("ORD-%d", i+1)))
		d.Payment.Method = ordertest.PaymentMethod(ordertest.TakesDays)
		o, err := order.New(d)
		if err != nil {
			t.Fatal(err)
		}
		l := order.Lease{Owner: fmt.Sprint(i), From: noon(), Until: noon().Add(time.Minute)}
		if got := p.Process(t.Context(), o, noon(), l); got.Status != order.Pending {
			t.Fatalf("got %+v, want a pending order", got)
		}
	}
	return store, bank
}

func TestARunEndsBeforeTheFunctionsDeadline(t *testing.T) {
	t.Parallel()
	store, bank := waiting(t, 20)
	began := noon().Add(2 * time.Hour)
	var looks atomic.Int64 // one a second
	now := func() time.Time { return began.Add(time.Duration(looks.Load()) * time.Second) }
	var out bytes.Buffer
	r := &run{
		reconciler: settle.Reconciler{
			Follower: settle.Follower{
				Store: store, Scope: "test", Now: now,
				Payments: settle.Paced{Payments: bank, Allow: func(context.Context) error { looks.Add(1); return nil }},
			},
			Waiting: store, Parallel: 1,
		},
		margin: 12 * time.Second, now: now, log: slog.New(slog.NewJSONHandler(&out, nil)),
		meter: lambda.NewMeter(&out, "orderonce", nil, now),
	}
	ctx, cancel := context.WithDeadline(t.Context(), began.Add(20*time.Second))
	defer cancel()
	if _, err := r.handle(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"Reconciled":[8]`) || !strings.Contains(out.String(), `"more":true`) {
		t.Errorf("got %s, want eight orders, because the last twelve seconds are kept", out.String())
	}
}

func TestARunWithOrdersThatFailedIsAnError(t *testing.T) {
	t.Parallel()
	errDown := errors.New("unavailable")
	failed := []settle.FailedRecheck{{OrderID: "ORD-1", Err: errDown}}
	for claim, tt := range map[string]struct {
		done  settle.Reconciled
		err   error
		level string
	}{
		"none":                     {settle.Reconciled{}, nil, `"level":"INFO"`},
		"one failed":               {settle.Reconciled{Failed: failed}, nil, `"level":"ERROR"`},
		"one was not answered":     {settle.Reconciled{Unavailable: failed}, nil, `"level":"ERROR"`},
		"the index cannot be read": {settle.Reconciled{}, errDown, `"level":"ERROR"`},
	} {
		var out bytes.Buffer
		r := &run{log: slog.New(slog.NewJSONHandler(&out, nil)), meter: lambda.NewMeter(&out, "orderonce", nil, noon)}
		r.report(t.Context(), tt.done, tt.err)
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, `"msg":"reconciled"`) && !strings.Contains(line, tt.level) {
				t.Errorf("%s: got %s, want %s", claim, line, tt.level)
			}
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	valid := []string{
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=pretend", "AWS_SECRET_ACCESS_KEY=pretend",
		"ORDERS_TABLE=orders", "SCOPE=test", "STRIPE_SECRET_KEY=sk_test_canary", "STRIPE_API_BASE=http://127.0.0.1:1",
	}
	for change, want := range map[string]string{
		"SCOPE=test":        "",
		"STRIPE_TIMEOUT=0s": "STRIPE_TIMEOUT: want more than 0",
		"PARALLEL_ORDERS=0": "PARALLEL_ORDERS: want at least 1",
		"PARALLEL_ORDERS=1": "",
		"STOCK_HOLD=0s":     "STOCK_HOLD: want more than 0",
		"STRIPE_RATE=0":     "STRIPE_RATE: want 1 to 1000 calls a second",
		"STRIPE_RATE=1001":  "STRIPE_RATE: want 1 to 1000 calls a second",
		"STRIPE_RATE=1000":  "",
		"STRIPE_RATE=1":     "",
	} {
		c, err := config.Read[environment](append(valid, change))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", change, err, want)
		}
		if want == "" && c.margin() != 26*time.Second {
			t.Errorf("%s: got a margin of %v, want 26s", change, c.margin())
		}
	}
}
