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
	"orderonce/scripts/lab/guards"
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

// A fresh order takes three DynamoDB calls and two Stripe calls, a duplicate one.
func TestCannedBackEnds(t *testing.T) {
	paid := order.Result{Verdict: order.Done, Status: order.Paid}
	fresh, duplicate := paid, paid
	fresh.Reason, fresh.Attempt, fresh.Intent = order.ReasonSettled, 1, "pi_"+freshPrefix+"1"
	duplicate.Reason, duplicate.Intent = order.ReasonDuplicate, "pi_settled"
	for id, tt := range map[string]struct {
		want             order.Result
		dynamodb, stripe int64
	}{freshPrefix + "1": {fresh, 3, 2}, settledPrefix + "1": {duplicate, 1, 0}} {
		b, claims, payments := start(t)
		processor := order.Processor{
			Store: claims, Payments: payments, Scope: scope, ConfirmTime: time.Second, Now: func() time.Time { return noon },
		}
		got := processor.Process(t.Context(), newOrder(t, id), noon, lease())
		if diff := cmp.Diff(got, tt.want, cmpopts.IgnoreFields(order.Result{}, "Err", "RequestID")); diff != "" {
			t.Errorf("%s: %s %v", id, diff, got.Err)
		}
		if d, s := b.dynamodbCalls.Load(), b.stripeCalls.Load(); d != tt.dynamodb || s != tt.stripe {
			t.Errorf("%s: got %d calls to DynamoDB and %d to Stripe, want %d and %d", id, d, s, tt.dynamodb, tt.stripe)
		}
	}
}

func TestMeasure(t *testing.T) {
	lambdatest.FullOnly(t)
	root, err := guards.Root(t.Context())
	must(t, err)
	binary := filepath.Join(t.TempDir(), "bootstrap")
	must(t, build(t.Context(), root, binary))
	p := plan{Rounds: 3, ColdStarts: 1, Batches: 2, Duplicates: 1}
	all, err := measure(t.Context(), p, []string{binary, binary}, io.Discard)
	must(t, err)
	for _, f := range all {
		if len(f.FirstResponseMS) != 3 || len(f.Fresh.CPUMS) != 3 || len(f.Duplicates.PerSecond) != 3 ||
			min(median(f.FirstResponseMS), median(f.Fresh.PerSecond), f.ZipSize[0]) <= 0 {
			t.Errorf("got %+v, want every figure, one a round", f)
		}
		if f.Fresh.Calls != 5 || f.Duplicates.Calls != 1 {
			t.Errorf("got %v calls for a fresh order and %v for a duplicate, want 5 and 1", f.Fresh.Calls, f.Duplicates.Calls)
		}
	}
}

// Begin of an earlier release reads the row that it wrote.
func TestTheCannedTableEvaluatesAnUpdate(t *testing.T) {
	_, response := respondToUpdate([]byte(`{"Key": {"orderId": {"S": "FRESH1"}, "sk": {"S": "order"}},
		"UpdateExpression": "SET #owner = :owner, attempt = if_not_exists(attempt, :zero) + :one, leaseUntil = :until, ` +
		`seq = if_not_exists(seq, :zero) REMOVE parkedAt", "ExpressionAttributeNames": {"#owner": "owner"},
		"ExpressionAttributeValues": {":owner": {"S": "me"}, ":zero": {"N": "0"}, ":one": {"N": "1"}, ":until": {"N": "7"}},
		"ReturnValues": "ALL_NEW"}`))
	want := `{"Attributes":{"attempt":{"N":"1"},"leaseUntil":{"N":"7"},"orderId":{"S":"FRESH1"},` +
		`"owner":{"S":"me"},"seq":{"N":"0"},"sk":{"S":"order"}}}`
	if response != want {
		t.Errorf("got %s, want %s", response, want)
	}
}

func TestABatchItemFailureFailsTheMeasurement(t *testing.T) {
	for response, want := range map[string]error{
		`{"batchItemFailures":[]}`: nil, `{"batchItemFailures":[{"itemIdentifier":"1"}]}`: errNotSettled, ``: errNotSettled,
	} {
		if err := settled([]byte(response)); !errors.Is(err, want) {
			t.Errorf("response %q: got error %v, want %v", response, err, want)
		}
	}
}

func TestFiguresAreShownBesideTheirTargets(t *testing.T) {
	now := figures{
		FirstResponseMS: []float64{20, 20.04, 30}, PeakRSS: []float64{30 << 20}, ZipSize: []float64{4_614_999},
		Fresh:      speed{[]float64{700, 800, 900}, []float64{0.4561}, 5},
		Duplicates: speed{[]float64{4321.6}, []float64{0.123}, 1},
	}
	base := now
	base.FirstResponseMS, base.Fresh.PerSecond = []float64{40, 30.06, 30}, []float64{700, 1600, 1800}
	var out strings.Builder
	show(&out, plan{Rounds: 2, ColdStarts: 3, Batches: 4, Duplicates: 5}, "v1", []figures{now, base}, time.Minute)
	got := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"now v1 change process start to first response 20.0 ms 30.1 ms -33.3 % at most 20.0 ms missed fresh",
		"800 /s 1600 /s -50.0 % at least 800 /s CPU", "zip 4.61 MB 4.61 MB +0.0 % at most 4.50 MB missed",
		"30.0 MiB 30.0 MiB +0.0 % at most 30.0 MiB zip", "5.00 calls to DynamoDB and Stripe, a duplicate 1.00.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

// must ends the test on an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
