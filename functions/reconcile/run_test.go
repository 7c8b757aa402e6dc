package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"orderonce/adapters/config"
	"orderonce/adapters/lambda"
	"orderonce/domain/settle"
	"orderonce/functions/internal/functiontest"
)

// noon is in the future, because the deadline of a context is on the real clock.
func noon() time.Time { return time.Date(2126, 5, 1, 12, 0, 0, 0, time.UTC) }

func TestARunEndsBeforeTheFunctionsDeadline(t *testing.T) {
	var until time.Time
	r := &run{
		reconcile: func(_ context.Context, at time.Time) (settle.Reconciled, error) {
			until = at
			return settle.Reconciled{}, nil
		},
		margin: 12 * time.Second, now: noon, log: slog.New(slog.DiscardHandler), meter: lambda.NewMeter(io.Discard, "", nil, noon),
	}
	ctx, cancel := context.WithDeadline(t.Context(), noon().Add(20*time.Second))
	defer cancel()
	for left, ctx := range map[time.Duration]context.Context{8 * time.Second: ctx, 12 * time.Second: t.Context()} {
		if _, err := r.handle(ctx, nil); err != nil || until.Sub(noon()) != left {
			t.Errorf("got %v to recheck orders, %v, want %v", until.Sub(noon()), err, left)
		}
	}
}

func TestNoMoreOrdersAreRecheckedAtOnceThanCallsAreAllowed(t *testing.T) {
	for _, tt := range []struct{ parallel, rate, want int }{{10, 1000, 10}, {10, 3, 3}, {1, 10, 1}} {
		if got := (environment{Parallel: tt.parallel, Rate: tt.rate}).parallel(); got != tt.want {
			t.Errorf("%d orders and %d calls: got %d, want %d", tt.parallel, tt.rate, got, tt.want)
		}
	}
}

func TestARunWithOrdersThatFailedIsAnError(t *testing.T) {
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
		c, err := config.Read[environment](functiontest.Environ("", change))
		if functiontest.Wrong(err, want) {
			t.Errorf("%s: got %v, want %q", change, err, want)
		}
		if want == "" && c.margin() != 26*time.Second {
			t.Errorf("%s: got a margin of %v, want 26s", change, c.margin())
		}
	}
}
