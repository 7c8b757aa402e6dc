package main

import (
	"errors"
	"io"
	"math"
	"os"
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
	"orderonce/domain/order"
)

// start serves the back ends and connects the real adapters to them.
func start(t *testing.T) (*backends, *dynamodb.Store, *stripe.Payments) {
	t.Helper()
	b, err := serveBackends()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	config := dynamodbtest.Config(b.dynamodbURL, func(string) string { return "" })
	return b, dynamodb.New(config, "orders"), stripe.New(stripe.Options{Key: pretendKey, Scope: scope, BaseURL: b.stripeURL})
}

func newOrder(t *testing.T, id string) order.Order {
	t.Helper()
	o, err := order.New(order.Draft{
		ID: id, CustomerID: "CUST-1", Currency: "usd", Lines: []order.Line{{SKU: "MUG", Quantity: 1, UnitAmount: total}},
		Payment: order.Payment{Customer: "cus_Bench", Method: "pm_card_visa"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant, as far as Go has one

func TestCannedBackEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, id         string
		want             order.Result
		dynamodb, stripe int64
	}{
		{
			name: "a fresh order is charged with three calls and two", id: freshPrefix + "1", dynamodb: 3, stripe: 2,
			want: order.Result{
				Verdict: order.Done, Reason: order.ReasonSettled, Status: order.Paid, Attempt: 1,
				Intent: "pi_" + freshPrefix + "1",
			},
		},
		{
			name: "a duplicate costs one call and none", id: settledPrefix + "1", dynamodb: 1,
			want: order.Result{Verdict: order.Done, Reason: order.ReasonDuplicate, Status: order.Paid, Intent: "pi_settled"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, claims, payments := start(t)
			processor := order.Processor{
				Claims: claims, Payments: payments, Scope: scope, ConfirmTime: time.Second, Now: func() time.Time { return noon },
			}
			got := processor.Process(t.Context(), newOrder(t, tt.id), order.Lease{Owner: "me", From: noon, Until: noon.Add(time.Minute)})
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(order.Result{}, "Err", "RequestID")); diff != "" {
				t.Error(diff, got.Err)
			}
			if d, s := b.dynamodbCalls.Load(), b.stripeCalls.Load(); d != tt.dynamodb || s != tt.stripe {
				t.Errorf("%d calls to DynamoDB and %d to Stripe, want %d and %d", d, s, tt.dynamodb, tt.stripe)
			}
		})
	}
}

func TestCannedBackEndsRefuseWhatNoSettledOrderAsks(t *testing.T) {
	t.Parallel()
	_, store, payments := start(t)
	o := newOrder(t, freshPrefix+"1")
	claim := order.Claim{Order: o, Lease: order.Lease{Owner: "me", From: noon, Until: noon.Add(time.Minute)}, Attempt: 1}
	if err := store.Release(t.Context(), claim, order.ReasonUnknown, noon); err == nil {
		t.Error("Release was answered")
	}
	if _, err := store.Load(t.Context(), o.ID()); err == nil || errors.Is(err, order.ErrNotFound) {
		t.Errorf("Load: error = %v, want a refusal", err)
	}
	_, err := payments.Read(t.Context(), "pi_1")
	if refused, ok := errors.AsType[*order.PaymentError](err); !ok || refused.Trouble != order.Misconfigured {
		t.Errorf("Read: error = %v, want a refusal, which a read takes for our mistake", err)
	}
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	if os.Getenv("ORDERONCE_SLOW") == "" {
		t.Skip("builds and measures the function: set ORDERONCE_SLOW=1, or run make test")
	}
	binary := filepath.Join(t.TempDir(), "bootstrap")
	if err := lambdatest.Build(t.Context(), function, binary); err != nil {
		t.Fatal(err)
	}
	f, err := measure(t.Context(), plan{Rounds: 2, ColdStarts: 1, Batches: 2, Duplicates: 1}, binary, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if f.FirstAnswerMS <= 0 || f.Fresh.PerSecond <= 0 || f.Duplicates.PerSecond <= 0 || f.ZipBytes <= 0 || f.PeakRSSBytes < 0 {
		t.Errorf("%+v lacks a figure", f)
	}
	if f.CallsPerOrder != 5 || f.CallsDuplicate != 1 {
		t.Errorf("%v calls for a fresh order and %v for a duplicate, want 5 and 1", f.CallsPerOrder, f.CallsDuplicate)
	}
	if _, err := measure(t.Context(), plan{}, filepath.Join(t.TempDir(), "nothing"), io.Discard); err == nil {
		t.Error("a binary that does not exist was measured")
	}
}

func TestPlanMeasuresEveryFigure(t *testing.T) {
	t.Parallel()
	if err := (plan{1, 1, 1, 1}).Validate(); err != nil {
		t.Errorf("error = %v, want none", err)
	}
	for _, p := range []plan{{0, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, -1}} {
		if err := p.Validate(); !errors.Is(err, errNothing) {
			t.Errorf("%+v: error = %v, want errNothing", p, err)
		}
	}
}

func TestAnOrderThatComesBackSpoilsTheMeasurement(t *testing.T) {
	t.Parallel()
	if err := settled([]byte(`{"batchItemFailures":[]}`)); err != nil {
		t.Errorf("error = %v, want none", err)
	}
	for _, answer := range []string{`{"batchItemFailures":[{"itemIdentifier":"1"}]}`, `null`, ``} {
		if err := settled([]byte(answer)); !errors.Is(err, errGivenBack) {
			t.Errorf("answer %q: error = %v, want errGivenBack", answer, err)
		}
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		all  []float64
		want float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{900, 1, 2}, 2}} {
		if got := median(tt.all); got != tt.want {
			t.Errorf("median of %v = %v, want %v", tt.all, got, tt.want)
		}
	}
	got := medianSpeed([]speed{{900, 3}, {1, 2}, {2, 1}})
	if want := (speed{PerSecond: 2, CPUMS: 2}); got != want {
		t.Errorf("median speed = %+v, want %+v", got, want)
	}
}

func TestAims(t *testing.T) {
	t.Parallel()
	good := figures{FirstAnswerMS: 20, Fresh: speed{800, 1}, PeakRSSBytes: 30 << 20, ZipBytes: 4_500_000}
	if got := missed(good); got != nil {
		t.Errorf("missed %q, want none at the very aims", got)
	}
	bad := figures{FirstAnswerMS: 21, Fresh: speed{799, math.MaxInt32}, PeakRSSBytes: 31 << 20, ZipBytes: 4_600_000}
	want := []string{"process start to first answer, one order", "fresh orders, one instance", "peak memory (RSS)", "zip"}
	if diff := cmp.Diff(want, missed(bad)); diff != "" {
		t.Error(diff)
	}
}

func missed(f figures) (names []string) {
	for _, a := range aims(f) {
		if a.missed() {
			names = append(names, a.figure)
		}
	}
	return names
}

func TestShow(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	show(&out, plan{Rounds: 7, Batches: 286}, figures{FirstAnswerMS: 21.04, Fresh: speed{900, 0}, CallsPerOrder: 5}, time.Minute)
	for _, want := range []string{
		"21.0 ms │ missed", "900 /s │        │", "not known here",
		"20020 fresh orders in batches of 10", "5.00 calls", "1 missed.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
