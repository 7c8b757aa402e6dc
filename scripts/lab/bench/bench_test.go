package main

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"orderonce/adapters/dynamodb"
	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/orders"
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
				Claims: claims, Payments: payments, Scope: scope, ConfirmTime: time.Second, Now: func() time.Time { return noon },
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

func TestCannedBackEndsRejectWhatAnUnsettledOrderNeeds(t *testing.T) {
	t.Parallel()
	_, store, payments := start(t)
	o := newOrder(t, freshPrefix+"1")
	claim := order.Claim{Order: o, Lease: lease(), Attempt: 1}
	if err := store.Release(t.Context(), claim, order.ReasonUnknown, noon); err == nil {
		t.Error("Release: got no error")
	}
	if _, err := store.Load(t.Context(), o.ID()); err == nil || errors.Is(err, order.ErrNotFound) {
		t.Errorf("Load: got error %v, want one other than ErrNotFound", err)
	}
	_, err := payments.Read(t.Context(), "pi_1")
	if refused, ok := errors.AsType[*order.PaymentError](err); !ok || refused.Kind != order.KindMisconfigured {
		t.Errorf("Read: got error %v, want Misconfigured", err)
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

func TestPlanNeedsAtLeastOneOfEach(t *testing.T) {
	t.Parallel()
	if err := (plan{1, 1, 1, 1}).Validate(); err != nil {
		t.Errorf("got error %v, want none", err)
	}
	for _, p := range []plan{{0, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, -1}} {
		if err := p.Validate(); !errors.Is(err, errNothing) {
			t.Errorf("%+v: got error %v, want errNothing", p, err)
		}
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

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		all  []float64
		want float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{900, 1, 2}, 2}} {
		if got := median(tt.all); got != tt.want {
			t.Errorf("median of %v: got %v, want %v", tt.all, got, tt.want)
		}
	}
	got := medianSpeed([]speed{{900, 3}, {1, 2}, {2, 1}})
	if want := (speed{PerSecond: 2, CPUMS: 2}); got != want {
		t.Errorf("median speed: got %+v, want %+v", got, want)
	}
}

func TestSpeed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		orders int
		took   time.Duration
		cpuMS  float64
		want   speed
	}{
		{10, time.Second, 5, speed{PerSecond: 10, CPUMS: 0.5}},
		{2860, 2 * time.Second, 1430, speed{PerSecond: 1430, CPUMS: 0.5}},
		{1, 20 * time.Millisecond, 0, speed{PerSecond: 50}}, // no CPU time available
	} {
		if got := speedOf(tt.orders, tt.took, tt.cpuMS); got != tt.want {
			t.Errorf("%d orders in %v with %v ms of CPU: got %+v, want %+v", tt.orders, tt.took, tt.cpuMS, got, tt.want)
		}
	}
}

func TestOrderAndMessageIDsAreUnique(t *testing.T) {
	t.Parallel()
	b := &bench{}
	decoder := orders.NewDecoder()
	seen := map[string]bool{}
	for _, prefix := range []string{freshPrefix, settledPrefix, freshPrefix} {
		var e events.SQSEvent
		if err := json.Unmarshal(b.event(prefix, batchSize), &e); err != nil || len(e.Records) != batchSize {
			t.Fatalf("got an event of %d records, %v, want %d", len(e.Records), err, batchSize)
		}
		for _, r := range e.Records {
			o, err := decoder.Decode(r.Body)
			if err != nil || o.Total() != (order.Money{Amount: total, Currency: "usd"}) ||
				!strings.HasPrefix(string(o.ID()), prefix) {
				t.Errorf("got order %q of %v, %v, want %s... of %d", o.ID(), o.Total(), err, prefix, total)
			}
			if seen[string(o.ID())] || seen[r.MessageId] {
				t.Errorf("got order %s or message %s twice", o.ID(), r.MessageId)
			}
			seen[string(o.ID())], seen[r.MessageId] = true, true
		}
	}
}

