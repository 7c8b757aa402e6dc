package main

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/stripe"
	"orderonce/adapters/stripe/charge"
	"orderonce/domain/order"
)

// start serves the back ends and connects the real adapters to them.
func start(t *testing.T) (*backends, *dynamodb.Store, *charge.Payments) {
	t.Helper()
	b, err := serveBackends()
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	config := dynamodbtest.Config(b.dynamodbURL, func(string) string { return "" })
	store := dynamodb.New(config, "orders")
	return b, store, charge.New(stripe.Options{Key: pretendKey, Scope: scope, BaseURL: b.stripeURL})
}

func newOrder(t *testing.T, id string) order.Order {
	t.Helper()
	o, err := order.New(order.Draft{
		ID: id, CustomerID: "CUST-1", Currency: "usd", Lines: []order.Line{{SKU: "MUG", Quantity: 1, UnitAmount: total}},
		Payment: order.Payment{Customer: "cus_Bench", Method: "pm_card_visa"},
	})
	must(t, err)
	return o
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant

func lease() order.Lease { return order.Lease{Owner: "me", From: noon, Until: noon.Add(time.Minute)} }

func TestCannedBackEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, id         string
		want             order.Result
		dynamodb, stripe int64
	}{
		{
			name: "a fresh order takes three DynamoDB calls and two Stripe calls", id: freshPrefix + "1", dynamodb: 3, stripe: 2,
			want: order.Result{
				Verdict: order.Done, Reason: order.ReasonSettled, Status: order.Paid, Attempt: 1,
				Intent: "pi_" + freshPrefix + "1",
			},
		},
		{
			name: "a duplicate takes one DynamoDB call", id: settledPrefix + "1", dynamodb: 1,
			want: order.Result{Verdict: order.Done, Reason: order.ReasonDuplicate, Status: order.Paid, Intent: "pi_settled"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, claims, payments := start(t)
			processor := order.Processor{
				Store: claims, Payments: payments, Scope: scope, ConfirmTime: time.Second, Now: func() time.Time { return noon },
			}
			got := processor.Process(t.Context(), newOrder(t, tt.id), noon, lease())
			if diff := cmp.Diff(got, tt.want, cmpopts.IgnoreFields(order.Result{}, "Err", "RequestID")); diff != "" {
				t.Error(diff, got.Err)
			}
			if d, s := b.dynamodbCalls.Load(), b.stripeCalls.Load(); d != tt.dynamodb || s != tt.stripe {
				t.Errorf("got %d calls to DynamoDB and %d to Stripe, want %d and %d", d, s, tt.dynamodb, tt.stripe)
			}
		})
	}
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	binary := filepath.Join(t.TempDir(), "bootstrap")
	must(t, build(t.Context(), binary))
	f, err := measure(t.Context(), plan{Rounds: 2, ColdStarts: 1, Batches: 2, Duplicates: 1}, binary, io.Discard)
	must(t, err)
	if min(f.FirstResponseMS, f.Fresh.PerSecond, f.Duplicates.PerSecond, float64(f.ZipBytes)) <= 0 || f.PeakRSSBytes < 0 {
		t.Errorf("got %+v, want every figure", f)
	}
	if f.CallsPerOrder != 5 || f.CallsDuplicate != 1 {
		t.Errorf("got %v calls for a fresh order and %v for a duplicate, want 5 and 1", f.CallsPerOrder, f.CallsDuplicate)
	}
	if _, err := measure(t.Context(), plan{}, filepath.Join(t.TempDir(), "nothing"), io.Discard); err == nil {
		t.Error("got no error for a missing binary")
	}
}

func TestABatchItemFailureFailsTheMeasurement(t *testing.T) {
	t.Parallel()
	if err := settled([]byte(`{"batchItemFailures":[]}`)); err != nil {
		t.Errorf("got error %v, want none", err)
	}
	for _, response := range []string{`{"batchItemFailures":[{"itemIdentifier":"1"}]}`, `null`, ``} {
		if err := settled([]byte(response)); !errors.Is(err, errNotSettled) {
			t.Errorf("response %q: got error %v, want errNotSettled", response, err)
		}
	}
}

func TestFiguresAreShownInTheirUnitsBesideTheirTargets(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	show(&out, plan{Rounds: 2, ColdStarts: 3, Batches: 4, Duplicates: 5}, figures{
		FirstResponseMS: 20.04, Fresh: speed{800, 0.456}, Duplicates: speed{4321.6, 0.123}, PeakRSSBytes: 30 << 20,
		ZipBytes: 4_614_999, CallsPerOrder: 5, CallsDuplicate: 1,
	}, 12400*time.Millisecond)
	want := []string{
		"process start to first response 20.0 ms at most 20.0 ms missed", "fresh orders, one instance 800 /s at least 800 /s",
		"CPU of a fresh order 0.46 ms", "duplicates, one instance 4322 /s", "CPU of a duplicate 0.12 ms",
		"peak memory (RSS) 30.0 MiB at most 30.0 MiB", "zip 4.61 MB at most 4.50 MB missed", "",
		"Medians of 2 rounds: 6 cold starts, 80 fresh orders in batches of 10, 100 duplicates; 12 s on",
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if diff := cmp.Diff(got[:len(want)], want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	if !strings.Contains(out.String(), "A fresh order made 5.00 calls to DynamoDB and Stripe, a duplicate 1.00.") {
		t.Errorf("got no calls in\n%s", out.String())
	}
}

// must ends the test on an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