func TestCannedBackEndsRejectOtherRequests(t *testing.T) {
	t.Parallel()
	b, _, _ := start(t)
	intents, post, get := b.stripeURL+"/v1/payment_intents", http.MethodPost, http.MethodGet
	for claim, tt := range map[string]struct{ method, url, target, body, want string }{
		"another operation":          {post, b.dynamodbURL, "GetItem", "{}", "GetItem"},
		"another update":             {post, b.dynamodbURL, "UpdateItem", `{"UpdateExpression":"ADD x"}`, "ADD x"},
		"a truncated body":           {post, b.dynamodbURL, "UpdateItem", "{", "unexpected end"},
		"a read of an intent":        {get, intents + "/pi_1", "", "", "unsupported request"},
		"a GET of a confirmation":    {get, intents + "/pi_1/confirm", "", "", "unsupported request"},
		"an intent without an order": {post, intents, "", "amount=1999", "unsupported request"},
		"another Stripe resource":    {post, b.stripeURL + "/v1/customers", "", "", "unsupported request"},
	} {
		status, body := send(t, tt.method, tt.url, tt.target, tt.body)
		if status != http.StatusBadRequest || !strings.Contains(body, tt.want) {
			t.Errorf("%s: got %d %s, want 400 and %q", claim, status, body, tt.want)
		}
	}
}

// send calls a back end without an adapter. target is the DynamoDB operation.
func send(t *testing.T, method, url, target, body string) (status int, response string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	must(t, err)
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+target)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	got, err := http.DefaultClient.Do(r)
	must(t, err)
	text, err := io.ReadAll(got.Body)
	must(t, errors.Join(err, got.Body.Close()))
	return got.StatusCode, string(text)
}

func TestTargets(t *testing.T) {
	t.Parallel()
	good := figures{FirstResponseMS: 20, Fresh: speed{800, 1}, PeakRSSBytes: 30 << 20, ZipBytes: 4_500_000}
	if got := missed(good); got != nil {
		t.Errorf("got %q missed, want none at the limits", got)
	}
	bad := figures{FirstResponseMS: 21, Fresh: speed{799, math.MaxInt32}, PeakRSSBytes: 31 << 20, ZipBytes: 4_600_000}
	want := []string{"process start to first response", "fresh orders, one instance", "peak memory (RSS)", "zip"}
	if diff := cmp.Diff(missed(bad), want); diff != "" {
		t.Error(diff)
	}
}

func missed(f figures) (names []string) {
	for _, a := range targets(f) {
		if a.missed() {
			names = append(names, a.figure)
		}
	}
	return names
}

func TestFiguresAreShownInTheirUnits(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	show(&out, plan{Rounds: 2, ColdStarts: 3, Batches: 4, Duplicates: 5}, figures{
		FirstResponseMS: 15.04, Fresh: speed{1234.4, 0.456}, Duplicates: speed{4321.6, 0.123}, PeakRSSBytes: 25<<20 + 1<<19,
		ZipBytes: 3_614_999, CallsPerOrder: 5, CallsDuplicate: 1,
	}, 12400*time.Millisecond)
	for _, want := range []string{
		"15.0 ms", "1234 /s", "0.46 ms", "4322 /s", "0.12 ms", "25.5 MiB", "3.61 MB",
		"Medians of 2 rounds: 6 cold starts, 80 fresh orders in batches of 10, 100 duplicates; 12 s on\n",
		"A fresh order made 5.00 calls to DynamoDB and Stripe, a duplicate 1.00.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "missed") {
		t.Errorf("got a missed target in\n%s", out.String())
	}
}

func TestMissedTargetsAndMissingFiguresAreShown(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	show(&out, plan{Rounds: 7, Batches: 286},
		figures{FirstResponseMS: 21.04, Fresh: speed{900, 0}, CallsPerOrder: 5}, time.Minute)
	for _, want := range []string{
		"21.0 ms │ missed", "900 /s │        │", "not available",
		"20020 fresh orders in batches of 10", "5.00 calls", "1 targets missed.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
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
